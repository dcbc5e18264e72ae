/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lanes: the producer's side of the ring protocol. include/uapi/linux/ringcap.h defines the protocol and the barriers
 * that comments here refer to by letter.
 *
 *	              written by                            read by
 *	head          producer                              producer, publisher
 *	published     producer, publisher                   poll, attach, reset
 *	released      producer, publisher                   poll, attach
 *	kernel page   producer, publisher                   consumer
 *	its account   producer                              producer, any reader of statistics
 *	consumer page consumer, attach, reset               producer, publisher, poll (clamped)
 *
 * The producer is the CPU that owns the lane (producer.h). It runs with bottom halves off. The publisher runs on the
 * same CPU, also with bottom halves off. So a transmission from a process and the publishing tasklet cannot interrupt
 * each other. CPUs without a lane of their own share the queue's first lane. They produce into it under its lock.
 *
 * Poll and attach run on other CPUs and take no lock: positions only grow, and released never passes published. What is
 * read from the consumer page is clamped.
 *
 * The account of the packets that came to the lane is kept in the kernel page and nowhere else. Consumers can only read
 * that page. One writer at a time adds to the account, with one instruction where the machine can. The queue counts the
 * packets that came while no consumer was attached; attaching copies their number into lane 0. Nothing else in mapped
 * pages is read back.
 *
 * When a packet becomes visible: a packet that comes alone is published at once. A packet that closely follows another
 * waits until the batch ends (publish.h) or the batch fills 1/RC_LANE_BATCHES of the lane. Some consumers read the
 * index all the time: they must not take its cache line from the producer for each packet of a burst.
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

/* A packet follows another closely if it comes within this many nanoseconds. A module parameter. */
extern unsigned long rc_lane_burst_ns;

/* A batch fills at most one part in this many of a lane. */
#define RC_LANE_BATCHES 8

/* rc_lane.snaplen while no consumer is attached. Every packet is longer. */
#define RC_LANE_UNATTENDED (-1)

/**
 * struct rc_tenure - the CPU that owns a lane; only the worker uses it (producer.c)
 * @cpu: -1 = none
 * @seen: rc_lane_activity when the worker last looked
 * @since: jiffies when the worker last saw @seen change
 */
struct rc_tenure {
	int cpu;
	u64 seen;
	unsigned long since;
};

/**
 * struct rc_lane - a byte ring with one consumer
 * @head: position behind the last slot that was written
 * @released: position up to which the consumer has released, as last read; in [its previous value, @published]
 * @published: position last shown to the consumer
 * @last_ns: when the last packet came
 * @kernel, @consumer: this lane's part of the queue's mapped pages
 * @waiter: the queue's waiter; rc_queue_of finds the queue by it
 * @mask: size of the ring in bytes, a power of two, less one
 * @snaplen: maximum number of bytes of a packet that the attached consumer gets, or RC_LANE_UNATTENDED
 * @region: the ring, mapped twice in a row; it has no memory before a CPU needs the lane
 * @shared: several CPUs produce into it; they take its @lock, and so do publishers
 * @dirty: on some CPU's list of lanes to publish; the publisher clears it last
 * @dirty_list: entry in a publisher's list
 * @tenure: for producer.c
 * @told: position up to which poll last told the consumer to read
 */
struct rc_lane {
	/* Each packet needs these: one cache line, up to the first field of @region. */
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

	spinlock_t lock;
	struct list_head dirty_list;
	struct rc_tenure tenure;
	u64 told;
} ____cacheline_aligned_in_smp;

/**
 * struct rc_lane_unread - unread data of a lane, for poll
 * @bytes: published and not released
 * @since: capture time of the oldest, nanoseconds since the epoch; 0 if the consumer's position is inside a slot
 */
struct rc_lane_unread {
	u64 bytes;
	u64 since;
};

/* The consumer is told to read all that is published. */
static inline void rc_lane_tell(struct rc_lane *lane)
{
	WRITE_ONCE(lane->told, READ_ONCE(lane->published));
}

/*
 * The consumer has not released yet what it was told to read. It may have written anything into its page: this decides only
 * whether it sleeps.
 */
static inline bool rc_lane_is_told(const struct rc_lane *lane)
{
	return (s64)(READ_ONCE(lane->told) - READ_ONCE(lane->consumer->released)) > 0;
}

/* Size of the ring in bytes. */
static inline u32 rc_lane_size(const struct rc_lane *lane)
{
	return lane->mask + 1;
}

/* The slot at @position. */
static __always_inline struct ringcap_slot *rc_lane_slot(const struct rc_lane *lane, u64 position)
{
	return lane->region.addr + (position & lane->mask);
}

/* @kernel, @consumer: the lane's part of the mapped pages. @size: bytes of the ring, which has no memory yet. */
void rc_lane_init(struct rc_lane *lane, struct rc_waiter *waiter, struct ringcap_lane_kernel *kernel,
		  struct ringcap_lane_consumer *consumer, u32 size);
void rc_lane_destroy(struct rc_lane *lane);

/* Gives the lane memory, if it has none. One caller at a time. 0 or -ENOMEM. May sleep. */
int rc_lane_grow(struct rc_lane *lane);

/* For the publisher: shows the consumer all that was written. The lane is no longer on the list. */
void rc_lane_publish_dirty(struct rc_lane *lane);

/* Shows the consumer all that was written. The caller is the producer, or holds the lock. */
void rc_lane_publish_rest(struct rc_lane *lane);

/* For a producer in a burst: publishes at the end of the batch, or now if the batch has become long. */
void rc_lane_publish_later(struct rc_lane *lane);

