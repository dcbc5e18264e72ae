// SPDX-License-Identifier: BSD-2-Clause
#include "fake.h"

#include <errno.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define FDS 3

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int bpf(int cmd, union bpf_attr *attr, size_t size)
{
	return (int)syscall(SYS_bpf, cmd, attr, size);
}

static int make_map(enum bpf_map_type type, uint32_t key, uint32_t value, uint32_t entries, uint32_t flags)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = key;
	attr.value_size = value;
	attr.max_entries = entries;
	attr.map_flags = flags;
	fd = bpf(BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		die("BPF_MAP_CREATE");
	return fd;
}

static uint32_t map_id(int fd)
{
	struct bpf_map_info info = { 0 };
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uint64_t)(uintptr_t)&info;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)))
		die("BPF_OBJ_GET_INFO_BY_FD");
	return info.id;
}

/* bpf_ringbuf_output(bell, 8 bytes, BPF_RB_FORCE_WAKEUP); return 0; */
static int load_program(int bell_fd)
{
#define INSN(c, d, s, o, i) { .code = (c), .dst_reg = (d), .src_reg = (s), .off = (short)(o), .imm = (i) }
	const struct bpf_insn program[] = {
		INSN(BPF_ST | BPF_DW | BPF_MEM, 10, 0, -8, 1),
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, bell_fd),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -8),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, 8),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0, BPF_RB_FORCE_WAKEUP),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ringbuf_output),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	static char log[65536];
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	attr.insns = (uint64_t)(uintptr_t)program;
	attr.insn_cnt = sizeof(program) / sizeof(program[0]);
	attr.license = (uint64_t)(uintptr_t)"Dual BSD/GPL";
	attr.log_buf = (uint64_t)(uintptr_t)log;
	attr.log_size = sizeof(log);
	attr.log_level = 1;
	fd = bpf(BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd < 0) {
		fprintf(stderr, "%s", log);
		die("BPF_PROG_LOAD");
	}
	return fd;
}

static size_t data_size(const struct fake_queue *q)
{
	return q->head_size + (size_t)q->nr_lanes * (q->lane_size + RINGCAP_LANE_TAIL);
}

static void *map_array(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die("mmap of a BPF array");
	return p;
}

void fake_make(struct fake_queue *q, uint32_t lane_size, uint32_t nr_lanes)
{
	memset(q, 0, sizeof(*q));
	q->lane_size = lane_size;
	q->nr_lanes = nr_lanes;
	q->head_size = nr_lanes * (uint32_t)sizeof(struct ringcap_lane_kernel) + 64;
	q->data_fd = make_map(BPF_MAP_TYPE_ARRAY, 4, (uint32_t)data_size(q), 1, BPF_F_MMAPABLE);
	q->consumer_fd = make_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct ringcap_consumer_page), 1, BPF_F_MMAPABLE);
	q->bell_fd = make_map(BPF_MAP_TYPE_RINGBUF, 0, 0, (uint32_t)sysconf(_SC_PAGESIZE), 0);
	q->map_id = map_id(q->data_fd);
	q->kernel = map_array(q->data_fd, data_size(q));
	q->consumer = map_array(q->consumer_fd, sizeof(*q->consumer));
	q->rung = (uint64_t *)(void *)((uint8_t *)q->kernel + nr_lanes * sizeof(struct ringcap_lane_kernel));
	q->program_fd = load_program(q->bell_fd);
}

void fake_ring(struct fake_queue *q)
{
	char frame[64] = { 0 };
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)q->program_fd;
	attr.test.data_in = (uint64_t)(uintptr_t)frame;
	attr.test.data_size_in = sizeof(frame);
	if (bpf(BPF_PROG_TEST_RUN, &attr, sizeof(attr)))
		die("BPF_PROG_TEST_RUN");
	__atomic_add_fetch(&q->rings, 1, __ATOMIC_RELAXED);
}

/* Rings in a sleep, unless another producer has. */
static void ring_once(struct fake_queue *q, uint64_t sleep)
{
	if (sleep && __atomic_exchange_n(q->rung, sleep, __ATOMIC_SEQ_CST) != sleep)
		fake_ring(q);
}

/* The consumer's position; it may be any. */
static uint64_t released(const struct fake_queue *q, uint32_t lane)
{
	uint64_t producer = __atomic_load_n(&q->kernel[lane].producer, __ATOMIC_RELAXED);
	uint64_t position = __atomic_load_n(&q->consumer->lane[lane].released, __ATOMIC_ACQUIRE);

	return position <= producer && producer - position <= q->lane_size ? position : producer;
}

static void count(struct ringcap_lane_stats *stats, const struct ringcap_slot *slot)
{
	stats->delivered++;
	stats->delivered_bytes += slot->caplen;
	stats->truncated += slot->caplen < slot->len;
	stats->truncated_bytes += slot->len - slot->caplen;
}

