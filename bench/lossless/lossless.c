// SPDX-License-Identifier: Apache-2.0
/*
 * In the guest: how fast packets may come until tcpdump, writing them to a file on a machine whose processor is taken for
 * 200 ms at a time, loses some; with the distribution's libpcap on the interface, and with ours on a ringcap queue of the
 * same memory. Prints
 *
 *   row {"size":S,"reader":"R","losslessRate":PPS}               the greatest rate of the ladder that lost nothing
 *   row {"size":S,"reader":"R","rate":PPS,"sent":N,"lost":N}     both readers at the greater of the two rates
 *
 * The sender is a real-time process that sends every millisecond, so that the offered load does not depend on who else is
 * busy; the kernel's part of capturing runs at its expense. A busy loop of real-time priority, but a lower one, leaves
 * tcpdump the last fifth of each period. A reader that does not account for every packet that was sent ends the run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
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

#define MEMORY_KIB	1024		/* a reader's */
#define MEMORY		(MEMORY_KIB << 10)
#define PERIOD_US	250000		/* of the busy loop */
#define BUSY_US		200000		/* of it */
#define PERIODS		3		/* a trial */
#define STEP_PERCENT	112		/* from one rate of the ladder to the next */
#define STEPS		14
#define FIRST_PERCENT	35		/* of the rate that fills the memory in BUSY_US */
#define LATE_PERCENT	10		/* a sender that takes so much longer did not keep the rate */
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

/* The harness of kmod/tests wants one. */
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

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void prefer(int priority)
{
	const struct sched_param parameter = { .sched_priority = priority };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter))
		fail("a real-time process");
}

/* ---- the busy machine ---- */

static void be_busy(void)
{
	prefer(5);
	for (;;) {
		uint64_t at = now_us() % PERIOD_US;

		if (at > BUSY_US)
			sleep_ms((long)(PERIOD_US - at) / 1000 + 1);
	}
}

static pid_t hog_start(void)
{
	pid_t pid = fork();

	if (!pid)
		be_busy();
	return pid;
}

/* ---- the sender ---- */

static void sender_setup(void)
{
	prefer(10);
	memset(frame, 0x55, sizeof(frame));
	memcpy(frame, "\2\0\0\0\0\2\2\0\0\0\0\1\x88\xb5", 14);	/* an ethertype that is nobody's */
}

static void send_now(int fd, unsigned int size, unsigned int count)
{
	struct iovec vector = { frame, size };
	struct mmsghdr messages[64];
	unsigned int i;
	int n;

	for (i = 0; i < 64; i++)
		messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &vector, .msg_iovlen = 1 } };
	for (; count; count -= (unsigned int)n) {
		n = sendmmsg(fd, messages, count < 64 ? count : 64, 0);
		if (n <= 0)
			fail("sendmmsg");
	}
}

/* Sends count packets at rate a second; whether it was too slow. */
static bool send_paced(unsigned int size, unsigned int rate, unsigned int count)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("va") };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1;
	uint64_t start = now_us(), planned = (uint64_t)count * 1000000 / rate;
	unsigned int sent = 0;
	bool late;

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)))
		fail("sender");
	while (sent < count) {
		uint64_t due = (now_us() - start) * rate / 1000000;
		unsigned int n = due > count ? count - sent : (unsigned int)due - sent;

		send_now(fd, size, n);
		sent += n;
		sleep_ms(1);
	}
	late = now_us() - start > planned + planned * LATE_PERCENT / 100;
	close(fd);	/* takes its time while the processor is taken */
	return late;
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

/* Reads what tcpdump says until it says text. */
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
	printf("tcpdump did not say '%s': %s\n", text, all);
	exit(1);
}

static unsigned int number_before(const char *all, const char *text)
{
	const char *at = strstr(all, text);

	while (at && at > all && at[-1] >= '0' && at[-1] <= '9')
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
	struct trial trial = { .sent = (unsigned int)((uint64_t)rate * PERIODS * PERIOD_US / 1000000) };
	pid_t pid, hog;
	char said[4096];
	int fd;

	if (reader == RINGCAP)
		ring_setup();
	pid = tcpdump_start(reader, &fd);
	tcpdump_await(fd, said, sizeof(said), "snapshot length");
	sleep_ms(100);
	hog = hog_start();
	trial.late = send_paced(size, rate, trial.sent);
	kill(hog, SIGKILL);
	waitpid(hog, NULL, 0);
	sleep_ms(DRAIN_MS);
	kill(pid, SIGINT);
	tcpdump_await(fd, said, sizeof(said), "dropped by kernel");
	waitpid(pid, NULL, 0);
	close(fd);
	unlink("/captured");
	if (reader == RINGCAP)
		ring_teardown();
	trial.captured = number_before(said, " packets captured");
	trial.lost = number_before(said, " packets dropped by kernel");
	printf("trial %s %u bytes, %u packets/s: %u sent, %u captured, %u lost%s\n", reader_names[reader], size, rate,
	       trial.sent, trial.captured, trial.lost, trial.late ? ", the sender was late" : "");
	if (trial.captured + trial.lost != trial.sent) {
		printf("%s does not account for all packets\n", reader_names[reader]);
		exit(1);
	}
	return trial;
}

/* The ladder's step i for packets of this size, packets a second. */
static unsigned int step_rate(unsigned int size, unsigned int i)
{
	uint64_t rate = (uint64_t)(MEMORY / (size + 32)) * 1000000 / BUSY_US * FIRST_PERCENT / 100;

	while (i--)
		rate = rate * STEP_PERCENT / 100;
	return (unsigned int)rate;
}

/* The greatest rate of the ladder at which nothing is lost, by bisection. */
static unsigned int lossless_rate(enum reader reader, unsigned int size)
{
	unsigned int good = 0, bad = STEPS + 1, best;

	while (bad - good > 1) {
		unsigned int middle = (good + bad) / 2;
		struct trial trial = try(reader, size, step_rate(size, middle - 1));

		if (trial.lost || trial.late)
			bad = middle;
		else
			good = middle;
	}
	if (!good) {
		printf("the first rate of the ladder is too high for %s\n", reader_names[reader]);
		exit(1);
	}
	best = step_rate(size, good - 1);
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
		unsigned int size = (unsigned int)strtoul(argv[i], NULL, 10) - 4;	/* named with FCS */
		unsigned int stock = lossless_rate(STOCK, size), ours = lossless_rate(RINGCAP, size);

		compare_at(size, ours > stock ? ours : stock);
	}
	return 0;
}
