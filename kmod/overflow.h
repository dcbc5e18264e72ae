/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Overflow: a queue whose consumer is too slow tells whoever listens to events, at the first packet that is dropped and
 * then at most once a second. The packet's path only looks at the clock; a worker sends the event.
 */
#ifndef RC_OVERFLOW_H
#define RC_OVERFLOW_H

#include <linux/workqueue.h>

struct rc_queue;

/**
 * struct rc_overflow - a queue's
 * @next: jiffies before which there is no event; written by any CPU that produces into the queue
 * @work: sends the event; holds a reference to the queue while it is pending
 */
struct rc_overflow {
	unsigned long next;
	struct work_struct work;
};

void rc_overflow_init(struct rc_overflow *overflow);

/* A packet for @queue was dropped for want of room. Bottom halves off; the caller keeps the queue from going. */
void rc_overflow_note(struct rc_queue *queue);

#endif /* RC_OVERFLOW_H */