int fake_put_in(struct fake_queue *q, uint32_t lane, const struct ringcap_slot *slot, const void *data)
{
	struct ringcap_lane_kernel *kernel = &q->kernel[lane];
	uint8_t *at = (uint8_t *)q->kernel + q->head_size + lane * (size_t)(q->lane_size + RINGCAP_LANE_TAIL);
	uint64_t unread = kernel->producer - released(q, lane), sleep;
	uint32_t size = RINGCAP_SLOT_SIZE(slot->hdr_len, slot->caplen);

	if (unread + size > q->lane_size) {
		kernel->stats.dropped[RINGCAP_DROP_FULL]++;
		return 0;
	}
	at += kernel->producer & (q->lane_size - 1);
	memcpy(at, slot, slot->hdr_len);
	memcpy(at + slot->hdr_len, data, slot->caplen);
	count(&kernel->stats, slot);
	__atomic_exchange_n(&kernel->producer, kernel->producer + size, __ATOMIC_SEQ_CST);
	sleep = __atomic_load_n(&q->consumer->sleep, __ATOMIC_SEQ_CST);
	if (sleep && (!q->timeout_us || unread + size >= q->watermark))
		ring_once(q, sleep);
	return 1;
}

int fake_put(struct fake_queue *q, const struct ringcap_slot *slot, const void *data)
{
	return fake_put_in(q, (uint32_t)(q->puts++ % q->nr_lanes), slot, data);
}

void fake_timeout(struct fake_queue *q)
{
	uint64_t sleep = __atomic_load_n(&q->consumer->sleep, __ATOMIC_SEQ_CST);

	for (uint32_t i = 0; i < q->nr_lanes; i++)
		if (released(q, i) != __atomic_load_n(&q->kernel[i].producer, __ATOMIC_SEQ_CST))
			ring_once(q, sleep);
}

void fake_leave(struct fake_queue *q)
{
	for (uint32_t i = 0; i < q->nr_lanes; i++)
		q->consumer->lane[i].left = q->kernel[i].producer;
}

void fake_count(const struct fake_queue *q, struct ringcap_lane_stats *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < q->nr_lanes; i++) {
		const struct ringcap_lane_stats *stats = &q->kernel[i].stats;

		sum->delivered += stats->delivered;
		sum->delivered_bytes += stats->delivered_bytes;
		sum->truncated += stats->truncated;
		sum->truncated_bytes += stats->truncated_bytes;
		for (int k = 0; k < RINGCAP_DROP_REASONS; k++)
			sum->dropped[k] += stats->dropped[k];
	}
}

void fake_free(struct fake_queue *q)
{
	munmap(q->kernel, data_size(q));
	munmap(q->consumer, sizeof(*q->consumer));
	close(q->program_fd);
	close(q->bell_fd);
	close(q->consumer_fd);
	close(q->data_fd);
}

int fake_listen(const char *dir, const char *name, unsigned int queue)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char path[sizeof(addr.sun_path) - 16];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	mkdir(dir, 0755);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%s/%u", dir, name, queue);
	mkdir(path, 0755);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/" RINGCAP_HANDOVER_SOCKET, path);
	unlink(addr.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 8) || chmod(addr.sun_path, 0666))
		die(addr.sun_path);
	return fd;
}

int fake_accept(int listener, struct ringcap_handover_request *request)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		die("accept");
	if (recv(fd, request, sizeof(*request), 0) != sizeof(*request) || request->magic != RINGCAP_MAGIC)
		die("hand-over request");
	return fd;
}

void fake_answer(int fd, const struct fake_queue *q, const char *name, unsigned int queue, int error, const char *reason,
		 int with_fds)
{
	fake_answer_as(fd, RINGCAP_ABI, q, name, queue, error, reason, with_fds);
}

void fake_answer_as(int fd, uint32_t abi, const struct fake_queue *q, const char *name, unsigned int queue, int error,
		    const char *reason, int with_fds)
{
	struct ringcap_handover_reply reply = {
		.magic = RINGCAP_MAGIC, .abi = abi, .error = (uint32_t)error, .map_id = q->map_id,
		.lane_size = q->lane_size, .nr_lanes = q->nr_lanes, .head_size = q->head_size, .queue = queue,
		.nr_queues = queue + 1, .snaplen = 65535, .watermark = q->watermark, .timeout_us = q->timeout_us,
	};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE((FDS + 1) * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = &reply, .iov_len = sizeof(reply) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[FDS + 1] = { q->data_fd, q->consumer_fd, q->bell_fd };
	size_t n = with_fds ? FDS : 0;

	snprintf(reply.name, sizeof(reply.name), "%s", name);
	snprintf(reply.reason, sizeof(reply.reason), "%s", reason);
	if (!error && q->shunts_fd)
		fds[n++] = q->shunts_fd;
	if (n) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
	}
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0)
		die("sendmsg");
}

int fake_remove(const char *dir, const char *name, unsigned int queue)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%u/" RINGCAP_HANDOVER_SOCKET, dir, name, queue);
	if (unlink(path))
		return -1;
	*strrchr(path, '/') = '\0';
	return rmdir(path);
}

int fake_remove_all(const char *dir, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return rmdir(path) || rmdir(dir) ? -1 : 0;
}

int fake_connect(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ringcap_handover_request request = {
		.magic = RINGCAP_MAGIC, .abi = RINGCAP_ABI, .abi_min = RINGCAP_HANDOVER_ABI_MIN,
	};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    send(fd, &request, sizeof(request), 0) != sizeof(request))
		die(path);
	return fd;
}

void fake_take(int fd, struct ringcap_handover_reply *reply, int fds[FDS])
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(FDS * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = reply, .iov_len = sizeof(*reply) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };

	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(*reply) || !CMSG_FIRSTHDR(&msg))
		die("hand-over reply");
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), FDS * sizeof(int));
}
