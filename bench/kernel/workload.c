// SPDX-License-Identifier: Apache-2.0
/*
 * In the guest: sends the same packets over a veth pair to each kind of reader in turn and marks, for the counting
 * plugin, where each measurement begins and ends. Prints a line for each: "run WHO READERS SIZE PACKETS RECEIVED".
 *
 * Everybody gets the same: 64 UDP flows, rings of 16 MiB a reader, a wake-up for every 256 KiB or 10 ms, readers at
 * SCHED_BATCH that look at each packet's length and first bytes. The sender sleeps after each burst, which fits in every
 * ring, so that nothing is lost; what it and the interfaces cost is measured without readers and can be subtracted.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ringcap/ringcap.h>

#include "control.h"
#include "marker.h"

#define PACKETS		32768
#define BURST		2048
#define VECTOR		32
#define FLOWS		64
#define READERS_MAX	4
#define RING_BYTES	(16U << 20)
#define WAKE_BYTES	(256U << 10)
#define WAKE_MS		10
#define PAUSE_MS	40

/**
 * struct kind - a way to read packets
 * @who: its name in the results
 * @readers: processes that share the packets
 * @read: one of them, for ever; NULL = nobody reads
 * @ringcap: whether a ring is set up
 */
struct kind {
	const char *who;
	unsigned int readers;
	void (*read)(unsigned int reader);
	bool ringcap;
};

/* What readers tell: one cache line each. */
struct progress {
	volatile uint64_t packets;
	volatile uint64_t bytes;
	volatile uint64_t ready;
	uint64_t pad[5];
};

static struct progress *progress;
static uint8_t frames[FLOWS][1600];
static uint64_t touched;

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

/* ---- readers ---- */

static void look_at(unsigned int reader, const uint8_t *packet, uint32_t len)
{
	touched += packet[12] + len;
	progress[reader].packets++;
	progress[reader].bytes += len;
}

static void read_ringcap(unsigned int reader)
{
	char name[32], error[RINGCAP_ERRBUF_SIZE];
	struct ringcap_pkt packets[64];
	struct ringcap *handle;
	int i, n;

	snprintf(name, sizeof(name), "bench@%u", reader);
	handle = ringcap_open(name, 0, error);
	if (!handle) {
		printf("%s\n", error);
		exit(1);
	}
	progress[reader].ready = 1;
	while ((n = ringcap_recv(handle, packets, 64, -1)) >= 0) {
		for (i = 0; i < n; i++)
			look_at(reader, packets[i].data, packets[i].slot->len);
		ringcap_release(handle, (unsigned int)n);
	}
}

static int packet_socket(uint8_t **ring)
{
	struct tpacket_req3 request = { .tp_block_size = WAKE_BYTES, .tp_block_nr = RING_BYTES / WAKE_BYTES,
					.tp_frame_size = 2048, .tp_frame_nr = RING_BYTES / 2048,
					.tp_retire_blk_tov = WAKE_MS };
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
				       .sll_ifindex = (int)if_nametoindex("vb") };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), version = TPACKET_V3, one = 1;

	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)))
		fail("TPACKET_V3");
	*ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*ring == MAP_FAILED || bind(fd, (struct sockaddr *)&address, sizeof(address)))
		fail("TPACKET_V3");
	return fd;
}

static void read_block(unsigned int reader, const struct tpacket_block_desc *block)
{
	const struct tpacket3_hdr *packet = (const void *)((const uint8_t *)block + block->hdr.bh1.offset_to_first_pkt);
	uint32_t i;

	for (i = 0; i < block->hdr.bh1.num_pkts; i++) {
		look_at(reader, (const uint8_t *)packet + packet->tp_mac, packet->tp_len);
		packet = (const void *)((const uint8_t *)packet + packet->tp_next_offset);
	}
}

static void read_blocks(unsigned int reader, int fd, uint8_t *ring)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	struct tpacket_block_desc *block;
	uint32_t at = 0;

	progress[reader].ready = 1;
	for (;;) {
		block = (void *)(ring + (size_t)at * WAKE_BYTES);
		if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) {
			poll(&ready, 1, -1);
			continue;
		}
		read_block(reader, block);
		__atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		at = (at + 1) % (RING_BYTES / WAKE_BYTES);
	}
}

static void read_tpacket(unsigned int reader)
{
	uint8_t *ring;
	int fd = packet_socket(&ring);

	read_blocks(reader, fd, ring);
}

static void read_fanout(unsigned int reader)
{
	int group = 7 | PACKET_FANOUT_HASH << 16;
	uint8_t *ring;
	int fd = packet_socket(&ring);

	if (setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)))
		fail("PACKET_FANOUT");
	read_blocks(reader, fd, ring);
}

/* ---- the ring ---- */

static void ringcap_setup(unsigned int queues)
{
	struct rt_cluster cluster = { .name = "bench", .queues = queues, .lanes = 1, .lane_size = RING_BYTES,
				      .watermark = WAKE_BYTES, .timeout_us = WAKE_MS * 1000 };
	struct rt_ring ring = { .name = "bench-ring", .taps = { { if_nametoindex("vb"), RINGCAP_DIRECTION_RX } },
				.outputs = { "bench" } };

	if (rt_cluster_set(&cluster) || rt_ring_set(&ring)) {
		printf("ringcap: %s\n", rt_reason);
		exit(1);
	}
}

