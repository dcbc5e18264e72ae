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

/* After an allocation failed, how long a queue does not try again to give a lane memory. */
#define RC_PRODUCER_SHORT (10 * HZ)

/* Idle time in jiffies after which a CPU may lose its lane. Also the time after which a CPU asks for a lane again. */
static unsigned long rc_producer_idle(void)
{
	return max(msecs_to_jiffies(READ_ONCE(rc_producer_idle_ms)), 1UL);
}

/* ---- the CPU's part ---- */

/* Asks at most once in a while: with more producers than lanes, no lane may be available for a long time. */
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
 * Begins with the lane that the worker gave this CPU, or continues with it. The lane is this CPU's until the worker
 * takes it back under the lock of the shared lane, which we hold. The packets in the shared lane are published first.
 */
static struct rc_lane *rc_producer_take(struct rc_producer *me, struct rc_lane *shared)
{
	/* Pairs with the release in rc_producers_offer: the lane's last CPU is done with it. */
	struct rc_lane *lane = smp_load_acquire(&me->lane);

	if (!lane)
		return NULL;
	rc_lane_publish_rest(shared);
	WRITE_ONCE(me->own, lane);
	return lane;
}

struct rc_lane *rc_producer_enter(struct rc_queue *queue)
{
	struct rc_producer *me = this_cpu_ptr(queue->producers);
	struct rc_lane *shared = &queue->lanes[0], *own;

	if (!READ_ONCE(queue->attended))
		return NULL;
	spin_lock(&shared->lock);
	own = rc_producer_take(me, shared);
	if (own) {
		spin_unlock(&shared->lock);
		return own;
	}
	rc_producer_ask(queue, me);
	/* For sparse, which reports a lock that is taken only conditionally: rc_producer_leave unlocks it. */
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

/* ---- the worker's part ---- */

static void rc_tenure_begin(struct rc_lane *lane, int cpu)
{
	lane->tenure.cpu = cpu;
	lane->tenure.seen = rc_lane_activity(lane);
	lane->tenure.since = jiffies;
}

/* A lane that no CPU has and that has memory, if there is one; else one without memory; NULL = all are taken. */
static struct rc_lane *rc_producers_find(struct rc_queue *queue)
{
	struct rc_lane *found = NULL;
	u32 i;

	for (i = 1; i < queue->nr_lanes; i++) {
		struct rc_lane *lane = &queue->lanes[i];

		if (lane->tenure.cpu >= 0)
			continue;
		if (rc_region_pages(&lane->region))
			return lane;
		found = found ?: lane;
	}
	return found;
}

static void rc_producers_tell(struct rc_queue *queue, const struct rc_lane *lane)
{
	const struct ringcap_queue_info *info = queue->info.addr;

	pr_warn_ratelimited("ringcap: %.*s, queue %u: no memory for %u bytes more, so processors without a lane share the first; raise the limit of the memory cgroup that made it, or reduce RINGCAP_A_LANE_SIZE\n",
			    RINGCAP_NAME_MAX, info->name, queue->index, rc_lane_size(lane));
}

/*
 * Gives @lane memory, if it has none. After a failure it does not try again for a while: each attempt takes what memory
 * is left, from others as well, before it fails.
 */
static bool rc_producers_grow(struct rc_queue *queue, struct rc_lane *lane)
{
	int err;

	if (rc_region_pages(&lane->region))
		return true;
	if (time_before(jiffies, queue->grow_again))
		return false;
	err = rc_queue_grow(queue, lane);
	if (err == -ENOMEM) {
		queue->grow_again = jiffies + RC_PRODUCER_SHORT;
		rc_producers_tell(queue, lane);
	}
	return !err;
}

/* Gives a lane to @producer of @cpu, which has asked for one. Returns false if there is none. */
static bool rc_producers_offer(struct rc_queue *queue, struct rc_producer *producer, int cpu)
{
	struct rc_lane *lane;

	if (producer->lane)
		return true;
	lane = rc_producers_find(queue);
	if (!lane || !rc_producers_grow(queue, lane))
		return false;
	rc_tenure_begin(lane, cpu);
	smp_store_release(&producer->lane, lane);
	return true;
}

/*
 * Offers lanes to the CPUs that have asked for one; returns false if there were not enough. In the @last round, the
 * request of a CPU that gets none is cleared. It asks again after a while, if it still produces.
 */
static bool rc_producers_serve(struct rc_queue *queue, bool last)
{
	bool all = true;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct rc_producer *producer = per_cpu_ptr(queue->producers, cpu);
		bool served;

		/* Each packet reads this cache line. So we write to it only when there is an answer. */
		if (!READ_ONCE(producer->asks))
			continue;
		served = rc_producers_offer(queue, producer, cpu);
		if (served || last)
			WRITE_ONCE(producer->asks, false);
		all &= served;
	}
	return all;
}

