// SPDX-License-Identifier: GPL-2.0-only

#include "lane.h"

#include <linux/module.h>

#include "queue.h"

/*
 * The default is longer than the stack takes for a packet of a burst. It is shorter than the stack takes for a packet
 * that comes alone.
 */
unsigned long rc_lane_burst_ns __read_mostly = 2000;
module_param_named(burst_ns, rc_lane_burst_ns, ulong, 0644);
MODULE_PARM_DESC(burst_ns,
		 "A packet that follows another of its lane within so many nanoseconds is shown to the consumer at the end of the batch, others at once (2000)");

void rc_lane_init(struct rc_lane *lane, struct rc_waiter *waiter, struct ringcap_lane_kernel *kernel,
		  struct ringcap_lane_consumer *consumer, u32 size)
{
	BUILD_BUG_ON(sizeof(struct ringcap_slot) % 8);
	BUILD_BUG_ON(sizeof(struct ringcap_lane_kernel) != 128);
	BUILD_BUG_ON(sizeof(struct ringcap_lane_consumer) != 64);

	spin_lock_init(&lane->lock);
	lane->waiter = waiter;
	lane->snaplen = RC_LANE_UNATTENDED;
	lane->tenure.cpu = -1;
	lane->mask = size - 1;
	lane->kernel = kernel;
	lane->consumer = consumer;
}

int rc_lane_grow(struct rc_lane *lane)
{
	struct rc_region region = {};
	int err;

	if (rc_region_pages(&lane->region))
		return 0;
	err = rc_region_alloc(&region, rc_lane_size(lane), true);
	if (!err)
		rc_region_give(&lane->region, &region);
	return err;
}

void rc_lane_destroy(struct rc_lane *lane)
{
	rc_region_free(&lane->region);
}

/* The position that the consumer claims to have released, or the nearest possible one. */
static u64 rc_lane_clamp(u64 claimed, u64 low, u64 high)
{
	return clamp(claimed, low, high);
}

void rc_lane_refresh_released(struct rc_lane *lane)
{
	/* (D): the consumer has read what it released before we overwrite it. */
	u64 claimed = smp_load_acquire(&lane->consumer->released);

	smp_store_release(&lane->released, rc_lane_clamp(claimed, lane->released, lane->published));
}

/*
 * Whether something wakes a consumer that was woken and does not ask: the timer, or in line without a timer the bound on
 * how long packets wait.
 */
static bool rc_lane_is_watched(const struct rc_lane *lane)
{
	const struct rc_waiter *waiter = lane->waiter;

	return READ_ONCE(waiter->watched) || (!READ_ONCE(waiter->timeout_us) && rc_queue_of(lane)->hold);
}

/*
 * An epoll instance stays on the list of waiters while its owner is busy reading. So a consumer is not woken again until
 * it has asked whether to sleep.
 */
void rc_lane_wake(struct rc_lane *lane)
{
	struct rc_waiter *waiter = lane->waiter;

	if (rc_waiter_is_woken(waiter) && rc_lane_is_watched(lane))
		return;
	rc_lane_refresh_released(lane);
	rc_waiter_tell(waiter, lane->published - lane->released);
}

bool rc_lane_truncate(struct rc_lane *lane, u32 hdr_len, u32 len, int limit)
{
	struct ringcap_lane_stats *stats = &lane->kernel->stats;

	if (limit == RC_LANE_UNATTENDED) {
		rc_queue_drop_unattended(rc_queue_of(lane));
		return false;
	}
	if (!rc_lane_has_room(lane, RINGCAP_SLOT_SIZE(hdr_len, limit))) {
		rc_lane_drop_full(lane);
		return false;
	}
	stats->truncated++;
	stats->truncated_bytes += len - limit;
	return true;
}

void rc_lane_take_back(struct rc_lane *lane, u32 size, u32 caplen, u32 cut)
{
	struct ringcap_lane_stats *stats = &lane->kernel->stats;

	lane->head -= size;
	stats->delivered--;
	stats->delivered_bytes -= caplen;
	if (cut) {
		stats->truncated--;
		stats->truncated_bytes -= cut;
	}
	rc_lane_drop(lane, RINGCAP_DROP_NOMEM);
}

void rc_lane_publish_later(struct rc_lane *lane)
{
	if (!lane->dirty) {
		lane->dirty = true;
		rc_publish_mark(lane);
	} else if (lane->head - lane->published >= rc_lane_size(lane) / RC_LANE_BATCHES) {
		rc_lane_publish(lane);
	}
}

void rc_lane_publish_rest(struct rc_lane *lane)
{
	if (lane->head != lane->published)
		rc_lane_publish(lane);
}

static void rc_lane_publish_and_clean(struct rc_lane *lane)
{
	rc_lane_publish_rest(lane);
	/* From here on, another CPU may own the lane: pairs with the acquire in rc_producers_is_empty. */
	smp_store_release(&lane->dirty, false);
}

void rc_lane_publish_dirty(struct rc_lane *lane)
{
	if (!lane->shared) {
		rc_lane_publish_and_clean(lane);
		return;
	}
	spin_lock(&lane->lock);
	rc_lane_publish_and_clean(lane);
	spin_unlock(&lane->lock);
}

/*
 * Whether a slot can begin at @position. Whether one really begins there is not checked: a consumer with a wrong
 * position only harms itself.
 */
static bool rc_lane_is_slot(const struct rc_lane *lane, u64 position, u64 published)
{
	const struct ringcap_slot *slot = rc_lane_slot(lane, position);

	if (position % 8 || (slot->hdr_len != sizeof(*slot) && slot->hdr_len != RINGCAP_SLOT_SHORT) ||
	    slot->caplen > RINGCAP_SNAPLEN_MAX)
		return false;
	return RINGCAP_SLOT_SIZE(slot->hdr_len, slot->caplen) <= published - position;
}

/* The position that the consumer claims to have released, clamped to what is possible. */
static u64 rc_lane_position(const struct rc_lane *lane, u64 *published)
{
	u64 low = smp_load_acquire(&lane->released);

	/* Read after released, so that it is not smaller. */
	*published = smp_load_acquire(&lane->published);
	return rc_lane_clamp(READ_ONCE(lane->consumer->released), low, *published);
}

void rc_lane_unread(const struct rc_lane *lane, struct rc_lane_unread *unread)
{
	u64 published, position = rc_lane_position(lane, &published);
	const struct ringcap_slot *slot = rc_lane_slot(lane, position);

	unread->bytes = published - position;
	unread->since = 0;
	if (unread->bytes && rc_lane_is_slot(lane, position, published))
		unread->since = READ_ONCE(slot->ts_ns);
}

void rc_lane_attach(struct rc_lane *lane)
{
	u64 published, position = rc_lane_position(lane, &published);

	if (position != published && !rc_lane_is_slot(lane, position, published))
		position = published;
	*lane->consumer = (struct ringcap_lane_consumer){ .released = position, .left = published };
	WRITE_ONCE(lane->told, 0);
}

void rc_lane_reset(struct rc_lane *lane)
{
	rc_region_zero(&lane->region);

	/* The publisher may still be about to store the same values. */
	smp_store_release(&lane->kernel->producer, lane->head);
	WRITE_ONCE(lane->published, lane->head);
	smp_store_release(&lane->released, lane->head);
	*lane->consumer = (struct ringcap_lane_consumer){ .released = lane->head };
}
