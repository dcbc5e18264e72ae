/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Payload patterns: finds the same as kmod/classify/pattern.h, by tables that node-agent/engine/ebpf/pattern.go makes.
 * Patterns that respect case and those that ignore it form two machines. The rows of both are in one array. A row has
 * the next state for each class of bytes, with failures resolved. So a byte costs one look-up in the array. A state is
 * the place of its row.
 *
 * Like the maps of the rules, these maps belong to one set.
 */
#ifndef RC_PATTERN_MAPS_H
#define RC_PATTERN_MAPS_H

#include "work.h"
#include "payload.h"

#define PATTERN_HIT	(1U << 31)	/* in a row: some pattern ends in that state */
#define PATTERN_CHUNK	32	/* bytes that are searched in one step */
#define CHOICES_MAX	256	/* patterns that may end in one state */

/*
 * One element. The loader sets its size to a power of two. Places are masked with config.pattern_mask, because the
 * verifier knows no other bound. The word before a row is the number of the state's first choice plus 1, 0 = none.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} ring_pattern_rows SEC(".maps");

/**
 * struct choice - a pattern that ends in a state; the choices of a state follow each other, the longest first
 * @pattern: number of the pattern, plus 1
 * @len: bytes
 * @least, @most: bounds of the number of payload bytes that were read when the pattern ends
 * @last: it is the last choice of this state
 */
struct choice {
	__u32 pattern;
	__u32 len;
	__u32 least;
	__u32 most;
	__u32 last;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct choice);
} ring_choices SEC(".maps");

/* Packets that each pattern decided on. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} ring_pattern_hits SEC(".maps");

/*
 * Whether a pattern of a state lies at an allowed position, if it ends at work->search.at + @used. @number is the
 * state's first choice.
 */
__attribute__((noinline)) int pattern_choose(__u32 number, __u32 used)
{
	struct work *work = this_work();
	struct choice *choice;
	__u32 end, i;

	if (!work)
		return 0;
	end = work->search.at + used - work->search.from;
	for (i = 0; i < CHOICES_MAX; i++) {
		__u32 key = number + i;

		choice = bpf_map_lookup_elem(&ring_choices, &key);
		if (!choice)
			return 0;
		if (end >= choice->least && end <= choice->most) {
			work->search.hit = choice->pattern;
			work->search.hit_len = choice->len;
			return 1;
		}
		if (choice->last)
			return 0;
	}
	return 0;
}

/* Searches PATTERN_CHUNK bytes; returns 1 when there is no more to search. */
static long pattern_step(__u32 i __attribute__((unused)), void *unused __attribute__((unused)))
{
	struct work *work = this_work();
	__u32 zero = 0, *rows = bpf_map_lookup_elem(&ring_pattern_rows, &zero);
	__u64 at, left, state, mask = config.pattern_mask;
	const volatile __u8 *classes;
	const __u8 *data;

	if (!work || !rows)
		return 1;
	at = work->search.at;
	left = work->search.end - work->search.at;
	opaque(at);
	if (at >= SEARCHED_MAX)
		return 1;
	data = work->data + at;
	state = work->search.state;
	classes = config.pattern_classes[work->search.machine & 1];
	for (__u32 j = 0; j < PATTERN_CHUNK; j++) {
		if (j >= left)
			return 1;
		state = rows[(state + classes[data[j]]) & mask];
		if (!(state & PATTERN_HIT))
			continue;
		state &= ~PATTERN_HIT;
		if (pattern_choose(rows[(state - 1) & mask] - 1, j + 1)) {
			work->search.at += j + 1;
			return 1;
		}
	}
	work->search.state = state;
	work->search.at = at + PATTERN_CHUNK;
	return 0;
}

/* Searches from @begin to work->search.end with one machine; work->search.hit is the result. */
static __always_inline void pattern_scan(struct work *work, __u32 machine, __u32 begin)
{
	work->search.at = begin;
	work->search.hit = 0;
	work->search.machine = machine;
	work->search.state = config.pattern_start[machine];
	bpf_loop(SEARCHED_MAX / PATTERN_CHUNK + 1, pattern_step, NULL, 0);
}

/*
 * The pattern that counts, plus 1: the one that ends first. Of two that end there it is the longer one; of equal ones,
 * the one that respects case.
 */
static __always_inline __u32 pattern_find(struct work *work, __u32 begin)
{
	struct search *search = &work->search;
	__u32 hit = 0, hit_len = 0, at = 0;

	if (config.pattern_start[0]) {
		pattern_scan(work, 0, begin);
		hit = search->hit;
		hit_len = search->hit_len;
		at = search->at;
	}
	if (!config.pattern_start[1])
		return hit;
	if (hit)
		search->end = at;
	pattern_scan(work, 1, begin);
	if (!search->hit || (hit && search->at == at && search->hit_len <= hit_len))
		return hit;
	return search->hit;
}

/* Whether the packet passes. */
__attribute__((noinline)) int pattern_pass(void)
{
	struct work *work = this_work();
	struct rc_payload payload;
	struct rc_frame frame;
	__u32 hit = 0;
	__u64 *hits;

	/* If nothing is searched, the verifier need not look at the rest. */
	if (!work || !(config.flags & CONFIG_PATTERNS))
		return 0;
	work_frame(work, &frame, RC_PARSE_MAX);
	payload = rc_payload_find(&frame, &work->flow, work->len < SEARCHED_MAX ? work->len : SEARCHED_MAX);
	work->search.from = payload.from;
	work->search.end = payload.to;
	if (payload.to - payload.from > config.pattern_limit)
		work->search.end = payload.from + config.pattern_limit;
	if (payload.to - payload.from > config.pattern_first)
		hit = pattern_find(work, payload.from + config.pattern_first);
	if (hit) {
		__u32 number = hit - 1;

		hits = bpf_map_lookup_elem(&ring_pattern_hits, &number);
		if (hits)
			*hits += 1;
	}
	return (hit != 0) != config.pattern_drop;
}

#endif /* RC_PATTERN_MAPS_H */
