// SPDX-License-Identifier: GPL-2.0-only

#include "lane.h"

#include <linux/ktime.h>

#include "queue.h"

int rc_lane_init(struct rc_lane *lane, struct rc_queue *queue, u32 index, u32 size)
{
	int err;

	BUILD_BUG_ON(sizeof(struct ringcap_slot) % 8);
	BUILD_BUG_ON(sizeof(struct ringcap_lane_kernel) != 128);
	BUILD_BUG_ON(sizeof(struct ringcap_lane_consumer) != 64);

	err = rc_area_alloc(&lane->area, size, true);
	if (err)
		return err;
	spin_lock_init(&lane->lock);
	lane->queue = queue;
	lane->data = lane->area.addr;
	lane->size = size;
	lane->batch = size / 8;
	lane->kernel = (struct ringcap_lane_kernel *)queue->kernel.addr + index;
	lane->consumer = (struct ringcap_lane_consumer *)queue->consumer.addr + index;
	return 0;
}

void rc_lane_destroy(struct rc_lane *lane)
{
	rc_area_free(&lane->area);
}

/* What the consumer says it has released, if that can be; else the nearest that can. */
static u64 rc_lane_clamp(u64 claimed, u64 least, u64 most)
{
	return clamp(claimed, least, most);
}

void rc_lane_refresh_released(struct rc_lane *lane)
{
	/* (D): the consumer has read what it released before we write there. */
	u64 claimed = smp_load_acquire(&lane->consumer->released);

	WRITE_ONCE(lane->released, rc_lane_clamp(claimed, lane->released, lane->published));
}

/*
 * Keeps the time since when a consumer has something unread. Exact for a consumer that reads all there is before it
 * sleeps. For one that left a part of a batch it is the time of the batch before this one: late by no more than that.
 */
static void rc_lane_note_age(struct rc_lane *lane)
{
	ktime_t now = ktime_get();

	if (lane->released == lane->published) {
		lane->mark = lane->head;
		lane->mark_time = now;
	} else if (lane->released >= lane->mark) {
		lane->mark = lane->head;
		lane->mark_time = lane->last_time;
	}
	lane->last_time = now;
}

static void rc_lane_publish(struct rc_lane *lane)
{
	u64 head = READ_ONCE(lane->head);

	if (head == lane->published)
		return;
	rc_lane_refresh_released(lane);
	rc_lane_note_age(lane);
	WRITE_ONCE(lane->kernel->stats.delivered, lane->stats.delivered);
	WRITE_ONCE(lane->kernel->stats.delivered_bytes, lane->stats.delivered_bytes);
	WRITE_ONCE(lane->published, head);
	/* (A): the slots are written before the consumer can see that they are. */
	smp_store_release(&lane->kernel->producer, head);
	rc_queue_wake(lane->queue, head - lane->released);
}

void rc_lane_publish_dirty(struct rc_lane *lane)
{
	spin_lock(&lane->lock);
	lane->dirty = false;
	rc_lane_publish(lane);
	spin_unlock(&lane->lock);
}

/* The lane of several CPUs is locked here already; the lane of one needs the lock against poll only. */
void rc_lane_publish_early(struct rc_lane *lane)
{
	if (!lane->queue->shared)
		spin_lock(&lane->lock);
	rc_lane_publish(lane);
	if (!lane->queue->shared)
		spin_unlock(&lane->lock);
}

void rc_lane_unread(struct rc_lane *lane, struct rc_lane_unread *unread)
{
	u64 claimed, released;

	spin_lock_bh(&lane->lock);
	claimed = READ_ONCE(lane->consumer->released);
	released = rc_lane_clamp(claimed, READ_ONCE(lane->released), lane->published);
	unread->bytes = lane->published - released;
	unread->since = lane->mark_time;
	spin_unlock_bh(&lane->lock);
}

/* Whether a slot can begin at @position; not whether one does, which a consumer harms itself by getting wrong. */
static bool rc_lane_is_slot(const struct rc_lane *lane, u64 position)
{
	const struct ringcap_slot *slot = lane->data + (position & (lane->size - 1));
	u64 unread = lane->published - position;

	if (!unread)
		return true;
	if (position % 8 || slot->hdr_len != sizeof(*slot) || slot->caplen > RINGCAP_SNAPLEN_MAX)
		return false;
	return slot->size == ALIGN(sizeof(*slot) + slot->caplen, 8) && slot->size <= unread;
}

void rc_lane_attach(struct rc_lane *lane)
{
	struct ringcap_lane_consumer fresh = {};

	spin_lock_bh(&lane->lock);
	fresh.released = rc_lane_clamp(READ_ONCE(lane->consumer->released), READ_ONCE(lane->released),
				       lane->published);
	if (!rc_lane_is_slot(lane, fresh.released))
		fresh.released = lane->published;
	*lane->consumer = fresh;
	spin_unlock_bh(&lane->lock);
}

void rc_lane_reset(struct rc_lane *lane)
{
	rc_area_zero(&lane->area);

	spin_lock_bh(&lane->lock);
	lane->released = lane->head;
	lane->published = lane->head;
	*lane->consumer = (struct ringcap_lane_consumer){ .released = lane->head };
	smp_store_release(&lane->kernel->producer, lane->head);
	spin_unlock_bh(&lane->lock);
}
