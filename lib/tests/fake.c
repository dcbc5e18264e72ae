// SPDX-License-Identifier: BSD-2-Clause
#include "fake.h"

#include <errno.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define RECORD_MAX 65536

struct fake_scratch {
	uint64_t size;	/* of the record */
	uint32_t cpu;	/* whose counters to use */
	uint32_t resv;
	uint8_t record[RECORD_MAX];
};

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

/* From now on only programs write to it: a process that gets its descriptor can map it for reading. */
static void freeze(int fd)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)fd;
	if (bpf(BPF_MAP_FREEZE, &attr, sizeof(attr)))
		die("BPF_MAP_FREEZE");
}

/*
 * stats = &stats_map[scratch->cpu];
 * if (bpf_ringbuf_output(ringbuf, scratch->record, scratch->size, 0)) { stats->dropped[FULL]++; return 0; }
 * stats->delivered++; stats->delivered_bytes += the slot's caplen;
 * if (the slot's len is more) { stats->truncated_bytes += len - caplen; stats->truncated++; }
 * return 1;
 */
static int load_program(const struct fake_queue *q)
{
#define INSN(c, d, s, o, i) { .code = (c), .dst_reg = (d), .src_reg = (s), .off = (short)(o), .imm = (i) }
#define LOAD_MAP(reg, kind, fd) INSN(BPF_LD | BPF_DW | BPF_IMM, reg, kind, 0, fd), INSN(0, 0, 0, 0, 0)
#define ADD_R8(field)											\
	INSN(BPF_LDX | BPF_DW | BPF_MEM, 1, 7, offsetof(struct ringcap_lane_stats, field), 0),		\
	INSN(BPF_ALU64 | BPF_ADD | BPF_X, 1, 8, 0, 0),							\
	INSN(BPF_STX | BPF_DW | BPF_MEM, 7, 1, offsetof(struct ringcap_lane_stats, field), 0)
#define RETURN(value) INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, value), INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
	const struct bpf_insn program[] = {
		LOAD_MAP(6, BPF_PSEUDO_MAP_VALUE, q->scratch_fd),
		INSN(BPF_LDX | BPF_W | BPF_MEM, 1, 6, offsetof(struct fake_scratch, cpu), 0),
		INSN(BPF_STX | BPF_W | BPF_MEM, 10, 1, -4, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),
		LOAD_MAP(1, BPF_PSEUDO_MAP_FD, q->stats_fd),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 0, 0, 2, 0),
		RETURN(0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 7, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 8, 0, 0, 1),
		INSN(BPF_LDX | BPF_DW | BPF_MEM, 3, 6, offsetof(struct fake_scratch, size), 0),
		INSN(BPF_JMP | BPF_JLE | BPF_K, 3, 0, 2, RECORD_MAX),
		RETURN(0),
		LOAD_MAP(1, BPF_PSEUDO_MAP_FD, q->ringbuf_fd),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 6, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, offsetof(struct fake_scratch, record)),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ringbuf_output),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 5, 0),
		ADD_R8(dropped[RINGCAP_DROP_FULL]),
		RETURN(0),
		ADD_R8(delivered),
		INSN(BPF_LDX | BPF_W | BPF_MEM, 8, 6,
		     offsetof(struct fake_scratch, record) + offsetof(struct ringcap_slot, caplen), 0),
		ADD_R8(delivered_bytes),
		INSN(BPF_LDX | BPF_W | BPF_MEM, 3, 6,
		     offsetof(struct fake_scratch, record) + offsetof(struct ringcap_slot, len), 0),
		INSN(BPF_ALU64 | BPF_SUB | BPF_X, 3, 8, 0, 0),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, 3, 0, 8, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 8, 3, 0, 0),
		ADD_R8(truncated_bytes),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 8, 0, 0, 1),
		ADD_R8(truncated),
		RETURN(1),
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

static void *map_array(int fd, size_t size, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die("mmap of a BPF array");
	return p;
}

