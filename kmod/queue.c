// SPDX-License-Identifier: GPL-2.0-only

#include "queue.h"

#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "cluster.h"
#include "compat/compat.h"
#include "node.h"
#include "transmit.h"

static struct workqueue_struct *rc_queue_workqueue;

int rc_queue_module_init(void)
{
	rc_queue_workqueue = alloc_workqueue("ringcap", WQ_UNBOUND, 0);
	return rc_queue_workqueue ? 0 : -ENOMEM;
}

void rc_queue_module_exit(void)
{
	/* No queue is polled any more, and rc_queue_look begins anew at most once. */
	rcu_barrier();
	rcu_barrier();
	destroy_workqueue(rc_queue_workqueue);
}

bool rc_queue_schedule(struct work_struct *work)
{
	return queue_work(rc_queue_workqueue, work);
}

static void rc_queue_free(struct rc_queue *queue)
{
	u32 i;

	for (i = 0; i < queue->nr_lanes; i++)
		rc_lane_destroy(&queue->lanes[i]);
	rc_area_free(&queue->consumer);
	rc_area_free(&queue->kernel);
	rc_area_free(&queue->info);
	kvfree(queue);
}

static void rc_queue_free_work(struct work_struct *work)
{
	struct rc_queue *queue = container_of(work, struct rc_queue, free_work);

	/* Only those who hold a reference start the timer. */
	hrtimer_cancel(&queue->timer);
	rc_queue_free(queue);
}

static void rc_queue_release(struct kref *ref)
{
	struct rc_queue *queue = container_of(ref, struct rc_queue, ref);

	rc_queue_schedule(&queue->free_work);
}

void rc_queue_put(struct rc_queue *queue)
{
	kref_put(&queue->ref, rc_queue_release);
}

static enum hrtimer_restart rc_queue_timeout(struct hrtimer *timer)
{
	struct rc_queue *queue = container_of(timer, struct rc_queue, timer);

	wake_up_interruptible_poll(&queue->wait, EPOLLIN | EPOLLRDNORM);
	return HRTIMER_NORESTART;
}

struct rc_queue *rc_queue_create(const struct rc_queue_shape *shape, u32 index)
{
	struct rc_queue *queue;
	u32 i;

