/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for the node agent's eBPF engine, with real BPF maps: queues whose packets are put in by a small BPF program
 * run through BPF_PROG_TEST_RUN, and the hand-over socket. Needs root.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdint.h>

#include <linux/ringcap.h>

#define FAKE_NR_STATS 2

struct fake_queue {
	int ringbuf_fd, stats_fd, scratch_fd, program_fd;
	uint32_t map_id, size;
	uint32_t left;	/* bytes that earlier consumers left, as in answers */
	uint64_t puts;
	const struct ringcap_lane_stats *stats;
	struct fake_scratch *scratch;
};

/* Makes a queue of size bytes; exits with a message when the kernel refuses. */
void fake_make(struct fake_queue *q, uint32_t size);

/* Makes another producer into the queue, for another thread or process. */
void fake_share(struct fake_queue *other, const struct fake_queue *q);

/* Puts a packet and counts it as delivered (1) or dropped because the queue is full (0), on the
 * CPUs in turn. */
int fake_put(struct fake_queue *q, const struct ringcap_slot *slot, const void *data);

/* Sums the account up. */
void fake_count(const struct fake_queue *q, struct ringcap_lane_stats *sum);

void fake_free(struct fake_queue *q);

/* Listens on DIR/NAME/QUEUE/handover, making the folders; anybody may connect. */
int fake_listen(const char *dir, const char *name, unsigned int queue);

/* Waits for a connection and its request. */
int fake_accept(int listener, struct ringcap_handover_request *request);

/* Answers with error (0 = granted), with the descriptors when with_fds. */
void fake_answer(int fd, const struct fake_queue *q, const char *name, unsigned int queue, int error, const char *reason,
		 int with_fds);

/* Removes a queue's folder; and the folders above. 0 or -1. */
int fake_remove(const char *dir, const char *name, unsigned int queue);
int fake_remove_all(const char *dir, const char *name);

/* A consumer's side without libringcap, for hostile ones. */
int fake_connect(const char *path);
void fake_take(int fd, struct ringcap_handover_reply *reply, int fds[2]);

#endif
