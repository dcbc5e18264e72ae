// SPDX-License-Identifier: Apache-2.0
/*
 * Runs in the guest. Finds the greatest rate at which tcpdump loses no packets. tcpdump writes them to a file, on a
 * machine with a CPU that is busy for 200 ms at a time. It runs with the distribution's libpcap on the interface, and
 * with ours on a ringcap queue with the same memory. Prints
 *
 *   row {"size":S,"reader":"R","losslessRate":PPS}               the greatest rate of the ladder that lost nothing
 *   row {"size":S,"reader":"R","rate":PPS,"sent":N,"lost":N}     both readers at the greater of the two rates
 *
 * The sender is a real-time process that sends every millisecond. So the offered load does not depend on other busy
 * processes. The kernel's part of capturing runs in the sender's time. A busy loop with a lower real-time priority
 * leaves tcpdump the last fifth of each period. The run ends if a reader does not account for every packet that was
 * sent.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "load.h"

#define MEMORY_KIB	1024		/* of a reader */
#define MEMORY		(MEMORY_KIB << 10)
#define PERIODS		3		/* of the busy loop, per trial */
#define TICK_US		1000
#define STEPS		14
#define FIRST_PERCENT	35		/* of the rate that fills the memory in HOG_BUSY_US */
#define DRAIN_MS	1500		/* beyond tcpdump's own timeout of a second */

enum reader { STOCK, RINGCAP };

static const char *const reader_names[] = { "tpacket-v3", "ringcap" };

struct trial {
	unsigned int sent, captured, lost;
	bool late;
};

static uint8_t frame[1600];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* The harness of kmod/tests needs this function. */
void rt_fail(const char *file, int line, const char *what, const char *format, ...)
{
	printf("%s:%d: %s: %s\n", file, line, what, format);
	exit(1);
}

static void sleep_ms(long milliseconds)
{
	const struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* ---- the sender ---- */

static void sender_setup(void)
{
	load_prefer();
	memset(frame, 0x55, sizeof(frame));
	memcpy(frame, "\2\0\0\0\0\2\2\0\0\0\0\1\x88\xb5", 14);	/* an ethertype that no protocol uses */
}

static struct {
	int fd;
	unsigned int size;
} sender;

static void send_now(unsigned int count)
{
	struct iovec vector = { frame, sender.size };
	struct mmsghdr messages[64];
	unsigned int i;
	int n;

	for (i = 0; i < 64; i++)
		messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &vector, .msg_iovlen = 1 } };
	for (; count; count -= (unsigned int)n) {
		n = sendmmsg(sender.fd, messages, count < 64 ? count : 64, 0);
		if (n <= 0)
			fail("sendmmsg");
	}
}

static void sender_open(unsigned int size)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("va") };
	int one = 1;

	sender.size = size;
	sender.fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (sender.fd < 0 || bind(sender.fd, (struct sockaddr *)&address, sizeof(address)) ||
	    setsockopt(sender.fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)))
		fail("sender");
}

/* ---- tcpdump ---- */

static pid_t tcpdump_start(enum reader reader, int *said)
{
	char memory[16];
	char *argv[] = { "tcpdump", "-n", "-Z", "root", "-B", memory, "-i", reader == STOCK ? "vb" : "ringcap:lossless", "-w",
			 "/captured", NULL };
	int ends[2];
	pid_t pid;

	snprintf(memory, sizeof(memory), "%u", MEMORY_KIB);
	if (pipe(ends))
		fail("pipe");
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDERR_FILENO);
		if (reader == RINGCAP)
			setenv("LD_LIBRARY_PATH", "/ringcap", 1);
		execv("/bin/tcpdump", argv);
		fail("tcpdump");
	}
	close(ends[1]);
	*said = ends[0];
	return pid;
}

/* Reads tcpdump's output until it contains text. */
static void tcpdump_await(int said, char *all, size_t size, const char *text)
{
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 && (n = read(said, all + len, size - 1 - len)) > 0) {
		len += (size_t)n;
		all[len] = '\0';
		if (strstr(all, text))
			return;
	}
	all[len] = '\0';
	printf("tcpdump did not print '%s': %s\n", text, all);
	exit(1);
}

/* Returns the number in "2 packets captured" or "1 packet captured". */
static unsigned int number_before(const char *all, const char *text)
{
	const char *at = strstr(all, text);

	while (at && at > all && !isdigit(at[-1]))
		at--;
	while (at && at > all && isdigit(at[-1]))
		at--;
	return at ? (unsigned int)strtoul(at, NULL, 10) : 0;
}

