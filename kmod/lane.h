/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lanes: the producer's side of the ring protocol in include/uapi/linux/ringcap.h, whose lettered barriers are cited.
 *
 *	              written by                            read by
 *	head          producer                              producer, publisher
 *	published     producer, publisher                   poll, attach, reset
 *	released      producer, publisher                   poll, attach
 *	kernel page   producer, publisher                   consumer
 *	its account   producer                              producer, whoever asks for it
 *	consumer page consumer, attach, reset               producer, publisher, poll (clamped)
 *
 * The producer is the CPU that the lane belongs to (producer.h), with bottom halves off, and so is the publisher: neither
 * transmission from a process nor the publishing tasklet can come in between what the other does. A queue's first lane
 * is shared by the CPUs that have none of their own, and all of them produce into it under its lock. Poll and
 * attach come from other CPUs and take no lock: positions only grow, and released never passes published. What is in
 * the consumer page is clamped. Of what consumers can only read, the account of the packets that came to the lane is kept
 * there and nowhere else; one writer at a time adds to it, in one go where the machine can. The queue counts those that
 * nobody attended, and attaching copies their number into lane 0. All else in mapped pages is never read back.
 *
 * When a packet becomes visible: one that comes alone, at once. One that closely follows another waits for the end of
 * the batch (publish.h) or for RC_LANE_BATCHES of the lane to be full: a consumer that looks at the index all the time
 * shall not take its cache line from the producer for each packet of a burst.
 */
#ifndef RC_LANE_H
#define RC_LANE_H

#include <linux/cache.h>
#include <linux/list.h>
#include <linux/ringcap.h>
#include <linux/spinlock.h>

#include "account.h"
#include "overflow.h"
#include "packet.h"
#include "publish.h"
#include "region.h"
#include "waiter.h"

/* Nanoseconds within which a packet follows another closely: a module parameter. */
extern unsigned int rc_lane_burst_ns;

/* What part of a lane a batch fills at most. */
#define RC_LANE_BATCHES 8

/* rc_lane.snaplen while no consumer is attached: no packet is as short. */
#define RC_LANE_UNATTENDED (-1)

/**
 * struct rc_tenure - which CPU has a lane for itself; the worker's (producer.c)
 * @cpu: -1 = none
 * @seen, @since: jiffies since when nothing was seen to have come to the lane (rc_lane_activity)
 */
struct rc_tenure {
	int cpu;
	u64 seen;
	unsigned long since;
};

/**
 * struct rc_lane - a byte ring with one consumer
 * @head: position behind the last slot that was written
 * @released: what the consumer was last seen to have given back, in [its own last value, published]
 * @published: position that the consumer was last told
 * @last_ns: when the last packet came
 * @kernel, @consumer: this lane's part of the queue's mapped pages
 * @waiter: who waits for it: the queue's, by which that is found (rc_queue_of)
 * @mask: bytes of the ring, which are a power of two, less one
 * @snaplen: bytes of a packet that the attached consumer gets at most, or RC_LANE_UNATTENDED
 * @region: the ring, mapped twice in a row; no memory before a CPU wants the lane
 * @shared: several CPUs produce into it, and take its @lock for that, as publishers do
 * @dirty: on some CPU's list of lanes to publish; cleared by the publisher as the last thing that it does to the lane
 * @woken: the consumer was woken when it said it had released up to @woken_at and had polled @woken_polls times
 * @dirty_list: entry in a publisher's list
 * @tenure: for producer.c
 */
struct rc_lane {
	/* What each packet needs: a cache line, up to the first field of @region. */
	u64 head;
	u64 released;
	u64 published;
	u64 last_ns;
	struct ringcap_lane_kernel *kernel;
	struct rc_waiter *waiter;
	u32 mask;
	int snaplen;
	struct rc_region region;

	struct ringcap_lane_consumer *consumer;
	bool shared;
	bool dirty;
	bool woken;
	u32 woken_polls;
	u64 woken_at;

	spinlock_t lock;
	struct list_head dirty_list;
	struct rc_tenure tenure;
} ____cacheline_aligned_in_smp;

/**
 * struct rc_lane_unread - what poll wants to know of a lane
 * @bytes: published and not released
 * @since: when the oldest of that was captured, nanoseconds since the epoch; 0 if the consumer says it is within a slot
 */
struct rc_lane_unread {
	u64 bytes;
	u64 since;
};

