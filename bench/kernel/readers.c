// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "readers.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include <ringcap/ringcap.h>

#include "filter.h"
#include "rules.h"
#include "traffic.h"

struct progress *progress;
uint32_t reader_memory = 16U << 20;

void fail(const char *what)
{
	perror(what);
	exit(1);
}

void fail_with(const char *what, const char *why)
{
	printf("%s: %s\n", what, why);
	exit(1);
}

void reader_ready(unsigned int reader)
{
	__atomic_store_n(&progress[reader].ready, 1, __ATOMIC_RELEASE);
}

/* ---- what a socket dropped ---- */

static struct {
	unsigned int reader;
	int fd;
	uint64_t (*count)(int fd);
} asked;

static void answer(int signal)
{
	struct progress *mine = &progress[asked.reader];

	(void)signal;
	mine->dropped = asked.count(asked.fd);
	__atomic_store_n(&mine->answered, 1, __ATOMIC_RELEASE);
}

void reader_answers(unsigned int reader, int fd, uint64_t (*count)(int fd))
{
	asked.reader = reader;
	asked.fd = fd;
	asked.count = count;
	signal(SIGUSR1, answer);
}

uint64_t reader_dropped(unsigned int reader, pid_t pid)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	kill(pid, SIGUSR1);
	while (!__atomic_load_n(&progress[reader].answered, __ATOMIC_ACQUIRE))
		nanosleep(&moment, NULL);
	return progress[reader].dropped;
}

static void tell(unsigned int reader, uint64_t touched, uint64_t bytes)
{
	progress[reader].touched += touched;
	progress[reader].bytes += bytes;
}

/* ---- libringcap ---- */

static struct ringcap *open_queue(unsigned int reader)
{
	char name[32], why[RINGCAP_ERRBUF_SIZE];
	struct ringcap *handle;

	snprintf(name, sizeof(name), "bench@%u", reader);
	handle = ringcap_open(name, 0, why);
	if (!handle)
		fail_with(name, why);
	return handle;
}

static void read_from(struct ringcap *handle, unsigned int reader)
{
	struct ringcap_run run = { 0 };

	reader_ready(reader);
	while (ringcap_read(handle, &run, -1) > 0) {
		struct ringcap_run now = run;	/* a local copy stays in registers */
		const struct ringcap_slot *slot;
		uint64_t touched = 0, bytes = 0;

		while ((slot = ringcap_next(&now))) {
			touched += ringcap_data(slot)[12];
			bytes += slot->len;
		}
		run = now;
		tell(reader, touched, bytes);
	}
}

void read_ringcap(unsigned int reader)
{
	read_from(open_queue(reader), reader);
}

/* Flows from number @first on; those from FLOWS on are not the traffic's. */
static void read_without(unsigned int reader, unsigned int first)
{
	struct ringcap *handle = open_queue(reader);
	struct ringcap_exact flows[FLOWS];
	unsigned int n;

	for (n = 0; n < FLOWS; n++) {
		flows[n] = rule_exact(first + n);
		flows[n].action = RINGCAP_ACTION_DROP;
	}
	if (ringcap_shunt(handle, flows, FLOWS) != FLOWS)
		fail_with("bench", "flows could not be shunted");
	read_from(handle, reader);
}

void read_shunted(unsigned int reader)
{
	read_without(reader, 0);
}

void read_others_shunted(unsigned int reader)
{
	read_without(reader, FLOWS);
}

void read_ringcap_batches(unsigned int reader)
{
	struct ringcap *handle = open_queue(reader);
	struct ringcap_pkt packets[64];
	int i, n;

	reader_ready(reader);
	while ((n = ringcap_recv(handle, packets, 64, -1)) > 0) {
		uint64_t touched = 0, bytes = 0;

		for (i = 0; i < n; i++) {
			touched += packets[i].data[12];
			bytes += packets[i].slot->len;
		}
		ringcap_release(handle, (unsigned int)n);
		tell(reader, touched, bytes);
	}
}

/* ---- AF_PACKET ---- */

static int packet_socket(uint8_t **ring)
{
	struct tpacket_req3 request = { .tp_block_size = WAKE_BYTES, .tp_block_nr = reader_memory / WAKE_BYTES,
					.tp_frame_size = 2048, .tp_frame_nr = reader_memory / 2048,
					.tp_retire_blk_tov = WAKE_MS };
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
				       .sll_ifindex = (int)if_nametoindex("vb") };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), version = TPACKET_V3, one = 1;

	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)))
		fail("TPACKET_V3");
	*ring = mmap(NULL, reader_memory, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*ring == MAP_FAILED || bind(fd, (struct sockaddr *)&address, sizeof(address)))
		fail("TPACKET_V3");
	return fd;
}

static void read_block(unsigned int reader, const struct tpacket_block_desc *block)
{
	const struct tpacket3_hdr *packet = (const void *)((const uint8_t *)block + block->hdr.bh1.offset_to_first_pkt);
	uint64_t touched = 0, bytes = 0;
	uint32_t i;

	for (i = 0; i < block->hdr.bh1.num_pkts; i++) {
		touched += ((const uint8_t *)packet + packet->tp_mac)[12];
		bytes += packet->tp_len;
		packet = (const void *)((const uint8_t *)packet + packet->tp_next_offset);
	}
	tell(reader, touched, bytes);
}

static uint64_t count_drops(int fd)
{
	struct tpacket_stats_v3 stats;
	socklen_t len = sizeof(stats);

	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
		fail("PACKET_STATISTICS");
	return stats.tp_drops;
}

static void read_blocks(unsigned int reader, int fd, uint8_t *ring)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	struct tpacket_block_desc *block;
	uint32_t at = 0;

	reader_answers(reader, fd, count_drops);
	reader_ready(reader);
	for (;;) {
		block = (void *)(ring + (size_t)at * WAKE_BYTES);
		if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) {
			poll(&ready, 1, -1);
			continue;
		}
		read_block(reader, block);
		__atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		at = (at + 1) % (reader_memory / WAKE_BYTES);
	}
}

void read_tpacket(unsigned int reader)
{
	uint8_t *ring;
	int fd = packet_socket(&ring);

	read_blocks(reader, fd, ring);
}

void read_tpacket_filtered(unsigned int reader)
{
	struct sock_fprog program = { TCP_PORT_80_LEN, tcp_port_80 };
	uint8_t *ring;
	int fd = packet_socket(&ring);

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		fail("SO_ATTACH_FILTER");
	read_blocks(reader, fd, ring);
}

void read_fanout(unsigned int reader)
{
	int group = 7 | PACKET_FANOUT_HASH << 16;
	uint8_t *ring;
	int fd = packet_socket(&ring);

	if (setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)))
		fail("PACKET_FANOUT");
	read_blocks(reader, fd, ring);
}
