// SPDX-License-Identifier: GPL-2.0-only

#include "queue.h"

#include <linux/memcontrol.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "hold.h"
#include "poll.h"
#include "shunt.h"
#include "transmit.h"
#include "worker.h"

static void rc_queue_free(struct rc_queue *queue)
{
	u32 i;

	rc_hold_destroy(queue->hold);
	for (i = 0; i < queue->nr_lanes; i++)
		rc_lane_destroy(&queue->lanes[i]);
	rc_region_free(&queue->consumer);
	rc_region_free(&queue->kernel);
	rc_region_free(&queue->info);
	rc_producers_destroy(queue);
	mem_cgroup_put(queue->memcg);
	kvfree(queue);
}

static void rc_queue_free_work(struct work_struct *work)
{
	struct rc_queue *queue = container_of(work, struct rc_queue, free_work);

	/* Only code that holds a reference starts its timer, and the timer itself. */
	rc_waiter_destroy(&queue->waiter);
	rc_queue_free(queue);
}

static void rc_queue_release(struct kref *ref)
{
	struct rc_queue *queue = container_of(ref, struct rc_queue, ref);

	rc_worker_schedule(&queue->free_work);
}

void rc_queue_put(struct rc_queue *queue)
{
	kref_put(&queue->ref, rc_queue_release);
}

static void rc_queue_init_lane(struct rc_queue *queue, u32 index, u32 size)
{
	struct ringcap_lane_consumer *consumer = queue->consumer.addr;
	struct ringcap_lane_kernel *kernel = queue->kernel.addr;

	rc_lane_init(&queue->lanes[index], &queue->waiter, kernel + index, consumer + index, size);
}

/* Published data has its memory already. So a queue that no longer gets packets needs no more memory. */
static int rc_queue_grow_live(struct rc_queue *queue, struct rc_lane *lane)
{
	if (rc_region_pages(&lane->region))
		return 0;
	return READ_ONCE(queue->dead) ? -ENODEV : rc_lane_grow(lane);
}

/* Charged to the process that made the queue, not to the worker or the consumer. */
int rc_queue_grow(struct rc_queue *queue, struct rc_lane *lane)
{
	struct mem_cgroup *before = set_active_memcg(queue->memcg);
	int err;

	mutex_lock(&queue->grow);
	err = rc_queue_grow_live(queue, lane);
	mutex_unlock(&queue->grow);
	set_active_memcg(before);
	return err;
}

struct rc_queue *rc_queue_create(const struct rc_queue_shape *shape, u32 index, const struct rc_queue_tell *tell)
{
	struct ringcap_lane_consumer *consumer;
	struct rc_queue *queue;
	u32 i;

	queue = kvzalloc(struct_size(queue, lanes, shape->nr_lanes), GFP_KERNEL_ACCOUNT);
	if (!queue)
		return NULL;
	kref_init(&queue->ref);
	INIT_WORK(&queue->free_work, rc_queue_free_work);
	rc_overflow_init(&queue->overflow, tell->overflow);
	rc_waiter_init(&queue->waiter, rc_poll_look);
	mutex_init(&queue->grow);
	queue->memcg = get_mem_cgroup_from_mm(current->mm);
	queue->index = index;
	queue->nr_queues = shape->nr_queues;

	if (rc_producers_init(queue, shape->in_line) ||
	    rc_region_alloc(&queue->info, sizeof(struct ringcap_queue_info), false) ||
	    rc_region_alloc(&queue->kernel, shape->nr_lanes * sizeof(struct ringcap_lane_kernel), false) ||
	    rc_region_alloc(&queue->consumer, shape->nr_lanes * sizeof(struct ringcap_lane_consumer), false))
		goto fail;
	consumer = queue->consumer.addr;
	queue->waiter.own_timeout_us = &consumer->timeout_us;
	for (i = 0; i < shape->nr_lanes; i++)
		rc_queue_init_lane(queue, i, shape->lane_size);
	queue->nr_lanes = shape->nr_lanes;
	/* The other lanes get memory when they are wanted. */
	if (rc_queue_grow(queue, &queue->lanes[0]))
		goto fail;
	if (shape->in_line) {
		queue->hold = rc_hold_create(queue, shape->lane_size, tell->past);
		if (!queue->hold)
			goto fail;
	}
	return queue;
fail:
	rc_queue_free(queue);
	return NULL;
}

DEFINE_PER_CPU(struct rc_packet, rc_queue_packet);

u64 rc_queue_deliver_shared(struct rc_queue *queue)
{
	struct rc_packet *pkt = this_cpu_ptr(&rc_queue_packet);
	struct rc_lane *lane = rc_producer_enter(queue);

	if (!lane) {
		rc_queue_drop_unattended(queue);
		return pkt->ts_ns;
	}
	rc_lane_put(lane, pkt);
	rc_producer_leave(lane);
	return pkt->ts_ns;
}