void fake_make(struct fake_queue *q, uint32_t size)
{
	memset(q, 0, sizeof(*q));
	q->size = size;
	q->ringbuf_fd = make_map(BPF_MAP_TYPE_RINGBUF, 0, 0, size, 0);
	q->stats_fd = make_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct ringcap_lane_stats), FAKE_NR_STATS, BPF_F_MMAPABLE);
	q->scratch_fd = make_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct fake_scratch), 1, BPF_F_MMAPABLE);
	q->map_id = map_id(q->ringbuf_fd);
	freeze(q->stats_fd);
	q->stats = map_array(q->stats_fd, FAKE_NR_STATS * sizeof(*q->stats), PROT_READ);
	q->scratch = map_array(q->scratch_fd, sizeof(*q->scratch), PROT_READ | PROT_WRITE);
	q->program_fd = load_program(q);
}

void fake_share(struct fake_queue *other, const struct fake_queue *q)
{
	*other = *q;
	other->puts = 1;
	other->scratch_fd = make_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct fake_scratch), 1, BPF_F_MMAPABLE);
	other->scratch = map_array(other->scratch_fd, sizeof(*other->scratch), PROT_READ | PROT_WRITE);
	other->program_fd = load_program(other);
}

int fake_put(struct fake_queue *q, const struct ringcap_slot *slot, const void *data)
{
	char frame[64] = { 0 };
	union bpf_attr attr;

	q->scratch->cpu = (uint32_t)(q->puts++ % FAKE_NR_STATS);
	q->scratch->size = slot->hdr_len + slot->caplen;
	memset(q->scratch->record, 0, slot->hdr_len);
	memcpy(q->scratch->record, slot, sizeof(*slot));
	memcpy(q->scratch->record + slot->hdr_len, data, slot->caplen);
	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)q->program_fd;
	attr.test.data_in = (uint64_t)(uintptr_t)frame;
	attr.test.data_size_in = sizeof(frame);
	if (bpf(BPF_PROG_TEST_RUN, &attr, sizeof(attr)))
		die("BPF_PROG_TEST_RUN");
	return attr.test.retval == 1;
}

void fake_count(const struct fake_queue *q, struct ringcap_lane_stats *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (int i = 0; i < FAKE_NR_STATS; i++) {
		sum->delivered += q->stats[i].delivered;
		sum->delivered_bytes += q->stats[i].delivered_bytes;
		sum->truncated += q->stats[i].truncated;
		sum->truncated_bytes += q->stats[i].truncated_bytes;
		for (int k = 0; k < RINGCAP_DROP_REASONS; k++)
			sum->dropped[k] += q->stats[i].dropped[k];
	}
}

void fake_free(struct fake_queue *q)
{
	munmap((void *)(uintptr_t)q->stats, FAKE_NR_STATS * sizeof(*q->stats));
	munmap(q->scratch, sizeof(*q->scratch));
	close(q->program_fd);
	close(q->scratch_fd);
	close(q->stats_fd);
	close(q->ringbuf_fd);
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
	struct ringcap_handover_reply reply = {
		.magic = RINGCAP_MAGIC, .abi = RINGCAP_ABI, .error = (uint32_t)error, .map_id = q->map_id,
		.data_size = q->size, .nr_stats = FAKE_NR_STATS, .queue = queue, .nr_queues = queue + 1, .snaplen = 65535,
		.left = q->left,
	};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = &reply, .iov_len = sizeof(reply) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[2] = { q->ringbuf_fd, q->stats_fd };

	snprintf(reply.name, sizeof(reply.name), "%s", name);
	snprintf(reply.reason, sizeof(reply.reason), "%s", reason);
	if (with_fds) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
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
		.magic = RINGCAP_MAGIC, .abi = RINGCAP_ABI, .abi_min = RINGCAP_ABI_MIN,
	};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    send(fd, &request, sizeof(request), 0) != sizeof(request))
		die(path);
	return fd;
}

void fake_take(int fd, struct ringcap_handover_reply *reply, int fds[2])
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = reply, .iov_len = sizeof(*reply) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };

	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(*reply) || !CMSG_FIRSTHDR(&msg))
		die("hand-over reply");
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), 2 * sizeof(int));
}