	queue = kvzalloc(struct_size(queue, lanes, shape->nr_lanes), GFP_KERNEL_ACCOUNT);
	if (!queue)
		return NULL;
	kref_init(&queue->ref);
	INIT_WORK(&queue->free_work, rc_queue_free_work);
	rc_overflow_init(&queue->overflow);
	init_waitqueue_head(&queue->wait);
	rc_compat_hrtimer_setup(&queue->timer, rc_queue_timeout, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
	queue->index = index;
	queue->nr_queues = shape->nr_queues;
	queue->shared = shape->nr_lanes < nr_cpu_ids;

	if (rc_area_alloc(&queue->info, sizeof(struct ringcap_queue_info), false) ||
	    rc_area_alloc(&queue->kernel, shape->nr_lanes * sizeof(struct ringcap_lane_kernel), false) ||
	    rc_area_alloc(&queue->consumer, shape->nr_lanes * sizeof(struct ringcap_lane_consumer), false))
		goto fail;
	for (i = 0; i < shape->nr_lanes; i++) {
		if (rc_lane_init(&queue->lanes[i], queue, i, shape->lane_size))
			goto fail;
		queue->nr_lanes = i + 1;
	}
	return queue;
fail:
	rc_queue_free(queue);
	return NULL;
}

/* The caller is the lane's producer, or holds its lock. */
static void rc_queue_deliver_to(struct rc_queue *queue, struct rc_lane *lane, struct rc_packet *pkt)
{
	/* Pairs with the release in rc_queue_attach. */
	if (smp_load_acquire(&queue->attended))
		rc_lane_put(lane, pkt, queue->snaplen);
	else
		rc_lane_drop(lane, RINGCAP_DROP_UNATTENDED);
}

void rc_queue_deliver_slow(struct rc_queue *queue, struct rc_packet *pkt)
{
	struct rc_lane *lane = &queue->lanes[rc_queue_lane(queue)];

	if (!queue->shared) {
		rc_queue_deliver_to(queue, lane, pkt);
		return;
	}
	spin_lock(&lane->lock);
	rc_queue_deliver_to(queue, lane, pkt);
	spin_unlock(&lane->lock);
}

/* The same, but what can't be delivered is not dropped. */
static bool rc_queue_offer_to(struct rc_queue *queue, struct rc_lane *lane, struct rc_packet *pkt)
{
	if (!smp_load_acquire(&queue->attended) || !rc_lane_has_room(lane, rc_lane_slot_size(pkt, queue->snaplen)))
		return false;
	rc_lane_put(lane, pkt, queue->snaplen);
	return true;
}

bool rc_queue_offer(struct rc_queue *queue, struct rc_packet *pkt)
{
	struct rc_lane *lane = &queue->lanes[rc_queue_lane(queue)];
	bool taken;

	if (!queue->shared)
		return rc_queue_offer_to(queue, lane, pkt);
	spin_lock(&lane->lock);
	taken = rc_queue_offer_to(queue, lane, pkt);
	spin_unlock(&lane->lock);
	return taken;
}

bool rc_queue_seems_full(const struct rc_queue *queue, const struct rc_packet *pkt)
{
	const struct rc_lane *lane = &queue->lanes[rc_queue_lane(queue)];
	u64 used = READ_ONCE(lane->head) - READ_ONCE(lane->consumer->released);

	return used + rc_lane_slot_size(pkt, READ_ONCE(queue->snaplen)) > rc_lane_size(lane);
}

static void rc_queue_fill_info(struct rc_queue *queue, const struct rc_cluster *cluster)
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
		.watermark = queue->watermark,
		.timeout_us = queue->timeout_us,
		.tx_size = queue->transmit ? RINGCAP_TX_SIZE : 0,
	};
	memcpy(info->name, cluster->name, sizeof(info->name));
}

static u64 rc_queue_attachments;	/* under rc_node_lock */

int rc_queue_attach(struct rc_queue *queue)
{
	const struct rc_cluster *cluster = queue->node->cluster;
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
	WRITE_ONCE(queue->snaplen, max(queue->snaplen, READ_ONCE(cluster->snaplen) ?: RINGCAP_SNAPLEN_MAX));
	rc_queue_fill_info(queue, cluster);
	for (i = 0; i < queue->nr_lanes; i++)
		rc_lane_attach(&queue->lanes[i]);
	/* Producers that see these see all of the above. */
	smp_store_release(&queue->attended, true);
	smp_store_release(&queue->direct_snaplen, queue->shared ? 0 : queue->snaplen);
	return 0;
}

static void rc_queue_end_delivery(struct rc_queue *queue)
{
	WRITE_ONCE(queue->direct_snaplen, 0);
	WRITE_ONCE(queue->attended, false);
}

void rc_queue_detach(struct rc_queue *queue)
{
	rc_queue_end_delivery(queue);
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

	/* Producers that saw the last consumer are gone after this. */
	synchronize_net();
	/* All of it: a consumer can leave a message for the next one behind the indices as well. */
	rc_area_zero(&queue->consumer);
	for (i = 0; i < queue->nr_lanes; i++)
		rc_lane_reset(&queue->lanes[i]);
	queue->snaplen = 0;
}

void rc_queue_kill(struct rc_queue *queue)
{
	WRITE_ONCE(queue->dead, true);
	queue->node = NULL;
	RCU_INIT_POINTER(queue->grants, NULL);
	wake_up_all(&queue->wait);
}

void rc_queue_inherit(struct rc_queue *queue, const struct rc_queue *old)
{
	rc_queue_stats(old, &queue->before);
	WRITE_ONCE(queue->tx_sent, READ_ONCE(old->tx_sent));
	WRITE_ONCE(queue->tx_failed, READ_ONCE(old->tx_failed));
}

