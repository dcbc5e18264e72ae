// SPDX-License-Identifier: Apache-2.0
/*
 * AF_XDP in copy mode on vb, by system calls. It uses a map of sockets, a program that redirects into the map, and a
 * socket for each queue.
 */
#define _GNU_SOURCE
#include "readers.h"

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FRAME_BYTES	2048U
#define FRAMES		(reader_memory / FRAME_BYTES)

/* One of the socket's rings, with FRAMES entries. */
struct xring {
	uint32_t *producer, *consumer;
	void *entries;
};

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* A packet goes to the socket of its receive queue if the map has one, otherwise to the stack. */
static int load_program(int map)
{
	const struct bpf_insn program[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1,
		  .off = offsetof(struct xdp_md, rx_queue_index) },
		{ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map },
		{ .imm = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	static char log[4096];
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_XDP, .insns = (uintptr_t)program,
				.insn_cnt = sizeof(program) / sizeof(program[0]), .license = (uintptr_t)"GPL",
				.log_buf = (uintptr_t)log, .log_size = sizeof(log), .log_level = 1 };
	int fd = bpf(BPF_PROG_LOAD, &attr);

	if (fd < 0)
		fail_with("the XDP program", log);
	return fd;
}

/* Creates the map of sockets, which other readers find by its id. */
static int make_map(void)
{
	union bpf_attr map = { .map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = READERS_MAX };
	int fd = bpf(BPF_MAP_CREATE, &map);
	struct bpf_map_info made;
	union bpf_attr ask;

	memset(&made, 0, sizeof(made));
	memset(&ask, 0, sizeof(ask));
	ask.info.bpf_fd = (uint32_t)fd;
	ask.info.info = (uintptr_t)&made;
	ask.info.info_len = sizeof(made);
	if (fd < 0 || bpf(BPF_OBJ_GET_INFO_BY_FD, &ask))
		fail("BPF_MAP_TYPE_XSKMAP");
	progress[0].sockets = made.id;
	return fd;
}

static int find_map(void)
{
	union bpf_attr find;
	int fd;

	memset(&find, 0, sizeof(find));
	find.map_id = (uint32_t)progress[0].sockets;
	fd = bpf(BPF_MAP_GET_FD_BY_ID, &find);
	if (fd < 0)
		fail("the first reader's map");
	return fd;
}

static void attach(int map, uint32_t flags)
{
	union bpf_attr link;

	memset(&link, 0, sizeof(link));
	link.link_create.prog_fd = (uint32_t)load_program(map);
	link.link_create.target_ifindex = if_nametoindex("vb");
	link.link_create.attach_type = BPF_XDP;
	link.link_create.flags = flags;
	if (bpf(BPF_LINK_CREATE, &link) < 0)
		fail("attaching the XDP program");
}

static void enter(int map, uint32_t key, int socket_fd)
{
	uint32_t value = (uint32_t)socket_fd;
	union bpf_attr update;

	memset(&update, 0, sizeof(update));
	update.map_fd = (uint32_t)map;
	update.key = (uintptr_t)&key;
	update.value = (uintptr_t)&value;
	if (bpf(BPF_MAP_UPDATE_ELEM, &update))
		fail("the socket into the map");
}

static struct xring map_ring(int fd, const struct xdp_ring_offset *offset, uint64_t at, size_t entry)
{
	uint8_t *p = mmap(NULL, offset->desc + FRAMES * entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			  (off_t)at);

	if (p == MAP_FAILED)
		fail("AF_XDP: a ring");
	return (struct xring){ (void *)(p + offset->producer), (void *)(p + offset->consumer), p + offset->desc };
}

static int open_socket(unsigned int queue, uint8_t **memory, struct xring *fill, struct xring *received)
{
	struct sockaddr_xdp address = { .sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY,
					.sxdp_ifindex = if_nametoindex("vb"), .sxdp_queue_id = queue };
	struct xdp_umem_reg area = { .len = reader_memory, .chunk_size = FRAME_BYTES };
	struct xdp_mmap_offsets offsets;
	socklen_t len = sizeof(offsets);
	int fd = socket(AF_XDP, SOCK_RAW, 0), entries = (int)FRAMES;

	*memory = mmap(NULL, reader_memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	area.addr = (uintptr_t)*memory;
	if (fd < 0 || *memory == MAP_FAILED || setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &area, sizeof(area)) ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &entries, sizeof(entries)) ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &entries, sizeof(entries)) ||
	    setsockopt(fd, SOL_XDP, XDP_RX_RING, &entries, sizeof(entries)) ||
	    getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &len))
		fail("AF_XDP");
	*fill = map_ring(fd, &offsets.fr, XDP_UMEM_PGOFF_FILL_RING, sizeof(uint64_t));
	*received = map_ring(fd, &offsets.rx, XDP_PGOFF_RX_RING, sizeof(struct xdp_desc));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		fail("AF_XDP: bind");
	return fd;
}

/* Reads the received packets and gives the frames back. */
static void read_frames(unsigned int reader, const uint8_t *memory, const struct xring *fill, const struct xring *received)
{
	uint32_t end = __atomic_load_n(received->producer, __ATOMIC_ACQUIRE);
	uint32_t at = *received->consumer, back = *fill->producer, mask = FRAMES - 1;
	const struct xdp_desc *packets = received->entries;
	uint64_t *frames = fill->entries, touched = 0, bytes = 0;

	for (; at != end; at++) {
		const struct xdp_desc *packet = &packets[at & mask];

		touched += memory[packet->addr + 12];
		bytes += packet->len;
		frames[back++ & mask] = packet->addr;
	}
	__atomic_store_n(received->consumer, at, __ATOMIC_RELEASE);
	__atomic_store_n(fill->producer, back, __ATOMIC_RELEASE);
	progress[reader].touched += touched;
	progress[reader].bytes += bytes;
}

static uint64_t count_drops(int fd)
{
	struct xdp_statistics stats;
	socklen_t len = sizeof(stats);

	if (getsockopt(fd, SOL_XDP, XDP_STATISTICS, &stats, &len))
		fail("XDP_STATISTICS");
	return stats.rx_dropped + stats.rx_ring_full;
}

static void read_socket(unsigned int reader, uint32_t flags)
{
	struct xring fill, received;
	struct pollfd ready = { .events = POLLIN };
	int map = reader ? find_map() : make_map();
	uint8_t *memory;
	uint32_t i;

	if (!reader)
		attach(map, flags);
	ready.fd = open_socket(reader, &memory, &fill, &received);
	for (i = 0; i < FRAMES; i++)
		((uint64_t *)fill.entries)[i] = (uint64_t)i * FRAME_BYTES;
	__atomic_store_n(fill.producer, FRAMES, __ATOMIC_RELEASE);
	enter(map, reader, ready.fd);
	reader_answers(reader, ready.fd, count_drops);
	reader_ready(reader);
	for (;;) {
		poll(&ready, 1, -1);
		read_frames(reader, memory, &fill, &received);
	}
}

void read_xdp(unsigned int reader)
{
	read_socket(reader, XDP_FLAGS_DRV_MODE);
}

void read_xdp_generic(unsigned int reader)
{
	read_socket(reader, XDP_FLAGS_SKB_MODE);
}