static bool rc_queue_offer_to(struct rc_lane *lane, struct rc_packet *pkt)
{
	int snaplen = rc_lane_snaplen(lane);

	if (snaplen == RC_LANE_UNATTENDED || !rc_lane_has_room(lane, rc_lane_slot_size(pkt, snaplen)))
		return false;
	rc_lane_put(lane, pkt);
	return true;
}

bool rc_queue_offer(struct rc_queue *queue, struct rc_packet *pkt)
{
	struct rc_lane *lane = rc_queue_own_lane(queue);
	bool taken;

	if (lane)
		return rc_queue_offer_to(lane, pkt);
	lane = rc_producer_enter(queue);
	if (!lane)
		return false;
	taken = rc_queue_offer_to(lane, pkt);
	rc_producer_leave(lane);
	return taken;
}

bool rc_queue_seems_full(const struct rc_queue *queue, const struct rc_packet *pkt)
{
	const struct rc_lane *lane = rc_queue_own_lane(queue) ?: &queue->lanes[0];
	u64 used = READ_ONCE(lane->head) - READ_ONCE(lane->consumer->released);

	return used + rc_lane_slot_size(pkt, READ_ONCE(queue->snaplen)) > rc_lane_size(lane);
}

static void rc_queue_fill_info(struct rc_queue *queue, const char *name)
{
	struct ringcap_queue_info *info = queue->info.addr;

	*info = (struct ringcap_queue_info){
		.magic = RINGCAP_MAGIC,
		.abi = RINGCAP_ABI,
		.abi_min = RINGCAP_ABI_MIN,
		.nr_lanes = queue->nr_lanes,
		.lane_size = rc_lane_size(&queue->lanes[0]),
		.queue = queue->index,
		.nr_queues = queue->nr_queues,
		.snaplen = queue->snaplen,
		.watermark = queue->waiter.watermark,
		.timeout_us = queue->waiter.timeout_us,
		.tx_size = queue->transmit ? RINGCAP_TX_SIZE : 0,
	};
	strscpy_pad(info->name, name, sizeof(info->name));
}

static u64 rc_queue_count_unattended(const struct rc_queue *queue)
{
	unsigned int cpu;
	u64 sum = 0;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(queue->producers, cpu)->unattended);
	return sum;
}

static u64 rc_queue_attachments;	/* under rc_chardev_lock */

int rc_queue_attach(struct rc_queue *queue, const char *name, u32 snaplen)
{
	u32 i;

	if (queue->holder != RC_QUEUE_FREE)
		return -EBUSY;
	if (rcu_access_pointer(queue->grants)) {
		queue->transmit = rc_transmit_create();
		if (!queue->transmit)
			return -ENOMEM;
	}
	queue->holder = RC_QUEUE_CONSUMER;
	queue->pid = get_pid(task_tgid(current));
	queue->attachment = ++rc_queue_attachments;
	WRITE_ONCE(queue->snaplen, max(queue->snaplen, snaplen ?: RINGCAP_SNAPLEN_MAX));
	rc_queue_fill_info(queue, name);
	for (i = 0; i < queue->nr_lanes; i++)
		rc_lane_attach(&queue->lanes[i]);
	if (queue->hold)
		rc_hold_begin(queue->hold);
	/* Only now: until its own timeout was cleared, the timer may start again for the last consumer. */
	rc_waiter_reset(&queue->waiter);
	/* For the consumer only: the count itself is kept elsewhere. */
	WRITE_ONCE(queue->lanes[0].kernel->stats.dropped[RINGCAP_DROP_UNATTENDED], rc_queue_count_unattended(queue));
	for (i = 0; i < queue->nr_lanes; i++)
		rc_lane_set_snaplen(&queue->lanes[i], queue->snaplen);
	WRITE_ONCE(queue->attended, true);
	if (queue->hold)
		rc_hold_look(queue->hold);
	return 0;
}

static void rc_queue_end_delivery(struct rc_queue *queue)
{
	u32 i;

	WRITE_ONCE(queue->attended, false);
	/* First: a packet that is being put into the lane is either held before this, or goes past the consumer. */
	if (queue->hold)
		rc_hold_end(queue->hold);
	for (i = 0; i < queue->nr_lanes; i++)
		rc_lane_set_snaplen(&queue->lanes[i], RC_LANE_UNATTENDED);
}

void rc_queue_detach(struct rc_queue *queue)
{
	rc_queue_end_delivery(queue);
	rc_shunts_end(queue);
	if (queue->transmit)
		rc_transmit_destroy(queue->transmit);
	queue->transmit = NULL;
	put_pid(queue->pid);
	queue->pid = NULL;
	queue->holder = RC_QUEUE_FREE;
}

