/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queues whose maps a ring's program reaches without a look-up (is_direct): those of a plain ring's cluster, if they are
 * few. The loader writes the maps' addresses into the program: see node-agent/engine/ebpf/direct.go.
 *
 * A queue can get other maps while the program runs. So the node has a gate for each queue: the id of the data map that
 * the attached consumer has, 0 = none. If that is not the program's map, the packet goes by the tables. The agent
 * closes the gate before it replaces the maps. It then changes a map of maps, which waits for programs that still run.
 */
#ifndef RC_DIRECT_H
#define RC_DIRECT_H

#include "constant.h"
#include "queue.h"

#define DIRECT_MAX	4	/* queues of a cluster that are reached so */

#define DIRECT_QUEUES(DO) DO(0) DO(1) DO(2) DO(3)

/*
 * The loader replaces the sections by the queue's maps, and the gate's by the node's table with the queue's place. What is
 * beyond the cluster's queues is a copy of its first one.
 */
#define DIRECT_QUEUE(n) \
	__u8 direct_data_##n SEC(".data.queue" #n); \
	struct ringcap_consumer_page direct_page_##n SEC(".data.page" #n); \
	volatile __u32 direct_gate_##n SEC(".data.gate" #n); \
	DECLARE_CONSTANT(direct_id_##n); /* the data map's */
DIRECT_QUEUES(DIRECT_QUEUE)

/* The cluster's settings, which struct output describes. */
DECLARE_FLAG(direct_hashed);
DECLARE_CONSTANT(direct_by_flow);	/* plain packets are hashed by their five-tuple, with this key: */
DECLARE_CONSTANT(direct_key_0);
DECLARE_CONSTANT(direct_key_1);
DECLARE_CONSTANT(direct_queues);
DECLARE_CONSTANT(direct_lanes);
DECLARE_CONSTANT(direct_own_lanes);	/* those that no CPUs share, if not each CPU has one */
DECLARE_FLAG(direct_lane_each);	/* each CPU has the lane of its number */
DECLARE_OPERAND(direct_owners);	/* where the bytes of the CPUs begin: see lane.h */
DECLARE_OPERAND(direct_head_size);
DECLARE_CONSTANT(direct_lane_size);
DECLARE_OPERAND(direct_lane_mask);	/* positions in a lane: its size, less the slots' alignment */
DECLARE_OPERAND(direct_stride);	/* from one lane to the next */
DECLARE_CONSTANT(direct_snaplen);
DECLARE_CONSTANT(direct_base);
DECLARE_CONSTANT(direct_watermark);	/* 0 if the consumer is woken for each packet */
DECLARE_CONSTANT(direct_timeout);

/**
 * struct direct - where a packet goes
 * @data: the queue's data map
 * @lane: this CPU's own lane in it, and its @number
 */
struct direct {
	void *data;
	struct ringcap_lane_kernel *lane;
	__u64 number;
};

#define DIRECT_CASE(n) \
	case n: \
		if (direct_gate_##n != CONSTANT(direct_id_##n)) \
			return 0; \
		to->data = &direct_data_##n; \
		opaque(to->data); \
		break;

/* Finds the queue's data; false if the program does not have them, or the gate is closed. */
static __always_inline int direct_queue(struct direct *to, __u64 queue)
{
	switch (queue) {
	DIRECT_QUEUES(DIRECT_CASE)
	default:
		return 0;
	}
	return 1;
}

#define DIRECT_PAGE_CASE(n) \
	case n: \
		page = &direct_page_##n; \
		opaque(page); \
		break;

/* The consumer's page. struct direct does not have it: it would be saved to the stack while the packet is copied. */
static __always_inline struct ringcap_consumer_page *direct_page(__u64 queue)
{
	struct ringcap_consumer_page *page = NULL;

	switch (queue) {
	DIRECT_QUEUES(DIRECT_PAGE_CASE)
	}
	return page;
}

/*
 * Finds the lane of CPU @cpu, which is within the operand cpu_mask; false if other CPUs share it, or the CPU has not
 * asked for one.
 */
static __always_inline int direct_lane(struct direct *to, __u64 cpu)
{
	const __u8 *owners = to->data;
	__u64 number = cpu;

	if (IS_SET(direct_lane_each, cpu)) {
		opaque(number);
		if (number >= CONSTANT(direct_lanes))
			return 0; /* never */
	} else {
		OPERATE(owners, +=, direct_owners);
		/* Of the lanes behind the shared one; see lane.h. Of 0 and 1 it makes a number that is too large. */
		number = (__u64)owners[cpu] - 2;
		opaque(number);
		if (number >= CONSTANT(direct_own_lanes))
			return 0;
		number++;
	}
	to->number = number;
	to->lane = to->data + number * sizeof(*to->lane);
	return 1;
}

/* The slot at @position of the lane: lane_slot by constants. */
static __always_inline struct ringcap_slot *direct_slot(const struct direct *to, __u64 position)
{
	__u64 place = to->number;

	OPERATE(position, &=, direct_lane_mask);
	OPERATE(place, *=, direct_stride); /* Linux 6.1 bounds a product if its second factor is known. */
	place += position;
	OPERATE(place, +=, direct_head_size);
	return to->data + place;
}

/*
 * Reads how far the consumer has released this CPU's lane of queue @queue, and remembers it. Returns the bytes from
 * there to @end. It finds the lane again, so that callers need not keep what only few packets need.
 */
static __attribute__((noinline)) __u64 direct_look(__u64 queue, __u64 end)
{
	struct direct to;
	__u64 released;

	if (!direct_queue(&to, queue) || !direct_lane(&to, this_cpu()))
		return ~0ULL; /* its consumer is gone */
	released = lane_released(to.lane, direct_page(queue), to.number, to.lane->producer);
	to.lane->resv[LANE_RELEASED] = released;
	return end - released;
}

/* Fills in the slot of a packet without a VLAN tag. */
static __always_inline void direct_fill(void *ctx, const enum hook hook, struct ringcap_slot *at, __u32 len,
					__u32 caplen, __u32 hash, const __u32 flags, __u64 now)
{
	/* Two fields in one store: @flags, then the header's length. */
	__u16 last = rc_be16(flags << 8 | RINGCAP_SLOT_SHORT);

	at->ts_ns = now;
	at->len = len;
	at->caplen = caplen;
	at->hash = hash;
	at->ifindex = packet_ifindex(ctx, hook);
	at->vlan_tci = 0;
	at->vlan_tpid = 0;
	at->rx_queue = packet_rx_queue(ctx, hook, flags);
	if (packet_is_merged(ctx, hook)) {
		last |= rc_be16(RINGCAP_SLOT_MERGED << 8);
		opaque(last);
	}
	__builtin_memcpy(&at->flags, &last, sizeof(last));
}

/* queue_wake for a lane whose unread bytes end at @end, if direct_wake did not settle it. */
static __attribute__((noinline)) int direct_ring(__u64 queue, __u64 sleep, __u64 end)
{
	int now = direct_look(queue, end) >= CONSTANT(direct_watermark);

	bell_look(CONSTANT(direct_base) + queue, sleep, now, CONSTANT(direct_timeout));
	return 0;
}

/* Wakes the consumer if it is time. The unread bytes end at @end. */
static __always_inline void direct_wake(const struct direct *to, __u64 queue, __u64 end)
{
	struct ringcap_consumer_page *page = direct_page(queue);
	__u64 unread = end - to->lane->resv[LANE_RELEASED], sleep = read_now(page->sleep), noted;

	if (!sleep)
		return;
	noted = read_now(page->noted);
	if (noted == NOTED_ARMED(sleep)) {
		if (unread < CONSTANT(direct_watermark))
			return;
	} else if (noted == NOTED_RUNG(sleep)) {
		return;
	}
	direct_ring(queue, sleep, end);
}

/* Whether the lane is known to have room up to @end. */
static __always_inline int direct_has_room(const struct direct *to, __u64 end)
{
	return end - to->lane->resv[LANE_RELEASED] <= CONSTANT(direct_lane_size);
}

/*
 * Writes a packet without a VLAN tag into the lane, and wakes the consumer, or counts why not. @flags: the slot's.
 * @now: the time. False if nothing was done: the packet goes by the tables, where the lane learns what its consumer has
 * released since. That is rare unless packets are dropped.
 */
static __always_inline int direct_write(void *ctx, const enum hook hook, const struct direct *to, __u64 queue,
					__u64 len, __u32 hash, const __u32 flags, __u64 now)
{
	__u64 caplen = len < CONSTANT(direct_snaplen) ? len : CONSTANT(direct_snaplen);
	struct ringcap_lane_kernel *lane = to->lane;
	__u64 producer = lane->producer, size = RINGCAP_SLOT_SHORT + caplen + 7, end;
	struct ringcap_slot *at = direct_slot(to, producer);

	/* Else the compiler would add up the place, or mask, in a way that takes more instructions. */
	opaque(at);
	opaque(size);
	end = producer + (size & ~7ULL); /* RINGCAP_SLOT_SIZE */
	if (!direct_has_room(to, end))
		return 0;
	direct_fill(ctx, hook, at, len, caplen, hash, flags, now);
	/* From the slot: there are no registers in which the lengths would outlast the copy. */
	if (!packet_copy_small(ctx, hook, (__u8 *)at + RINGCAP_SLOT_SHORT, caplen) &&
	    packet_load(ctx, hook, (__u8 *)at + RINGCAP_SLOT_SHORT, *(volatile __u32 *)&at->caplen)) {
		queue_lose(lane);
		return 1;
	}
	queue_count(lane, *(volatile __u32 *)&at->len, *(volatile __u32 *)&at->caplen);
	/* (A), and (E): the consumer's sleep is read after it. */
	__sync_lock_test_and_set(&lane->producer, end);
	direct_wake(to, queue, end);
	return 1;
}

/*
 * Delivers a packet without a VLAN tag to queue @queue of the plain ring's cluster; false if nothing was done, because
 * it has to go by the tables.
 */
static __always_inline int direct_put(void *ctx, const enum hook hook, __u64 queue, __u64 cpu, __u64 len, __u32 hash,
				      const __u32 flags, __u64 now)
{
	struct direct to;

	return direct_queue(&to, queue) && direct_lane(&to, cpu) &&
	       direct_write(ctx, hook, &to, queue, len, hash, flags, now);
}

#endif /* RC_DIRECT_H */
