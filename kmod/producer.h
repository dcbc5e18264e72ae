/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Producers: the CPUs whose packets a queue gets, and which lane each of them has for itself.
 *
 * A queue's first lane is shared, under its lock. The others belong to a CPU each, which takes no lock. A CPU without a
 * lane of its own produces into the shared one and asks the worker for one; the worker gives it one, which it takes with
 * its next packet. Where there is no lane to be had, the worker takes one from a CPU that has not produced for a while
 * (lane_idle_ms): its interrupts were moved, or it was taken offline.
 *
 * The worker alone decides who has which lane, one run at a time. No packet of a CPU is to be seen before an earlier one of it,
 * whichever lanes they took. So a CPU that begins with a lane first shows the consumer what is in the shared one. And it does not
 * lose a lane before the consumer has read all that is there: first the worker stops it from using the lane without the shared
 * one's lock (@own), and waits until it has seen that (an RCU grace period). Then, under this lock, it takes the lane if that
 * is still empty, or the CPU has come back and keeps it.
 *
 * On a machine with one possible CPU the first lane is that one's own.
 */
#ifndef RC_PRODUCER_H
#define RC_PRODUCER_H

#include <linux/cpumask.h>
#include <linux/types.h>

struct rc_lane;
struct rc_queue;

/**
 * struct rc_producer - a CPU as one that produces into a queue
 * @own: the lane that it may produce into without a lock, NULL = none. It sets it to @lane, the worker clears it
 * @unattended: packets that it dropped because no consumer was attached
 * @lane: the lane that is its own, NULL = none. The worker sets it, and clears it under the lock of the shared lane
 * @ask: jiffies before which it does not ask; its own
 * @asks: it has asked for one, and the worker not answered yet; the worker clears it
 *
 * It uses @own and @ask with bottom halves off, and sets @own under the lock of the shared lane.
 */
struct rc_producer {
	struct rc_lane *own;
	u64 unattended;
	struct rc_lane *lane;
	unsigned long ask;
	bool asks;
};

/* How many lanes of a queue can be written to: one for each CPU, and one that is shared where there are several. */
static inline u32 rc_producers_lanes(void)
{
	return nr_cpu_ids > 1 ? nr_cpu_ids + 1 : 1;
}

/* Of a new queue. -ENOMEM. */
int rc_producers_init(struct rc_queue *queue);
void rc_producers_destroy(struct rc_queue *queue);

/*
 * The lane that this CPU, which has none of its own, produces into; NULL = no consumer is attached. Bottom halves off, under RCU,
 * until rc_producer_leave.
 */
struct rc_lane *rc_producer_enter(struct rc_queue *queue);
void rc_producer_leave(struct rc_lane *lane);

#endif /* RC_PRODUCER_H */
