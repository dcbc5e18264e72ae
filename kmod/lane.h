/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lanes: the producer's side of the ring protocol in include/uapi/linux/ringcap.h, whose lettered barriers are cited.
 *
 *	              written by                            read by
 *	head          producer                              producer, publisher
 *	published     publisher                             publisher, producer, poll
 *	released      producer, publisher                   the same, poll
 *	kernel page   publisher (producer), attach          consumer
 *	consumer page consumer, attach                      producer, publisher, poll (clamped)
 *
 * The producer is the CPU that the lane belongs to, with bottom halves off, which excludes all others on that CPU:
 * neither transmission from a process nor the publishing tasklet can come in between. Where a queue has fewer lanes
 * than the machine has CPUs, several produce into a lane and each does so under its lock. The publisher takes the lock
 * always, once a batch, for the sake of poll. What is in the mapped pages is never read back, but for released, which
 * is clamped.
 */
#ifndef RC_LANE_H
#define RC_LANE_H

#include <linux/cache.h>
#include <linux/list.h>
#include <linux/ringcap.h>
#include <linux/spinlock.h>

#include "account.h"
#include "area.h"
#include "packet.h"
#include "publish.h"

struct rc_queue;

/**
 * struct rc_lane - a byte ring with one consumer
 * @head: position behind the last slot that was written
 * @released: what the consumer was last seen to have given back, in [its own last value, published]
 * @data: the ring, mapped twice in a row
 * @size: bytes of the ring, a power of two
 * @batch: unpublished bytes at which the producer does not wait for the end of the batch
 * @consumer, @kernel: this lane's part of the queue's mapped pages
 * @stats: the account; copied to @kernel, never read from there
 * @dirty: on some CPU's list of lanes to publish
 * @published: position that the consumer was last told
 * @lock: see above
 * @mark: position up to which @mark_time is the age of what is unread
 * @mark_time: when the oldest of what is unread was published, see rc_lane_note_age
 * @last_time: when a batch was last published
 * @dirty_list: entry in a publisher's list
 * @queue: whose lane it is
 * @area: the memory of @data
 */
struct rc_lane {
	u64 head;
	u64 released;
	void *data;
	u32 size;
	u32 batch;
	struct ringcap_lane_consumer *consumer;
	struct ringcap_lane_kernel *kernel;
	bool dirty;
	u64 published;
	struct ringcap_lane_stats stats;

	spinlock_t lock;
	u64 mark;
	ktime_t mark_time;
	ktime_t last_time;
	struct list_head dirty_list;
	struct rc_queue *queue;
	struct rc_area area;
} ____cacheline_aligned_in_smp;

/* What poll wants to know of a lane. */
struct rc_lane_unread {
	u64 bytes;
	ktime_t since;
};

int rc_lane_init(struct rc_lane *lane, struct rc_queue *queue, u32 index, u32 size);
void rc_lane_destroy(struct rc_lane *lane);

/* For the publisher: shows the consumer all that was written, and takes the lane off the list. */
void rc_lane_publish_dirty(struct rc_lane *lane);

/* For the producer in mid-batch. */
void rc_lane_publish_early(struct rc_lane *lane);

void rc_lane_unread(struct rc_lane *lane, struct rc_lane_unread *unread);

/* Before a consumer is attached: gives the mapped indices back their true values. */
void rc_lane_attach(struct rc_lane *lane);

/* Empties and zeroes. No consumer is attached, and no producer since an RCU grace period. May sleep. */
void rc_lane_reset(struct rc_lane *lane);

/* Frees what the consumer has given back: (D) pairs with (C). */
void rc_lane_refresh_released(struct rc_lane *lane);

static __always_inline void rc_lane_drop(struct rc_lane *lane, enum ringcap_drop reason)
{
	rc_account_add(lane->stats.dropped[reason], 1);
	WRITE_ONCE(lane->kernel->stats.dropped[reason], lane->stats.dropped[reason]);
}

static __always_inline bool rc_lane_has_room(struct rc_lane *lane, u32 bytes)
{
	if (likely(lane->head + bytes - lane->released <= lane->size))
		return true;
	rc_lane_refresh_released(lane);
	return lane->head + bytes - lane->released <= lane->size;
}

static __always_inline void rc_lane_commit(struct rc_lane *lane, u32 bytes, u32 wire_len)
{
	rc_account_add(lane->stats.delivered, 1);
	rc_account_add(lane->stats.delivered_bytes, wire_len);
	WRITE_ONCE(lane->head, lane->head + bytes);
	if (unlikely(!lane->dirty)) {
		lane->dirty = true;
		rc_publish_mark(lane);
	}
	if (unlikely(lane->head - lane->published >= lane->batch))
		rc_lane_publish_early(lane);
}

static __always_inline void rc_slot_fill(struct ringcap_slot *slot, const struct rc_packet *pkt, u32 caplen, u32 size)
{
	const struct rc_flow *flow = &pkt->flow;
	const struct sk_buff *skb = pkt->skb;

	slot->ts_ns = pkt->ts_ns;
	slot->len = pkt->len;
	slot->caplen = caplen;
	slot->hash = pkt->hash;
	slot->ifindex = pkt->ifindex;
	slot->vlan_tci = flow->vlan_tci;
	slot->vlan_tpid = flow->vlan_tpid;
	slot->rx_queue = skb_rx_queue_recorded(skb) ? skb_get_rx_queue(skb) : 0;
	slot->flags = pkt->flags | flow->flags;
	slot->hdr_len = sizeof(*slot);
	slot->l3_off = flow->l3_off;
	slot->l4_off = flow->l4_off;
	slot->l3_proto = flow->l3_proto;
	slot->l4_proto = flow->l4_proto;
	slot->resv = 0;
	slot->size = size;
	slot->resv2 = 0;
}

/* Delivers or drops @pkt. The caller is the lane's producer, or holds its lock. */
static __always_inline void rc_lane_put(struct rc_lane *lane, struct rc_packet *pkt, u32 snaplen)
{
	u32 caplen = min(pkt->caplen, snaplen);
	u32 size = ALIGN(sizeof(struct ringcap_slot) + caplen, 8);
	struct ringcap_slot *slot;

	if (unlikely(!rc_lane_has_room(lane, size))) {
		rc_lane_drop(lane, RINGCAP_DROP_FULL);
		return;
	}
	slot = lane->data + (lane->head & (lane->size - 1));
	rc_packet_time(pkt);
	rc_slot_fill(slot, pkt, caplen, size);
	if (unlikely(!rc_packet_copy(pkt, (u8 *)(slot + 1), caplen))) {
		rc_lane_drop(lane, RINGCAP_DROP_NOMEM);
		return;
	}
	rc_lane_commit(lane, size, pkt->len);
}

#endif /* RC_LANE_H */