void rc_queue_take_back(struct rc_queue *queue)
{
	struct ringcap_queue_info *info = queue->info.addr;

	rc_queue_end_delivery(queue);
	/* Before poll says that it is over: who looks at this then knows why. */
	WRITE_ONCE(info->revoked, 1);
	rc_queue_kill(queue);
}

void rc_queue_hand(struct rc_queue *queue, struct rc_node *node)
{
	rcu_assign_pointer(queue->grants, node->cluster->grants);
	queue->dead = false;
	queue->node = node;
	node->queue = queue;
}

bool rc_queue_wake(struct rc_queue *queue, u64 unread, bool busy)
{
	u32 timeout_us = READ_ONCE(queue->timeout_us);

	if ((unread >= READ_ONCE(queue->watermark) && !busy) || !timeout_us) {
		wake_up_interruptible_poll(&queue->wait, EPOLLIN | EPOLLRDNORM);
		return true;
	}
	if (!hrtimer_is_queued(&queue->timer))
		hrtimer_start(&queue->timer, ktime_add_us(ktime_get(), timeout_us), HRTIMER_MODE_ABS_PINNED_SOFT);
	return false;
}

/*
 * A producer that looked for sleepers just before one went to sleep, while what it had published was not visible yet, has
 * told nobody (rc_queue_must_know). Producers run under RCU: one that did not see the sleeper is done after a grace period,
 * and what it published is to be seen then.
 */
static void rc_queue_look(struct rcu_head *head)
{
	struct rc_queue *queue = container_of(head, struct rc_queue, look);

	if (rc_queue_unread_bytes(queue))
		wake_up_interruptible_poll(&queue->wait, EPOLLIN | EPOLLRDNORM);
	if (atomic_cmpxchg(&queue->looks, 1, 0) == 1) {
		rc_queue_put(queue);
		return;
	}
	/* For who polled after this grace period had begun. */
	atomic_set(&queue->looks, 1);
	call_rcu(&queue->look, rc_queue_look);
}

/* Looks once more for someone who has polled and seen nothing. @looks: 1 = under way, 2 = wanted once more, 0 = neither. */
static void rc_queue_look_later(struct rc_queue *queue)
{
	if (atomic_xchg(&queue->looks, 2))
		return;
	rc_queue_get(queue);
	/* Before the grace period: whoever says 2 in between is served by it. */
	atomic_set(&queue->looks, 1);
	call_rcu(&queue->look, rc_queue_look);
}

/* How long a consumer that has had something unread since @since still sleeps; clocks may have been set meanwhile. */
static u64 rc_queue_patience(const struct rc_queue *queue, u64 since)
{
	u64 timeout = READ_ONCE(queue->timeout_us) * NSEC_PER_USEC;
	u64 now = ktime_get_real_ns();
	/* A time to come, because the clock was set back, wraps to an age beyond all patience. */
	u64 age = now - since;

	return age < timeout ? timeout - age : 0;
}

/* A consumer that is told to sleep on unread packets has the timer armed, and is looked after on none: nothing strands. */
__poll_t rc_queue_poll(struct rc_queue *queue)
{
	u32 watermark = READ_ONCE(queue->watermark);
	u64 since = U64_MAX, patience;
	u32 i;

	WRITE_ONCE(queue->polls, queue->polls + 1);
	/* We are on the list of waiters, and count, before we look; see rc_queue_must_know. */
	smp_mb();
	if (READ_ONCE(queue->dead))
		return EPOLLHUP | EPOLLERR;
	for (i = 0; i < queue->nr_lanes; i++) {
		struct rc_lane_unread unread;

		rc_lane_unread(&queue->lanes[i], &unread);
		if (!unread.bytes)
			continue;
		if (unread.bytes >= watermark)
			return EPOLLIN | EPOLLRDNORM;
		since = min(since, unread.since);
	}
	if (since == U64_MAX) {
		rc_queue_look_later(queue);
		return 0;
	}
	patience = rc_queue_patience(queue, since);
	if (!patience)
		return EPOLLIN | EPOLLRDNORM;
	if (!hrtimer_is_queued(&queue->timer))
		hrtimer_start(&queue->timer, ktime_add_ns(ktime_get(), patience), HRTIMER_MODE_ABS_PINNED_SOFT);
	return 0;
}

