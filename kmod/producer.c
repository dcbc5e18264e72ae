// SPDX-License-Identifier: GPL-2.0-only

#include "producer.h"

#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>

#include "queue.h"
#include "worker.h"

static unsigned int rc_producer_idle_ms = 1000;
module_param_named(lane_idle_ms, rc_producer_idle_ms, uint, 0644);
MODULE_PARM_DESC(lane_idle_ms,
		 "A processor that puts nothing into its lane of a queue for so many milliseconds may lose it to one that has none (1000)");

/* Jiffies after which a lane may be taken from its CPU, and after which a CPU asks again for one. */
static unsigned long rc_producer_idle(void)
{
	return max(msecs_to_jiffies(READ_ONCE(rc_producer_idle_ms)), 1UL);
}

/* ---- what a CPU does ---- */

/* At most once in a while: with more producers than lanes there may be none to be had for long. */
static void rc_producer_ask(struct rc_queue *queue, struct rc_producer *me)
{
	if (queue->nr_lanes == 1 || time_before(jiffies, me->ask))
		return;
	me->ask = jiffies + rc_producer_idle();
	WRITE_ONCE(me->asks, true);
	rc_queue_get(queue);
	if (!rc_worker_schedule(&queue->producers_work))
		rc_queue_put(queue);
}

/*
 * Shows the consumer what is in the lane that the worker took from this CPU: it is on the CPU's list, or shown already.
 * For the order within a flow, before the first packet that goes elsewhere.
 */
static void rc_producer_lose(struct rc_producer *me)
{
	me->had = false;
	rc_publish_now();
}

/* Takes the lane that the worker offers, if it does; what is in the shared lane, whose lock we hold, is shown first. */
static struct rc_lane *rc_producer_take(struct rc_producer *me, struct rc_lane *shared)
{
	/* Pairs with the release in rc_producers_offer: what its last CPU did to the lane is done. */
	struct rc_lane *lane = smp_load_acquire(&me->offer);

	if (!lane)
		return NULL;
	rc_lane_publish_rest(shared);
	me->had = true;
	WRITE_ONCE(me->own, lane);
	/* One that sees that it was taken sees by whom. */
	smp_store_release(&me->offer, NULL);
	return lane;
}

struct rc_lane *rc_producer_enter(struct rc_queue *queue)
{
	struct rc_producer *me = this_cpu_ptr(queue->producers);
	struct rc_lane *shared = &queue->lanes[0], *own;

	if (!READ_ONCE(queue->attended))
		return NULL;
	if (me->had)
		rc_producer_lose(me);
	spin_lock(&shared->lock);
	own = rc_producer_take(me, shared);
	if (own) {
		spin_unlock(&shared->lock);
		return own;
	}
	rc_producer_ask(queue, me);
	/* For sparse, which counts a lock that is not always taken as a fault: rc_producer_leave gives it back. */
	__release(&shared->lock);
	return shared;
}

void rc_producer_leave(struct rc_lane *lane)
{
	if (!lane->shared)
		return;
	__acquire(&lane->lock);
	spin_unlock(&lane->lock);
}

/* ---- what the worker does ---- */

static void rc_tenure_begin(struct rc_lane *lane, int cpu)
{
	lane->tenure.cpu = cpu;
	lane->tenure.seen = rc_lane_activity(lane);
	lane->tenure.since = jiffies;
}

/* The lane of @cpu, which may have begun to lose it, or else one that nobody has; NULL = there is none. */
static struct rc_lane *rc_producers_find(struct rc_queue *queue, int cpu)
{
	struct rc_lane *found = NULL;
	u32 i;

	for (i = 1; i < queue->nr_lanes; i++) {
		struct rc_lane *lane = &queue->lanes[i];

		if (lane->tenure.cpu == cpu)
			return lane;
		if (!found && lane->tenure.cpu < 0)
			found = lane;
	}
	return found;
}

