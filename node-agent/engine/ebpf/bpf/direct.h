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
DECLARE_CONSTANT(direct_hashed);
DECLARE_CONSTANT(direct_queues);
DECLARE_CONSTANT(direct_lanes);
DECLARE_CONSTANT(direct_lane_each);	/* each CPU has the lane of its number */
DECLARE_CONSTANT(direct_owners);	/* where the bytes of the CPUs begin: see lane.h */
DECLARE_CONSTANT(direct_head_size);
DECLARE_CONSTANT(direct_lane_size);
DECLARE_CONSTANT(direct_lane_mask);	/* positions in a lane: its size, less the slots' alignment */
DECLARE_CONSTANT(direct_stride);	/* from one lane to the next */
DECLARE_CONSTANT(direct_snaplen);
DECLARE_CONSTANT(direct_base);
DECLARE_CONSTANT(direct_watermark);
DECLARE_CONSTANT(direct_timeout);

/**
 * struct direct - where a packet goes
 * @data, @page: the queue's maps
 * @lane: this CPU's own lane in them, and its @number
 */
struct direct {
	void *data;
	struct ringcap_consumer_page *page;
	struct ringcap_lane_kernel *lane;
	__u64 number;
};

#define DIRECT_CASE(n) \
	case n: \
		if (direct_gate_##n != CONSTANT(direct_id_##n)) \
			return 0; \
		to->data = &direct_data_##n; \
		to->page = &direct_page_##n; \
		opaque(to->data); \
		opaque(to->page); \
		break;

/* Finds the queue's maps; false if the program does not have them, or the gate is closed. */
static __always_inline int direct_queue(struct direct *to, __u32 queue)
{
	switch (queue) {
	DIRECT_QUEUES(DIRECT_CASE)
	default:
		return 0;
	}
	return 1;
}

/*
 * Makes @n 0 unless it is below @most. The verifier sees the bound in the register of the result. Of a comparison in C,
 * Linux 6.1 would not know it if the compiler had saved the number to the stack before.
 */
#define below(n, most) asm volatile("if %0 < %1 goto +1\n\t%0 = 0" : "+r"(n) : "r"(most))

/* Finds this CPU's lane; false if other CPUs share it, or the CPU has not asked for one. */
static __always_inline int direct_lane(struct direct *to, __u64 cpu)
{
	const __u8 *owners = to->data + CONSTANT(direct_owners);
	__u64 number = cpu;

	if (!CONSTANT(direct_lane_each)) {
		cpu &= CONSTANT(cpu_mask);
		opaque(cpu);
		number = (__u64)owners[cpu] - 1;
	}
	below(number, CONSTANT(direct_lanes));
	if (!CONSTANT(direct_lane_each) && !number)
		return 0;
	to->number = number;
	to->lane = to->data + number * sizeof(*to->lane);
	return 1;
}

/* The slot at @position of the lane: lane_slot by constants. */
static __always_inline struct ringcap_slot *direct_slot(const struct direct *to, __u64 position)
{
	__u64 number = to->number, at = position & CONSTANT(direct_lane_mask);

	opaque(at);
	/* Linux 6.1 bounds a product if its second factor is known. */
	asm volatile("%0 *= %1" : "+r"(number) : "r"(CONSTANT(direct_stride)));
	return to->data + (CONSTANT(direct_head_size) + number + at);
}

/* Whether @size bytes fit. */
static __always_inline int direct_make_room(const struct direct *to, const volatile struct output *output, __u64 size)
{
	__u64 unread = to->lane->producer + size - to->lane->resv[LANE_RELEASED];

	return unread <= CONSTANT(direct_lane_size) || lane_make_room(to->lane, to->page, output, to->number, size);
}

/* Fills in the slot of a packet without a VLAN tag, except for the time. */
static __always_inline void direct_fill(void *ctx, const enum hook hook, struct ringcap_slot *at, __u32 len,
					__u32 caplen, __u32 hash, __u32 direction)
{
	at->len = len;
	at->caplen = caplen;
	at->hash = hash;
	at->ifindex = packet_ifindex(ctx, hook);
	at->vlan_tci = 0;
	at->vlan_tpid = 0;
	at->rx_queue = packet_rx_queue(ctx, hook, direction);
	at->flags = packet_flags(ctx, hook, direction);
	at->hdr_len = RINGCAP_SLOT_SHORT;
}

/* Writes the packet into the lane, or counts why it does not; false if nothing was published. */
static __always_inline int direct_write(void *ctx, const enum hook hook, const struct direct *to,
					const volatile struct output *output, __u32 len, __u32 hash, __u32 direction)
{
	__u32 caplen = len < CONSTANT(direct_snaplen) ? len : CONSTANT(direct_snaplen);
	struct ringcap_lane_kernel *lane = to->lane;
	__u64 producer = lane->producer, size = RINGCAP_SLOT_SIZE((__u64)RINGCAP_SLOT_SHORT, caplen);
	struct ringcap_slot *at;

	if (!direct_make_room(to, output, size)) {
		lane->stats.dropped[RINGCAP_DROP_FULL]++;
		return 0;
	}
	at = direct_slot(to, producer);
	direct_fill(ctx, hook, at, len, caplen, hash, direction);
	at->ts_ns = wall_clock();
	if (packet_copy_untagged(ctx, hook, (__u8 *)at + RINGCAP_SLOT_SHORT, caplen)) {
		queue_lose(lane);
		return 0;
	}
	queue_count(lane, len, caplen);
	/* (A), and (E): the consumer's sleep is read after it. */
	__sync_lock_test_and_set(&lane->producer, producer + size);
	return 1;
}

/*
 * Whether as many bytes are unread as wake the consumer. The lane remembers what the consumer released, so that its
 * page is read only once in a while.
 */
static __always_inline int direct_is_due(const struct direct *to)
{
	struct ringcap_lane_kernel *lane = to->lane;
	__u64 producer = lane->producer, released;

	if (producer - lane->resv[LANE_RELEASED] < CONSTANT(direct_watermark))
		return 0;
	released = lane_released(lane, to->page, to->number, producer);
	lane->resv[LANE_RELEASED] = released;
	return producer - released >= CONSTANT(direct_watermark);
}

/* queue_wake for the CPU's own lane; it ends early for most packets. */
static __always_inline void direct_wake(const struct direct *to, __u32 queue)
{
	__u64 sleep = read_now(to->page->sleep);

	if (!sleep)
		return;
	if (!CONSTANT(direct_timeout) || direct_is_due(to))
		bell_look(CONSTANT(direct_base) + queue, sleep, 1, CONSTANT(direct_timeout));
	else if (!bell_is_armed(CONSTANT(direct_base) + queue, sleep))
		bell_look(CONSTANT(direct_base) + queue, sleep, 0, CONSTANT(direct_timeout));
}

/*
 * Delivers a packet without a VLAN tag to queue @queue of the plain ring's cluster; false if nothing was done, because
 * it has to go by the tables.
 */
static __always_inline int direct_put(void *ctx, const enum hook hook, const volatile struct output *output,
				      __u32 queue, __u32 cpu, __u32 len, __u32 hash, __u32 direction)
{
	struct direct to;

	if (!direct_queue(&to, queue) || !direct_lane(&to, cpu))
		return 0;
	if (direct_write(ctx, hook, &to, output, len, hash, direction))
		direct_wake(&to, queue);
	return 1;
}

#endif /* RC_DIRECT_H */
