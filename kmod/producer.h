/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Producers: the CPUs whose packets a queue gets, and which lane each of them has for itself.
 *
 * A queue's first lane is shared, under its lock. The others belong to a CPU each, which takes no lock. A CPU without a
 * lane of its own produces into the shared one and asks the worker for one; the worker offers it one, which it takes with
 * its next packet. Where there is no lane to be had, the worker takes one from a CPU that has not produced for a while
 * (lane_idle_ms): its interrupts were moved, or it was taken offline.
 *
 * The worker alone decides who has which lane, one run at a time. A CPU alone says when it begins with one: it first shows the
 * consumer what is in the lane that it leaves, so that no packet of a flow is seen before an earlier one. A lane changes
 * hands without being emptied, but not before its last CPU has seen that it lost it (an RCU grace period) and the lane
 * is on no list of lanes to publish.
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
 * @own: the lane that it produces into alone, NULL = none. It sets it, the worker clears it
 * @unattended: packets that it dropped because no consumer was attached
 * @offer: the lane that it may take. The worker sets it; both clear it
 * @ask: jiffies before which it does not ask; its own
 * @had: it has taken a lane, and not seen yet that the worker took it back; its own
 * @asks: it has asked since the worker last looked
 * @waits: it had, when the worker looked, and was offered none; the worker's
 *
 * @own, @ask and @had are its own with bottom halves off.
 */
struct rc_producer {
	struct rc_lane *own;
	u64 unattended;
	struct rc_lane *offer;
	unsigned long ask;
	bool had;
	bool asks;
	bool waits;
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
