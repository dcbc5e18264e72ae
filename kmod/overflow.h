/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Overflow: a consumer is too slow for its queue. An event reports this at the first packet that is dropped, and then
 * at most once a second. The packet path only looks at the clock; a worker sends the event.
 */
#ifndef RC_OVERFLOW_H
#define RC_OVERFLOW_H

#include <linux/workqueue.h>

struct rc_lane;

/**
 * struct rc_overflow - overflow state of a queue
 * @next: jiffies before which no event is sent; written by any CPU that produces into the queue
 * @work: sends the event; holds a reference to the queue while it is pending
 */
struct rc_overflow {
	unsigned long next;
	struct work_struct work;
};

/* @tell sends the event and drops the reference to the queue. */
void rc_overflow_init(struct rc_overflow *overflow, work_func_t tell);

/* A packet for @lane was dropped for lack of room. Bottom halves off; the caller keeps the lane's queue alive. */
void rc_overflow_note(const struct rc_lane *lane);

#endif /* RC_OVERFLOW_H */
