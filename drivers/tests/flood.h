/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Traffic that goes on while the receiving interface is changed or reset: one thread sends numbered packets, some of them
 * longer than 1514 bytes, another one reads a queue and checks that each packet in it is whole and is there once.
 */
#ifndef RT_FLOOD_H
#define RT_FLOOD_H

#include <pthread.h>

#include "consumer.h"
#include "test.h"

#define RT_FLOOD_LONGEST 6000	/* bytes */

/**
 * struct rt_flood - the two threads
 * @sender: socket
 * @queue: NULL = nobody reads
 * @read: packets that came to the queue; good after rt_flood_stop()
 * @seen: by number, whether the packet came
 */
struct rt_flood {
	int sender;
	struct rt_queue *queue;
	u64 read;
	u8 *seen;
	bool stop;
	pthread_t threads[2];
};

/* Sends on @interface, and reads @queue, which is this thread's no longer. */
void rt_flood_start(struct rt_flood *flood, const char *interface, struct rt_queue *queue);

/* Nothing may be on its way to the queue any more: what is in it is read. */
void rt_flood_stop(struct rt_flood *flood);

#endif /* RT_FLOOD_H */