/* Bytes of the ring. */
static inline u32 rc_lane_size(const struct rc_lane *lane)
{
	return lane->mask + 1;
}

/* Where the slot at @position is. */
static __always_inline struct ringcap_slot *rc_lane_slot(const struct rc_lane *lane, u64 position)
{
	return lane->region.addr + (position & lane->mask);
}

/* @kernel and @consumer: its part of the mapped pages; of @size bytes, for which it has no memory yet. */
void rc_lane_init(struct rc_lane *lane, struct rc_waiter *waiter, struct ringcap_lane_kernel *kernel,
		  struct ringcap_lane_consumer *consumer, u32 size);
void rc_lane_destroy(struct rc_lane *lane);

/* Gives it memory, if it has none; one at a time. -ENOMEM. May sleep. */
int rc_lane_grow(struct rc_lane *lane);

/* For the publisher: shows the consumer all that was written; the lane is off the list. */
void rc_lane_publish_dirty(struct rc_lane *lane);

/* Shows it all that was written. The caller is the producer, or holds the lock. */
void rc_lane_publish_rest(struct rc_lane *lane);

/* For the producer, which has a burst: at the end of the batch, or now if it has become long. */
void rc_lane_publish_later(struct rc_lane *lane);

/* A number that changes when a packet comes to the lane, there being room for it or not. Any CPU may ask. */
static inline u64 rc_lane_activity(const struct rc_lane *lane)
{
	const u64 *dropped = lane->kernel->stats.dropped;

	return READ_ONCE(lane->head) + READ_ONCE(dropped[RINGCAP_DROP_FULL]) + READ_ONCE(dropped[RINGCAP_DROP_NOMEM]);
}

/* Only what is published is counted as unread. */
void rc_lane_unread(const struct rc_lane *lane, struct rc_lane_unread *unread);

/* Before a consumer is attached: gives the mapped indices back their true values. */
void rc_lane_attach(struct rc_lane *lane);

/* From here on packets are delivered, as the consumer wants them; or nobody attends. */
static inline void rc_lane_set_snaplen(struct rc_lane *lane, int snaplen)
{
	/* Producers that see this see what was prepared for the consumer. */
	smp_store_release(&lane->snaplen, snaplen);
}

static __always_inline int rc_lane_snaplen(const struct rc_lane *lane)
{
	return smp_load_acquire(&lane->snaplen);
}

/* Empties and zeroes. No consumer is attached, and no producer since an RCU grace period. May sleep. */
void rc_lane_reset(struct rc_lane *lane);

/* Frees what the consumer has given back: (D) pairs with (C). */
void rc_lane_refresh_released(struct rc_lane *lane);

/* Someone sleeps while something was published, and rc_waiter_must_know. */
void rc_lane_wake(struct rc_lane *lane);

static __always_inline void rc_lane_drop(struct rc_lane *lane, enum ringcap_drop reason)
{
	lane->kernel->stats.dropped[reason]++;
}

/* Whether a slot of @bytes fits in now. */
static __always_inline bool rc_lane_has_room(struct rc_lane *lane, u32 bytes)
{
	if (likely(lane->head + bytes - 1 - lane->released <= lane->mask))
		return true;
	rc_lane_refresh_released(lane);
	return lane->head + bytes - 1 - lane->released <= lane->mask;
}

static __always_inline void rc_lane_publish(struct rc_lane *lane)
{
	struct rc_waiter *waiter = lane->waiter;
	u64 head = lane->head;

	/* (A): the slots are written before the consumer can see that they are. */
	smp_store_release(&lane->kernel->producer, head);
	smp_store_release(&lane->published, head);
	if (unlikely(rc_waiter_must_know(waiter, head - lane->released)))
		rc_lane_wake(lane);
}

/*
 * Counts a packet of @len bytes of which @limit are delivered, behind @hdr_len. Where there is no room for it or nobody attends,
 * it is dropped: false.
 */
bool rc_lane_truncate(struct rc_lane *lane, u32 hdr_len, u32 len, int limit);

/* The last slot, of @size bytes, has a packet that could not be read: it is dropped. @cut: bytes that it lacks. */
void rc_lane_take_back(struct rc_lane *lane, u32 size, u32 caplen, u32 cut);

/* A slot of so many @bytes is the lane's from here on, and @caplen bytes of its packet delivered. */
static __always_inline void rc_lane_append(struct rc_lane *lane, u32 bytes, u32 caplen)
{
	struct ringcap_lane_stats *stats = &lane->kernel->stats;

	stats->delivered++;
	stats->delivered_bytes += caplen;
	lane->head += bytes;
}

