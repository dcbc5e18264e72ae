/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Traffic that continues while the receiving interface is changed or reset. One thread sends numbered packets, some of
 * them longer than 1514 bytes. Another thread reads a queue and checks that each packet is whole and comes only once.
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
 * @read: packets that came to the queue; valid after rt_flood_stop()
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

/* Sends on @interface and reads @queue, which then belongs to the reading thread. */
void rt_flood_start(struct rt_flood *flood, const char *interface, struct rt_queue *queue);

/* Stops both threads after the rest of the queue was read. No more packets may be on their way to the queue. */
void rt_flood_stop(struct rt_flood *flood);

#endif /* RT_FLOOD_H */