/* Whether the lane's CPU has had nothing for it for a while. The first call starts that time. */
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

/* Whether @lane has neither unread packets nor packets that are still to be published. */
static bool rc_producers_is_empty(const struct rc_lane *lane)
{
	struct rc_lane_unread unread;

	/*
	 * Pairs with the release in rc_lane_publish_and_clean: if the lane is not dirty, all packets written to it are
	 * published.
	 */
	if (smp_load_acquire(&lane->dirty))
		return false;
	rc_lane_unread(lane, &unread);
	return !unread.bytes;
}

/* Makes idle CPUs take the lock to use their lanes. Returns a bit for each of these lanes. */
static u64 rc_producers_expel(struct rc_queue *queue)
{
	u64 expelled = 0;
	u32 i;

	for (i = 1; i < queue->nr_lanes; i++) {
		struct rc_lane *lane = &queue->lanes[i];

		if (lane->tenure.cpu < 0 || !rc_producers_is_idle(lane) || !rc_producers_is_empty(lane))
			continue;
		WRITE_ONCE(per_cpu_ptr(queue->producers, lane->tenure.cpu)->own, NULL);
		expelled |= BIT_ULL(i);
	}
	return expelled;
}

/*
 * Called a grace period after @lane was taken from its CPU. If the CPU came back, it did so under the lock that we
 * take, and it produces into the lane only after that.
 *
 * If it has not come back, and the consumer has read everything that it left in the lane, the lane is free. Then no
 * packet of this CPU can be overtaken by one that it puts elsewhere, in whatever order the consumer looks at lanes.
 */
static void rc_producers_free(struct rc_queue *queue, struct rc_lane *lane)
{
	struct rc_producer *producer = per_cpu_ptr(queue->producers, lane->tenure.cpu);

	spin_lock_bh(&queue->lanes[0].lock);
	if (!producer->own && rc_producers_is_empty(lane)) {
		producer->lane = NULL;
		lane->tenure.cpu = -1;
	}
	spin_unlock_bh(&queue->lanes[0].lock);
}

static void rc_producers_free_all(struct rc_queue *queue, u64 expelled)
{
	u32 i;

	for (i = 1; i < queue->nr_lanes; i++)
		if (expelled & BIT_ULL(i))
			rc_producers_free(queue, &queue->lanes[i]);
}

static void rc_producers_assign(struct rc_queue *queue)
{
	u64 expelled;

	if (rc_producers_serve(queue, false))
		return;
	expelled = rc_producers_expel(queue);
	if (expelled) {
		synchronize_net();
		rc_producers_free_all(queue, expelled);
	}
	rc_producers_serve(queue, true);
}

static void rc_producers_work(struct work_struct *work)
{
	struct rc_queue *queue = container_of(work, struct rc_queue, producers_work);

	rc_producers_assign(queue);
	rc_queue_put(queue);
}

/* ---- for queue.c ---- */

int rc_producers_init(struct rc_queue *queue, bool held)
{
	int cpu;

	INIT_WORK(&queue->producers_work, rc_producers_work);
	queue->grow_again = jiffies;
	queue->producers = alloc_percpu_gfp(struct rc_producer, GFP_KERNEL_ACCOUNT);
	if (!queue->producers)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		per_cpu_ptr(queue->producers, cpu)->ask = jiffies;
	queue->lanes[0].shared = held || nr_cpu_ids > 1;
	if (!queue->lanes[0].shared)
		per_cpu_ptr(queue->producers, 0)->own = &queue->lanes[0];
	return 0;
}

void rc_producers_destroy(struct rc_queue *queue)
{
	free_percpu(queue->producers);
}