static const struct rc_area *rc_queue_area(const struct rc_queue *queue, u64 offset)
{
	u64 lane = (offset - RINGCAP_MMAP_DATA) >> RINGCAP_MMAP_LANE_SHIFT;

	switch (offset) {
	case RINGCAP_MMAP_INFO:
		return &queue->info;
	case RINGCAP_MMAP_KERNEL:
		return &queue->kernel;
	case RINGCAP_MMAP_CONSUMER:
		return &queue->consumer;
	case RINGCAP_MMAP_TX_INDEX:
		return queue->transmit ? &queue->transmit->index : NULL;
	case RINGCAP_MMAP_TX_DATA:
		return queue->transmit ? &queue->transmit->data : NULL;
	}
	if (offset < RINGCAP_MMAP_DATA || lane >= queue->nr_lanes ||
	    offset != RINGCAP_MMAP_DATA + (lane << RINGCAP_MMAP_LANE_SHIFT))
		return NULL;
	return &queue->lanes[lane].area;
}

/* The rest is for consumers to read only. */
static bool rc_queue_area_writable(const struct rc_queue *queue, const struct rc_area *area)
{
	return area == &queue->consumer ||
	       (queue->transmit && (area == &queue->transmit->index || area == &queue->transmit->data));
}

int rc_queue_mmap(struct rc_queue *queue, struct vm_area_struct *vma)
{
	const struct rc_area *area = rc_queue_area(queue, (u64)vma->vm_pgoff << PAGE_SHIFT);

	if (READ_ONCE(queue->dead))
		return -ENODEV;
	if (!area || !(vma->vm_flags & VM_SHARED) ||
	    vma->vm_end - vma->vm_start != (u64)area->nr_pages << (PAGE_SHIFT + area->twice))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (!rc_queue_area_writable(queue, area)) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		rc_compat_vm_flags_clear(vma, VM_MAYWRITE);
	}
	rc_compat_vm_flags_clear(vma, VM_MAYEXEC);
	rc_compat_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	return rc_area_map(area, vma);
}

void rc_queue_stats(const struct rc_queue *queue, struct ringcap_lane_stats *sum)
{
	u32 i, reason;

	*sum = queue->before;
	for (i = 0; i < queue->nr_lanes; i++) {
		const struct ringcap_lane_stats *stats = &queue->lanes[i].kernel->stats;

		sum->delivered += READ_ONCE(stats->delivered);
		sum->delivered_bytes += READ_ONCE(stats->delivered_bytes);
		sum->truncated += READ_ONCE(stats->truncated);
		sum->truncated_bytes += READ_ONCE(stats->truncated_bytes);
		for (reason = 0; reason < RINGCAP_DROP_REASONS; reason++)
			sum->dropped[reason] += READ_ONCE(stats->dropped[reason]);
	}
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

u64 rc_queue_memory(const struct rc_queue *queue)
{
	u64 bytes = struct_size(queue, lanes, queue->nr_lanes);
	u32 i;

	bytes += rc_area_memory(&queue->info) + rc_area_memory(&queue->kernel) + rc_area_memory(&queue->consumer);
	for (i = 0; i < queue->nr_lanes; i++)
		bytes += rc_area_memory(&queue->lanes[i].area);
	/* It may go at any moment: only whether it is there is looked at. */
	if (READ_ONCE(queue->transmit))
		bytes += RINGCAP_TX_SIZE + PAGE_SIZE;
	return bytes;
}
