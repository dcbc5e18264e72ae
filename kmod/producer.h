/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Producers: the CPUs that deliver packets to a queue, and the lane that each of them has for itself.
 *
 * A queue's first lane is shared, under its lock. Each of the others belongs to one CPU, which takes no lock. A CPU
 * without a lane of its own produces into the shared one and asks the worker for a lane. The CPU begins to use the lane
 * that it gets with its next packet. If no lane is free, the worker takes one from a CPU that has not produced for a
 * while (lane_idle_ms): its interrupts were moved, or it was taken offline.
 *
 * The worker alone assigns lanes, one run at a time. The consumer must see the packets of a CPU in their order,
 * whichever lanes they took. So a CPU that begins to use a lane first publishes the packets in the shared one.
 *
 * A CPU does not lose a lane before the consumer has read all packets in it. First the worker clears @own, so that the
 * CPU no longer uses the lane without the lock of the shared one. It waits an RCU grace period, after which the CPU has
 * seen that. Then it takes this lock. It takes the lane away if it is still empty, unless the CPU has come back: then
 * the CPU keeps it.
 *
 * On a machine with one possible CPU the first lane belongs to that CPU. The lane of an in-line queue is shared there,
 * too: hold.c always enters and leaves it.
 */
#ifndef RC_PRODUCER_H
#define RC_PRODUCER_H

#include <linux/cpumask.h>
#include <linux/types.h>

struct rc_lane;
struct rc_queue;

/**
 * struct rc_producer - a CPU that produces into a queue
 * @own: the lane that it may produce into without a lock, NULL = none. The CPU sets it to @lane, the worker clears it
 * @unattended: packets that it dropped because no consumer was attached
 * @shunted, @shunted_bytes: packets of shunted flows that it did not deliver, see shunt.h
 * @lane: the lane that belongs to it, NULL = none. The worker sets it, and clears it under the lock of the shared lane
 * @ask: jiffies before which it does not ask; only the CPU uses it
 * @asks: it has asked for a lane, and the worker has not answered yet; the worker clears it
 *
 * The CPU uses @own and @ask with bottom halves off, and sets @own under the lock of the shared lane.
 */
struct rc_producer {
	struct rc_lane *own;
	u64 unattended;
	u64 shunted;
	u64 shunted_bytes;
	struct rc_lane *lane;
	unsigned long ask;
	bool asks;
};

/* How many lanes of a queue can be written to: one for each CPU, and a shared one if there are several CPUs. */
static inline u32 rc_producers_lanes(void)
{
	return nr_cpu_ids > 1 ? nr_cpu_ids + 1 : 1;
}

/* For a new queue. @held: it is in line. -ENOMEM. */
int rc_producers_init(struct rc_queue *queue, bool held);
void rc_producers_destroy(struct rc_queue *queue);

/*
 * The lane that this CPU produces into, which has none of its own; NULL = no consumer is attached. Bottom halves off,
 * under RCU, until rc_producer_leave.
 */
struct rc_lane *rc_producer_enter(struct rc_queue *queue);
void rc_producer_leave(struct rc_lane *lane);

#endif /* RC_PRODUCER_H */