/* A number that changes when a packet comes to the lane, with or without room for it. Any CPU may call this. */
static inline u64 rc_lane_activity(const struct rc_lane *lane)
{
	const u64 *dropped = lane->kernel->stats.dropped;

	return READ_ONCE(lane->head) + READ_ONCE(dropped[RINGCAP_DROP_FULL]) + READ_ONCE(dropped[RINGCAP_DROP_NOMEM]);
}

/* Only published bytes count as unread. */
void rc_lane_unread(const struct rc_lane *lane, struct rc_lane_unread *unread);

/* Before a consumer is attached: restores the true values of the mapped indices. */
void rc_lane_attach(struct rc_lane *lane);

/* From here on, packets are delivered with this snap length; with RC_LANE_UNATTENDED, no consumer is attached. */
static inline void rc_lane_set_snaplen(struct rc_lane *lane, int snaplen)
{
	/* Producers that see this value also see all that was prepared for the consumer. */
	smp_store_release(&lane->snaplen, snaplen);
}

static __always_inline int rc_lane_snaplen(const struct rc_lane *lane)
{
	return smp_load_acquire(&lane->snaplen);
}

/* Empties and zeroes the lane. No consumer is attached. For an RCU grace period there was no producer. May sleep. */
void rc_lane_reset(struct rc_lane *lane);

/* Frees the space that the consumer has released: (D) pairs with (C). */
void rc_lane_refresh_released(struct rc_lane *lane);

/* Data was published while a consumer sleeps, and rc_waiter_must_know is true. */
void rc_lane_wake(struct rc_lane *lane);

static __always_inline void rc_lane_drop(struct rc_lane *lane, enum ringcap_drop reason)
{
	lane->kernel->stats.dropped[reason]++;
}

/* Whether a slot of @bytes fits now. */
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

	/* (A): the slots are written before the consumer can see the new position. */
	smp_store_release(&lane->kernel->producer, head);
	smp_store_release(&lane->published, head);
	if (unlikely(rc_waiter_must_know(waiter, head, &lane->released)))
		rc_lane_wake(lane);
}

/*
 * Counts a truncated packet: @limit of its @len bytes are delivered, behind a header of @hdr_len bytes. Returns false
 * if the packet was dropped, because there is no room or no consumer is attached.
 */
bool rc_lane_truncate(struct rc_lane *lane, u32 hdr_len, u32 len, int limit);

/* Drops the packet in the last slot, of @size bytes: it could not be read. @cut: bytes that were truncated. */
void rc_lane_take_back(struct rc_lane *lane, u32 size, u32 caplen, u32 cut);

/* Adds a slot of @bytes to the lane, and counts @caplen bytes of its packet as delivered. */
static __always_inline void rc_lane_append(struct rc_lane *lane, u32 bytes, size_t caplen)
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

/* The fields that short slots do not have. */
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

/* Fills all fields except the time. */
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

/* Number of bytes that @pkt takes in a lane. */
static inline u32 rc_lane_slot_size(const struct rc_packet *pkt, u32 snaplen)
{
	return RINGCAP_SLOT_SIZE(pkt->hdr_len, min3(pkt->len, pkt->snaplen, snaplen));
}

/* Drops a packet because there is no room for it. */
static __always_inline void rc_lane_drop_full(struct rc_lane *lane)
{
	rc_lane_drop(lane, RINGCAP_DROP_FULL);
	rc_overflow_note(lane);
}

/*
 * Computes how many bytes of @pkt are delivered. A truncated packet is counted here: most packets are not truncated,
 * and this way they need no second check. Returns false if the packet was dropped, for lack of room or of a consumer.
 */
static __always_inline bool rc_lane_cut(struct rc_lane *lane, const struct rc_packet *pkt, size_t *caplen)
{
	int limit = rc_lane_snaplen(lane);

	*caplen = pkt->len;
	if (likely((int)pkt->len <= limit && pkt->len <= pkt->snaplen))
		return true;
	limit = min_t(int, pkt->snaplen, limit);
	*caplen = limit;
	return rc_lane_truncate(lane, pkt->hdr_len, pkt->len, limit);
}

/*
 * Delivers or drops @pkt. The caller is the lane's producer, or holds its lock. The clock is read last, so that few
 * values must be kept across that call. The address of @pkt is not passed on: see rc_queue_deliver.
 */
static __always_inline void rc_lane_put(struct rc_lane *lane, struct rc_packet *pkt)
{
	struct ringcap_slot *slot;
	size_t caplen;
	u32 size;

	if (!rc_lane_cut(lane, pkt, &caplen))
		return;
	slot = rc_lane_slot(lane, lane->head);
	/* So that the compiler need not check again whether the packet's data is contiguous. */
	if (caplen > pkt->len)
		__builtin_unreachable();
	size = RINGCAP_SLOT_SIZE(pkt->hdr_len, caplen);
	if (unlikely(!rc_lane_has_room(lane, size))) {
		rc_lane_drop_full(lane);
		return;
	}
	rc_slot_fill(slot, pkt, caplen);
	rc_lane_append(lane, size, caplen);
	if (unlikely(!rc_packet_copy(pkt, (u8 *)slot + pkt->hdr_len, caplen))) {
		rc_lane_take_back(lane, size, caplen, pkt->len - caplen);
		return;
	}
	slot->ts_ns = rc_packet_time(pkt);
	rc_lane_show(lane, pkt->ts_ns);
}

#endif /* RC_LANE_H */