/* Makes the last slot visible, now or soon. */
static __always_inline void rc_lane_show(struct rc_lane *lane, u64 ts_ns)
{
	bool burst = ts_ns - lane->last_ns < rc_lane_burst_ns;

	lane->last_ns = ts_ns;
	if (burst)
		rc_lane_publish_later(lane);
	else
		rc_lane_publish(lane);
}

/* What a slot has that is not a short one. */
static __always_inline void rc_slot_fill_metadata(struct ringcap_slot *slot, const struct rc_packet *pkt)
{
	const struct rc_flow *flow = &pkt->flow;

	slot->vlan_tci = flow->vlan_tci;
	slot->vlan_tpid = flow->vlan_tpid;
	slot->flags |= flow->flags;
	slot->l3_off = flow->l3_off;
	slot->l4_off = flow->l4_off;
	slot->l3_proto = flow->l3_proto;
	slot->l4_proto = flow->l4_proto;
	slot->resv = 0;
	slot->rule = pkt->rule;
	slot->resv2 = 0;
}

/* All but the time. */
static __always_inline void rc_slot_fill(struct ringcap_slot *slot, const struct rc_packet *pkt, u32 caplen)
{
	slot->len = pkt->len;
	slot->caplen = caplen;
	slot->hash = pkt->hash;
	slot->ifindex = pkt->ifindex;
	slot->vlan_tci = pkt->vlan_tci;
	slot->vlan_tpid = pkt->vlan_tpid;
	slot->rx_queue = pkt->rx_queue;
	slot->flags = pkt->flags | pkt->hashed;
	slot->hdr_len = pkt->hdr_len;
	if (pkt->hdr_len != RINGCAP_SLOT_SHORT)
		rc_slot_fill_metadata(slot, pkt);
}

/* Bytes of a lane that @pkt takes. */
static inline u32 rc_lane_slot_size(const struct rc_packet *pkt, u32 snaplen)
{
	return RINGCAP_SLOT_SIZE(pkt->hdr_len, min3(pkt->len, pkt->snaplen, snaplen));
}

/* Drops a packet that there is no room for. */
static __always_inline void rc_lane_drop_full(struct rc_lane *lane)
{
	rc_lane_drop(lane, RINGCAP_DROP_FULL);
	rc_overflow_note(lane);
}

/*
 * How many bytes of @pkt are delivered. One that is cut is counted as that here, so that the others, of which there are most, need
 * not be asked again whether they are; or it is dropped for want of room or of a consumer: false.
 */
static __always_inline bool rc_lane_cut(struct rc_lane *lane, const struct rc_packet *pkt, u32 *caplen)
{
	int limit = min_t(int, pkt->snaplen, rc_lane_snaplen(lane));

	*caplen = pkt->len;
	if (likely((int)pkt->len <= limit))
		return true;
	*caplen = limit;
	return rc_lane_truncate(lane, pkt->hdr_len, pkt->len, limit);
}

/*
 * Delivers or drops @pkt. The caller is the lane's producer, or holds its lock. All that can be done before the time is asked
 * for is done then: little is kept over that. The address of @pkt is passed to nobody, see rc_queue_deliver.
 */
static __always_inline void rc_lane_put(struct rc_lane *lane, struct rc_packet *pkt)
{
	struct ringcap_slot *slot;
	u32 caplen, size;

	if (!rc_lane_cut(lane, pkt, &caplen))
		return;
	slot = rc_lane_slot(lane, lane->head);
	/* So that what is in a row need not be asked again whether it is. */
	if (caplen > pkt->len)
		__builtin_unreachable();
	size = RINGCAP_SLOT_SIZE(pkt->hdr_len, caplen);
	if (unlikely(!rc_lane_has_room(lane, size))) {
		rc_lane_drop_full(lane);
		return;
	}
	rc_slot_fill(slot, pkt, caplen);
	rc_lane_append(lane, size, caplen);
	slot->ts_ns = rc_packet_time(pkt);
	if (unlikely(!rc_packet_copy(pkt, (u8 *)slot + pkt->hdr_len, caplen))) {
		rc_lane_take_back(lane, size, caplen, pkt->len - caplen);
		return;
	}
	rc_lane_show(lane, pkt->ts_ns);
}

#endif /* RC_LANE_H */