static void ring_setup(void)
{
	struct rt_cluster cluster = { .name = "lossless", .queues = 1, .lanes = 1, .lane_size = MEMORY };
	struct rt_ring ring = { .name = "lossless-ring", .taps = { { if_nametoindex("vb"), RINGCAP_DIRECTION_RX } },
				.outputs = { "lossless" } };

	if (rt_cluster_set(&cluster) || rt_ring_set(&ring)) {
		printf("ringcap: %s\n", rt_reason);
		exit(1);
	}
}

static void ring_teardown(void)
{
	if (rt_delete(RINGCAP_CMD_RING_DEL, "lossless-ring") || rt_delete(RINGCAP_CMD_CLUSTER_DEL, "lossless")) {
		printf("ringcap: %s\n", rt_reason);
		exit(1);
	}
}

/* ---- trials ---- */

static struct trial try(enum reader reader, unsigned int size, unsigned int rate)
{
	struct trial trial = { .sent = (unsigned int)((uint64_t)rate * PERIODS * HOG_PERIOD_US / 1000000) };
	pid_t pid, hog;
	char said[4096];
	int fd;

	if (reader == RINGCAP)
		ring_setup();
	pid = tcpdump_start(reader, &fd);
	tcpdump_await(fd, said, sizeof(said), "snapshot length");
	sleep_ms(100);
	sender_open(size);
	hog = hog_start();
	trial.late = send_paced(rate, trial.sent, TICK_US, send_now);
	hog_end(hog);
	close(sender.fd);
	sleep_ms(DRAIN_MS);
	kill(pid, SIGINT);
	tcpdump_await(fd, said, sizeof(said), "dropped by kernel");
	waitpid(pid, NULL, 0);
	close(fd);
	unlink("/captured");
	if (reader == RINGCAP)
		ring_teardown();
	trial.captured = number_before(said, " captured");
	trial.lost = number_before(said, " dropped by kernel");
	printf("trial %s %u bytes, %u packets/s: %u sent, %u captured, %u lost%s\n", reader_names[reader], size, rate,
	       trial.sent, trial.captured, trial.lost, trial.late ? ", the sender was late" : "");
	if (trial.captured + trial.lost != trial.sent) {
		printf("%s does not account for all packets\n", reader_names[reader]);
		exit(1);
	}
	return trial;
}

/* Returns the ladder's first rate for packets of this size, in packets per second. */
static unsigned int first_rate(unsigned int size)
{
	return (unsigned int)((uint64_t)(MEMORY / (size + 32)) * 1000000 / HOG_BUSY_US * FIRST_PERCENT / 100);
}

struct search {
	enum reader reader;
	unsigned int size;
};

static bool is_lossless(unsigned int step, void *arg)
{
	const struct search *s = arg;
	struct trial trial = try(s->reader, s->size, ladder_rate(first_rate(s->size), step));

	return !trial.lost && !trial.late;
}

/* Finds the greatest rate of the ladder at which nothing is lost. */
static unsigned int lossless_rate(enum reader reader, unsigned int size)
{
	struct search s = { reader, size };
	int step = ladder_climb(STEPS, -1, is_lossless, &s);
	unsigned int best;

	if (step < 0) {
		printf("the first rate of the ladder is too high for %s\n", reader_names[reader]);
		exit(1);
	}
	best = ladder_rate(first_rate(size), (unsigned int)step);
	printf("row {\"size\":%u,\"reader\":\"%s\",\"losslessRate\":%u}\n", size, reader_names[reader], best);
	return best;
}

static void compare_at(unsigned int size, unsigned int rate)
{
	enum reader reader;

	for (reader = STOCK; reader <= RINGCAP; reader++) {
		struct trial trial = try(reader, size, rate);

		printf("row {\"size\":%u,\"reader\":\"%s\",\"rate\":%u,\"sent\":%u,\"lost\":%u}\n", size,
		       reader_names[reader], rate, trial.sent, trial.lost);
	}
}

int main(int argc, char **argv)
{
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	rt_control_open();
	sender_setup();
	for (i = 1; i < argc; i++) {
		unsigned int size = (unsigned int)strtoul(argv[i], NULL, 10) - 4;	/* argv has it with FCS */
		unsigned int stock = lossless_rate(STOCK, size), ours = lossless_rate(RINGCAP, size);

		compare_at(size, ours > stock ? ours : stock);
	}
	return 0;
}
