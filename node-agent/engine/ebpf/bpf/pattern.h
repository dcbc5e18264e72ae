/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Payload patterns: finds the same as kmod/classify/pattern.h, by tables that node-agent/engine/ebpf/pattern.go makes.
 * Patterns that respect case and those that ignore it form two machines. The rows of both are in one array. A row has
 * the next state for each class of bytes, with failures resolved. So a byte costs one look-up in the array. A state is
 * the place of its row, in bytes, as is a class.
 *
 * Bytes are first searched without a look at each state: PATTERN_CHUNK or PATTERN_PIECE of them, and only then whether a
 * pattern ended at one of them. If so, they are searched once more, one by one.
 *
 * Like the maps of the rules, these maps belong to one set.
 */
#ifndef RC_PATTERN_MAPS_H
#define RC_PATTERN_MAPS_H

#include "work.h"
#include "payload.h"

#define PATTERN_HIT	(1U << 31)	/* in a row: some pattern ends in that state */
#define PATTERN_CHUNK	64	/* bytes that are searched in one step */
#define PATTERN_PIECE	8	/* the same near the end */
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

/**
 * struct pattern_run - tables of the machine that searches
 * @rows, @mask: the array, and the mask of places in it
 * @classes: of bytes
 */
struct pattern_run {
	const __u8 *rows;
	const volatile __u16 *classes;
	__u64 mask;
};

/*
 * The state after byte number @j of @data; @seen collects the flags of states. In assembly, because clang would spend
 * six instructions more on a byte.
 */
#define PATTERN_BYTE(j) \
	asm volatile("%[next] = *(u8 *)(%[data] + %[number])\n" \
		     "%[next] <<= 1\n" \
		     "%[next] += %[classes]\n" \
		     "%[next] = *(u16 *)(%[next] + 0)\n" \
		     "%[next] += %[state]\n" \
		     "%[next] &= %[mask]\n" \
		     "%[next] += %[rows]\n" \
		     "%[state] = *(u32 *)(%[next] + 0)\n" \
		     "%[seen] |= %[state]\n" \
		     : [next] "=&r"(next), [state] "+r"(state), [seen] "+r"(seen) \
		     : [data] "r"(data), [number] "i"(j), [classes] "r"(run->classes), [mask] "r"(run->mask), \
		       [rows] "r"(run->rows))
#define PATTERN_BYTES(j) \
	PATTERN_BYTE(j); PATTERN_BYTE(j + 1); PATTERN_BYTE(j + 2); PATTERN_BYTE(j + 3); \
	PATTERN_BYTE(j + 4); PATTERN_BYTE(j + 5); PATTERN_BYTE(j + 6); PATTERN_BYTE(j + 7)

/* The state after PATTERN_PIECE bytes, with PATTERN_HIT if a pattern ends at any of them. */
static __always_inline __u64 pattern_run_piece(const struct pattern_run *run, const __u8 *data, __u64 state)
{
	__u64 seen = 0, next;

	PATTERN_BYTES(0);
	return state | (seen & PATTERN_HIT);
}

/* The same for PATTERN_CHUNK bytes. */
static __always_inline __u64 pattern_run_chunk(const struct pattern_run *run, const __u8 *data, __u64 state)
{
	__u64 seen = 0, next;

	PATTERN_BYTES(0);
	PATTERN_BYTES(8);
	PATTERN_BYTES(16);
	PATTERN_BYTES(24);
	PATTERN_BYTES(32);
	PATTERN_BYTES(40);
	PATTERN_BYTES(48);
	PATTERN_BYTES(56);
	return state | (seen & PATTERN_HIT);
}

/* Searches @n bytes one by one; returns 1 if a pattern was found. */
static __always_inline int pattern_run_bytes(struct work *work, const struct pattern_run *run, const __u8 *data,
					     __u64 n)
{
	__u64 state = work->search.state;

	for (__u32 j = 0; j < PATTERN_CHUNK; j++) {
		if (j >= n)
			break;
		state = *(const __u32 *)(run->rows + ((state + run->classes[data[j]]) & run->mask));
		if (!(state & PATTERN_HIT))
			continue;
		state &= ~PATTERN_HIT;
		if (pattern_choose(*(const __u32 *)(run->rows + ((state - 4) & run->mask)) - 1, j + 1)) {
			work->search.at += j + 1;
			return 1;
		}
	}
	work->search.state = state;
	work->search.at += n;
	return 0;
}

/* Searches the next bytes; returns 1 when there is no more to search. */
static long pattern_step(__u32 i __attribute__((unused)), void *unused __attribute__((unused)))
{
	struct work *work = this_work();
	struct pattern_run run = { .mask = config.pattern_mask };
	__u64 at, left, n = PATTERN_CHUNK, state;
	const __u8 *data;
	__u32 zero = 0;

	run.rows = bpf_map_lookup_elem(&ring_pattern_rows, &zero);
	if (!work || !run.rows)
		return 1;
	run.classes = config.pattern_classes[work->search.machine & 1];
	at = work->search.at;
	left = work->search.end - work->search.at;
	opaque(at);
	if (at >= SEARCHED_MAX || !left)
		return 1;
	data = work->data + at;
	state = work->search.state;
	if (left >= PATTERN_CHUNK) {
		state = pattern_run_chunk(&run, data, state);
	} else if (left >= PATTERN_PIECE) {
		n = PATTERN_PIECE;
		state = pattern_run_piece(&run, data, state);
	} else {
		n = left;
		state = PATTERN_HIT;
	}
	if (state & PATTERN_HIT)
		return pattern_run_bytes(work, &run, data, n);
	work->search.state = state;
	work->search.at = at + n;
	return 0;
}

/* Searches from @begin to work->search.end with one machine; work->search.hit is the result. */
static __always_inline void pattern_scan(struct work *work, __u32 machine, __u32 begin)
{
	work->search.at = begin;
	work->search.hit = 0;
	work->search.machine = machine;
	work->search.state = config.pattern_start[machine];
	bpf_loop(SEARCHED_MAX / PATTERN_CHUNK + PATTERN_CHUNK / PATTERN_PIECE + 2, pattern_step, NULL, 0);
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
