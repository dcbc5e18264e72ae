/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of the packet at hand, in one area a CPU: tc and XDP run programs with bottom halves off, and never one
 * inside another on the same CPU before that has done with its packet.
 *
 * Steps are global functions, which the verifier looks at one by one, each for any state of the work: what comes from memory
 * it does not follow. They find the work themselves, for Linux 6.1 takes no pointers to look up maps by from arguments.
 */
#ifndef RC_WORK_H
#define RC_WORK_H

#include "config.h"
#include "rule.h"

#define PLACES_MAX	(RINGCAP_SNAPLEN_MAX + 1)
/* Bytes of a packet that are searched beyond those that a slot can have: the longest packet of IP ends there, headers included. */
#define BEYOND_MAX	256
#define SEARCHED_MAX	(RINGCAP_SNAPLEN_MAX + BEYOND_MAX)
#define TAG_LEN		4	/* bytes of a VLAN tag */
#define MACS_LEN	12	/* bytes before a VLAN tag */

/* Keeps @value in a register and from the optimizer, so that the verifier sees the bound that was just put on it. */
#define opaque(value) asm volatile("" : "+r"(value))

/* Element @number of an array in config, whose length is a power of two: no test of a number in another register helps. */
#define config_element(array, number) ({ \
	__u64 _number = (number); \
	opaque(_number); \
	_number &= sizeof(config.array) / sizeof(config.array[0]) - 1; \
	&config.array[_number]; })

/* A wildcard rule's place: a shape and the masked key. */
struct wild_key {
	__u64 shape;
	__u64 w[RC_KEY_WORDS];
};

/**
 * struct search - for patterns in the payload
 * @from: the payload's place in the packet
 * @at, @end: what is still to be searched
 * @state, @machine: where and by which
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
 * struct work - the packet at hand
 * @len: bytes on the wire
 * @caplen: how many of them are captured, 0 = it could not be read
 * @rx_queue: the device's receive queue
 * @inside: what @inner is, enum looked_inside
 * @action, @target: what the rules decided, enum ringcap_action and index of config.targets
 * @now: when it was looked at, by the coarse monotonic clock, @began: when the rules became active; only where rules
 *	expire when they are idle
 * @rule: id of the wildcard rule that decided, 0 = none; @rank its place in the order of priorities
 * @home, @seed, @except, @goes, @hashes: how copies get to queues, see balance.h
 * @whole: a fragment's flow as it would be if the datagram were whole
 * @slot: what the slot says of it
 * @data: the bytes that are looked at; the room after them lets every bounded copy be proved safe
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

/* What @work's packet is. */
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

/* Whether there is a packet in it, which is work->inner.found then. Looks once. */
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
