/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of the current packet, one area for each CPU. tc and XDP run programs with bottom halves off. On one CPU,
 * no program runs inside another one that still needs its packet.
 *
 * Steps are global functions. The verifier checks them one by one, each for any state of the work, because it does not
 * track values that come from memory. They look up the work themselves: Linux 6.1 does not allow arguments as pointers
 * to look up maps by.
 */
#ifndef RC_WORK_H
#define RC_WORK_H

#include "config.h"
#include "rule.h"

#define PLACES_MAX	(RINGCAP_SNAPLEN_MAX + 1)
/* Bytes of a packet that are searched beyond the longest slot: the longest IP packet ends there, including headers. */
#define BEYOND_MAX	256
#define SEARCHED_MAX	(RINGCAP_SNAPLEN_MAX + BEYOND_MAX)
#define TAG_LEN		4	/* bytes of a VLAN tag */
#define MACS_LEN	12	/* bytes before a VLAN tag */

/*
 * Keeps @value in a register and hides it from the optimizer, so that the verifier sees the bound that was just applied
 * to it.
 */
#define opaque(value) asm volatile("" : "+r"(value))

/*
 * Element @number of an array in config. The array's length is a power of two. A check of @number in another register
 * would not help.
 */
#define config_element(array, number) ({ \
	__u64 _number = (number); \
	opaque(_number); \
	_number &= sizeof(config.array) / sizeof(config.array[0]) - 1; \
	&config.array[_number]; })

/* The key of a wildcard rule: a shape and the masked key. */
struct wild_key {
	__u64 shape;
	__u64 w[RC_KEY_WORDS];
};

/**
 * struct search - state of a search for patterns in the payload
 * @from: the payload's place in the packet
 * @at, @end: the range that is still to be searched
 * @state, @machine: the current state, and its machine
 * @hit: the pattern that was found, plus 1; it ends at @at then and has @hit_len bytes
 */
struct search {
	__u32 from;
	__u32 at;
	__u32 end;
	__u32 state;
	__u32 machine;
	__u32 hit;
	__u32 hit_len;
};

enum looked_inside { INNER_UNKNOWN, INNER_NONE, INNER_THERE };

/**
 * struct work - the current packet
 * @len: bytes on the wire
 * @caplen: how many of them are captured, 0 = it could not be read
 * @rx_queue: the device's receive queue
 * @inside: what @inner is, enum looked_inside
 * @action, @target: what the rules decided, enum ringcap_action and index of config.targets
 * @now: coarse monotonic time when the packet was examined, @began: when the rules became active; set only if rules
 *	expire when they are idle
 * @rule: id of the wildcard rule that decided, 0 = none; @rank is its position in the order of priorities
 * @home, @seed, @except, @goes, @hashes: how copies get to queues, see balance.h
 * @can_learn: @exact may become a learnt rule
 * @whole: flow that a fragment would have if the datagram were whole
 * @slot: fields for the slot
 * @data: the bytes that are examined; the room after them lets the verifier prove every bounded copy safe
 */
struct work {
	__u32 len;
	__u32 caplen;
	__u32 rx_queue;
	__u32 inside;
	__u32 action;
	__u32 target;
	__u32 rule;
	__u32 rank;
	__u32 home;
	__u32 seed;
	__u32 except;
	__u32 found;
	__u32 goes[2];
	__u32 hashes[2];
	__u64 bound;
	__u64 now;
	__u64 began;
	struct rc_flow flow;
	struct rc_flow whole;
	struct rc_inner inner;
	struct rc_key key;
	__u32 can_learn;
	struct rc_exact_key exact;
	struct wild_key wild;
	struct search search;
	struct ringcap_slot slot;
	__u8 data[PLACES_MAX + MACS_LEN + TAG_LEN + RC_INNER_MAX];
};

/* The loader sets max_entries to the number of possible CPUs. A per-CPU array could not hold values of this size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct work);
} rc_scratch SEC(".maps");

static __always_inline struct work *this_work(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&rc_scratch, &cpu);
}

static __always_inline void work_frame(struct work *work, struct rc_frame *frame, __u32 most)
{
	frame->data = work->data;
	frame->avail = work->len < most ? work->len : most;
	frame->vlan_tpid = 0;
	frame->vlan_tci = 0;
}

/* Parses @work's packet. */
__attribute__((noinline)) int work_parse(void)
{
	struct work *work = this_work();
	struct rc_frame frame;

	if (!work)
		return 0;
	work_frame(work, &frame, RC_PARSE_MAX);
	rc_parse(&frame, &work->flow);
	work->inside = INNER_UNKNOWN;
	return 0;
}

/* Whether there is a packet inside, which then is work->inner.found. Parses this only once. */
__attribute__((noinline)) int work_look_inside(void)
{
	struct work *work = this_work();
	struct rc_frame frame;

	if (!work)
		return 0;
	if (work->inside == INNER_UNKNOWN) {
		work_frame(work, &frame, RC_INNER_MAX);
		work->inside = rc_parse_inner(&frame, &work->flow, &work->inner) ? INNER_THERE : INNER_NONE;
	}
	return work->inside == INNER_THERE;
}

#endif /* RC_WORK_H */