/* False if there is no lane for @producer, of @cpu, who has asked. */
static bool rc_producers_offer(struct rc_queue *queue, struct rc_producer *producer, int cpu)
{
	struct rc_lane *lane;

	/* The offer first: if it was taken, @own tells so. */
	if (smp_load_acquire(&producer->offer) || READ_ONCE(producer->own))
		return true;
	lane = rc_producers_find(queue, cpu);
	if (!lane || rc_queue_grow(queue, lane))
		return false;
	rc_tenure_begin(lane, cpu);
	smp_store_release(&producer->offer, lane);
	return true;
}

/* Offers lanes to those who have asked; false if there were not enough. */
static bool rc_producers_serve(struct rc_queue *queue)
{
	bool all = true;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct rc_producer *producer = per_cpu_ptr(queue->producers, cpu);

		producer->waits |= xchg(&producer->asks, false);
		if (producer->waits)
			producer->waits = !rc_producers_offer(queue, producer, cpu);
		all &= !producer->waits;
	}
	return all;
}

/* Whether its CPU had nothing for @lane for a while. The first look begins that while. */
static bool rc_producers_is_idle(struct rc_lane *lane)
{
	struct rc_tenure *tenure = &lane->tenure;
	u64 now = rc_lane_activity(lane);

	if (now == tenure->seen)
		return time_after(jiffies, tenure->since + rc_producer_idle());
	tenure->seen = now;
	tenure->since = jiffies;
	return false;
}

/* False if no lane is to be taken from its CPU. */
static bool rc_producers_expel(struct rc_queue *queue)
{
	bool any = false;
	u32 i;

	for (i = 1; i < queue->nr_lanes; i++) {
		struct rc_lane *lane = &queue->lanes[i];
		struct rc_producer *producer;

		if (lane->tenure.cpu < 0 || !rc_producers_is_idle(lane))
			continue;
		producer = per_cpu_ptr(queue->producers, lane->tenure.cpu);
		lane->tenure.leaves = any = true;
		WRITE_ONCE(producer->offer, NULL);
		WRITE_ONCE(producer->own, NULL);
	}
	return any;
}

/*
 * A grace period after a lane was taken from its CPU, nobody produces into it who found it to be its own before. Nor does
 * anybody publish it once it is not dirty. The CPU may have taken it at the same time as its offer was withdrawn: then it
 * has it, and keeps it. If the lane is dirty still, it stays the CPU's, who is offered it again when it asks.
 */
static void rc_producers_free(struct rc_queue *queue)
{
	u32 i;

	for (i = 1; i < queue->nr_lanes; i++) {
		struct rc_lane *lane = &queue->lanes[i];

		if (!lane->tenure.leaves)
			continue;
		lane->tenure.leaves = false;
		if (!READ_ONCE(per_cpu_ptr(queue->producers, lane->tenure.cpu)->own) && !smp_load_acquire(&lane->dirty))
			lane->tenure.cpu = -1;
	}
}

/* Those who got none ask again after a while, if they still produce. */
static void rc_producers_forget(struct rc_queue *queue)
{
	int cpu;

	for_each_possible_cpu(cpu)
		per_cpu_ptr(queue->producers, cpu)->waits = false;
}

static void rc_producers_work(struct work_struct *work)
{
	struct rc_queue *queue = container_of(work, struct rc_queue, producers_work);

	if (!rc_producers_serve(queue) && rc_producers_expel(queue)) {
		synchronize_net();
		rc_producers_free(queue);
		rc_producers_serve(queue);
	}
	rc_producers_forget(queue);
	rc_queue_put(queue);
}

/* ---- for the queue ---- */

int rc_producers_init(struct rc_queue *queue)
{
	int cpu;

	INIT_WORK(&queue->producers_work, rc_producers_work);
	queue->producers = alloc_percpu_gfp(struct rc_producer, GFP_KERNEL_ACCOUNT);
	if (!queue->producers)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		per_cpu_ptr(queue->producers, cpu)->ask = jiffies;
	queue->lanes[0].shared = nr_cpu_ids > 1;
	if (!queue->lanes[0].shared)
		per_cpu_ptr(queue->producers, 0)->own = &queue->lanes[0];
	return 0;
}

void rc_producers_destroy(struct rc_queue *queue)
{
	free_percpu(queue->producers);
}
