/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for the node agent's eBPF engine. It has queues in real BPF maps, and writes packets into their lanes as
 * the engine's programs do. It also has a program that rings the doorbell, and the hand-over socket. Needs root.
 *
 * The data map is not frozen, because the stand-in writes to it.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdint.h>

#include <linux/ringcap.h>

struct fake_queue {
	int data_fd, consumer_fd, bell_fd, program_fd;
	int shunts_fd;		/* the consumer's end of the socket for shunted flows, 0 = an agent that knows of none */
	uint32_t map_id, lane_size, nr_lanes, head_size;
	uint32_t watermark, timeout_us;	/* 0 by default: rings for each packet, once a sleep */
	uint64_t puts;
	struct ringcap_lane_kernel *kernel;
	struct ringcap_consumer_page *consumer;
	uint64_t *rung;		/* the last sleep that was rung in, shared by all producers */
	uint64_t rings;		/* how often it rang */
};

/* Creates a queue. Exits with a message if the kernel refuses. */
void fake_make(struct fake_queue *q, uint32_t lane_size, uint32_t nr_lanes);

/*
 * Puts a packet and counts it as delivered (1), or as dropped because the lane is full (0). It uses the lanes in turn.
 * Only one thread may put into a queue, or each thread into its own lane by fake_put_in.
 */
int fake_put(struct fake_queue *q, const struct ringcap_slot *slot, const void *data);
int fake_put_in(struct fake_queue *q, uint32_t lane, const struct ringcap_slot *slot, const void *data);

/* Does what the engine's timer does: rings once for a consumer that sleeps and has unread packets. */
void fake_timeout(struct fake_queue *q);

/* Makes the doorbell readable as a ring that comes too late does, whatever the consumer is doing. */
void fake_ring(struct fake_queue *q);

/* What was published until now, in each lane, was left by earlier consumers. */
void fake_leave(struct fake_queue *q);

/* Adds up the counters of all lanes. */
void fake_count(const struct fake_queue *q, struct ringcap_lane_stats *sum);

void fake_free(struct fake_queue *q);

/* Listens on DIR/NAME/QUEUE/handover, making the folders; anybody may connect. */
int fake_listen(const char *dir, const char *name, unsigned int queue);

/* Waits for a connection and its request. */
int fake_accept(int listener, struct ringcap_handover_request *request);

/* Answers with error (0 = granted), with the maps when with_fds, and with shunts_fd. */
void fake_answer(int fd, const struct fake_queue *q, const char *name, unsigned int queue, int error, const char *reason,
		 int with_fds);

/* The same with any version. */
void fake_answer_as(int fd, uint32_t abi, const struct fake_queue *q, const char *name, unsigned int queue, int error,
		    const char *reason, int with_fds);

/* Removes a queue's folder; and the folders above. 0 or -1. */
int fake_remove(const char *dir, const char *name, unsigned int queue);
int fake_remove_all(const char *dir, const char *name);

/* A consumer's side without libringcap, for hostile ones: data, consumer, doorbell. */
int fake_connect(const char *path);
void fake_take(int fd, struct ringcap_handover_reply *reply, int fds[3]);

#endif