void rc_queue_reset(struct rc_queue *queue)
{
	u32 i;

	/* After this, no producer still sees the last consumer. */
	synchronize_net();
	/* Zeroes all of it: a consumer could also leave a message for the next one behind the indices. */
	rc_region_zero(&queue->consumer);
	for (i = 0; i < queue->nr_lanes; i++)
		rc_lane_reset(&queue->lanes[i]);
	queue->snaplen = 0;
}

void rc_queue_kill(struct rc_queue *queue)
{
	WRITE_ONCE(queue->dead, true);
	queue->chardev = NULL;
	RCU_INIT_POINTER(queue->grants, NULL);
	if (queue->hold)
		rc_hold_end(queue->hold);
	rc_shunts_end(queue);
	wake_up_all(&queue->waiter.wait);
}

void rc_queue_inherit(struct rc_queue *queue, const struct rc_queue *old)
{
	rc_queue_stats(old, &queue->before);
	queue->shared_before = rc_queue_shared(old);
	rc_queue_shunted(old, &queue->shunted_before);
	queue->shunts_lost = old->shunts_lost;
	if (queue->hold)
		rc_hold_inherit(queue->hold, old->hold);
	WRITE_ONCE(queue->tx_sent, READ_ONCE(old->tx_sent));
	WRITE_ONCE(queue->tx_failed, READ_ONCE(old->tx_failed));
}

void rc_queue_take_back(struct rc_queue *queue)
{
	struct ringcap_queue_info *info = queue->info.addr;

	rc_queue_end_delivery(queue);
	/* Set before poll reports the end: a consumer that then reads this field knows the reason. */
	WRITE_ONCE(info->revoked, 1);
	rc_queue_kill(queue);
}

void rc_queue_stats(const struct rc_queue *queue, struct ringcap_lane_stats *sum)
{
	u32 i, reason;

	*sum = queue->before;
	sum->dropped[RINGCAP_DROP_UNATTENDED] += rc_queue_count_unattended(queue);
	for (i = 0; i < queue->nr_lanes; i++) {
		const struct ringcap_lane_stats *stats = &queue->lanes[i].kernel->stats;

		sum->delivered += READ_ONCE(stats->delivered);
		sum->delivered_bytes += READ_ONCE(stats->delivered_bytes);
		sum->truncated += READ_ONCE(stats->truncated);
		sum->truncated_bytes += READ_ONCE(stats->truncated_bytes);
		for (reason = 0; reason < RINGCAP_DROP_REASONS; reason++)
			if (reason != RINGCAP_DROP_UNATTENDED)
				sum->dropped[reason] += READ_ONCE(stats->dropped[reason]);
	}
}

void rc_queue_shunted(const struct rc_queue *queue, struct rc_queue_shunted *sum)
{
	unsigned int cpu;

	*sum = queue->shunted_before;
	for_each_possible_cpu(cpu) {
		const struct rc_producer *producer = per_cpu_ptr(queue->producers, cpu);

		sum->packets += READ_ONCE(producer->shunted);
		sum->bytes += READ_ONCE(producer->shunted_bytes);
	}
}

u32 rc_queue_lanes(const struct rc_queue *queue)
{
	u32 i, lanes = 0;

	for (i = 0; i < queue->nr_lanes; i++)
		lanes += !!rc_region_pages(&queue->lanes[i].region);
	return lanes;
}

u64 rc_queue_shared(const struct rc_queue *queue)
{
	const struct rc_lane *lane = &queue->lanes[0];

	return queue->shared_before + (lane->shared ? READ_ONCE(lane->kernel->stats.delivered) : 0);
}

u64 rc_queue_unread_bytes(struct rc_queue *queue)
{
	struct rc_lane_unread unread;
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < queue->nr_lanes; i++) {
		rc_lane_unread(&queue->lanes[i], &unread);
		bytes += unread.bytes;
	}
	return bytes;
}

u64 rc_queue_fullest_lane(const struct rc_queue *queue)
{
	struct rc_lane_unread unread;
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < queue->nr_lanes; i++) {
		rc_lane_unread(&queue->lanes[i], &unread);
		bytes = max(bytes, unread.bytes);
	}
	return bytes;
}

u64 rc_queue_memory(const struct rc_queue *queue)
{
	u64 bytes = struct_size(queue, lanes, queue->nr_lanes) + num_possible_cpus() * sizeof(*queue->producers);
	u32 i;

	bytes += rc_region_memory(&queue->info) + rc_region_memory(&queue->kernel) + rc_region_memory(&queue->consumer);
	for (i = 0; i < queue->nr_lanes; i++)
		bytes += rc_region_memory(&queue->lanes[i].region);
	if (queue->hold)
		bytes += rc_hold_memory(queue->hold);
	/* The area may be freed at any moment: only check whether it exists. */
	if (READ_ONCE(queue->transmit))
		bytes += RINGCAP_TX_SIZE + PAGE_SIZE;
	return bytes;
}