static void ringcap_teardown(void)
{
	if (rt_delete(RINGCAP_CMD_RING_DEL, "bench-ring") || rt_delete(RINGCAP_CMD_CLUSTER_DEL, "bench")) {
		printf("ringcap: %s\n", rt_reason);
		exit(1);
	}
}

/* ---- the sender ---- */

static void build_frames(unsigned int size)
{
	unsigned int i;

	for (i = 0; i < FLOWS; i++) {
		uint8_t *frame = frames[i];

		memset(frame, 0x55, sizeof(frames[i]));
		memcpy(frame, "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0\x45", 15);
		frame[16] = (uint8_t)((size - 14) >> 8);
		frame[17] = (uint8_t)(size - 14);
		memcpy(frame + 18, "\0\0\0\0\x40\x11\0\0\x0a\0\0\1\x0a\0\1\1", 16);
		frame[29] = (uint8_t)(1 + i / 8);
		memcpy(frame + 34, "\x27\x10\0\x35\0\x20\0\0", 8);
		frame[35] = (uint8_t)(0x10 + i);
	}
}

static int sender_open(void)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("va") };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1;

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)))
		fail("sender");
	return fd;
}

static void pause_ms(long milliseconds)
{
	struct timespec time = { .tv_nsec = milliseconds * 1000000 };

	nanosleep(&time, NULL);
}

static void send_packets(int fd, unsigned int size, unsigned int count)
{
	struct mmsghdr messages[VECTOR] = {};
	struct iovec vectors[VECTOR];
	unsigned int sent, i;
	int n;

	for (sent = 0; sent < count; sent += (unsigned int)n) {
		for (i = 0; i < VECTOR; i++) {
			vectors[i] = (struct iovec){ frames[(sent + i) % FLOWS], size };
			messages[i].msg_hdr.msg_iov = &vectors[i];
			messages[i].msg_hdr.msg_iovlen = 1;
		}
		n = sendmmsg(fd, messages, VECTOR, 0);
		if (n <= 0)
			fail("sendmmsg");
		if ((sent + (unsigned int)n) % BURST == 0)
			pause_ms(PAUSE_MS);
	}
}

/* ---- measurements ---- */

static void start_readers(const struct kind *kind, pid_t *pids)
{
	const struct sched_param parameter = {};
	unsigned int i;

	for (i = 0; kind->read && i < kind->readers; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			sched_setscheduler(0, SCHED_BATCH, &parameter);
			kind->read(i);
			exit(1);
		}
		while (!progress[i].ready) {
			if (waitpid(pids[i], NULL, WNOHANG))
				fail("a reader");
			pause_ms(1);
		}
	}
}

static void stop_readers(const struct kind *kind, const pid_t *pids)
{
	unsigned int i;

	for (i = 0; kind->read && i < kind->readers; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

static uint64_t received(void)
{
	uint64_t packets = 0;
	unsigned int i;

	for (i = 0; i < READERS_MAX; i++)
		packets += progress[i].packets;
	return packets;
}

static bool measure(const struct kind *kind, unsigned int size)
{
	pid_t pids[READERS_MAX] = {};
	uint64_t before, got;
	int sender = sender_open();

	memset(progress, 0, READERS_MAX * sizeof(*progress));
	build_frames(size);
	if (kind->ringcap)
		ringcap_setup(kind->readers);
	start_readers(kind, pids);
	send_packets(sender, size, 4 * BURST);
	before = received();
	RB_MARK(RB_MARKER_BEGIN);
	send_packets(sender, size, PACKETS);
	RB_MARK(RB_MARKER_END);
	got = received() - before;
	printf("run %s %u %u %u %llu\n", kind->who, kind->readers, size, PACKETS, (unsigned long long)got);
	stop_readers(kind, pids);
	if (kind->ringcap)
		ringcap_teardown();
	close(sender);
	return got == (kind->read ? PACKETS : 0);
}

/* The kernel's functions and where they are, to a port that is faster than a terminal. */
static void write_symbols(const char *path)
{
	FILE *symbols = fopen("/proc/kallsyms", "r"), *port = fopen(path, "w");
	char line[512], type;

	if (!symbols || !port)
		fail(path);
	while (fgets(line, sizeof(line), symbols))
		if (sscanf(line, "%*x %c", &type) == 1 && (type == 't' || type == 'T' || type == 'w' || type == 'W'))
			fputs(line, port);
	fclose(port);
	fclose(symbols);
}

int main(void)
{
	static const struct kind kinds[] = {
		{ .who = "warm-up", .readers = 1, .read = read_ringcap, .ringcap = true },
		{ .who = "no-reader" },
		{ .who = "ringcap-unattended", .readers = 1, .ringcap = true },
		{ .who = "ringcap", .readers = 1, .read = read_ringcap, .ringcap = true },
		{ .who = "ringcap", .readers = 4, .read = read_ringcap, .ringcap = true },
		{ .who = "tpacket-v3", .readers = 1, .read = read_tpacket },
		{ .who = "tpacket-v3-fanout-hash", .readers = 4, .read = read_fanout },
		{ .who = "no-reader" },
	};
	static const unsigned int sizes[] = { 60, 1500 };
	unsigned int i, j;
	bool lossless = true;

	progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (progress == MAP_FAILED)
		fail("mmap");
	setvbuf(stdout, NULL, _IOLBF, 0);
	rt_control_open();
	for (j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++)
		for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			lossless &= measure(&kinds[i], sizes[j]);
	write_symbols("/dev/vport0p1");
	if (!lossless)
		printf("some reader missed packets: its figures mean nothing\n");
	return !lossless;
}
