/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Idle timers of rules. */
#ifndef RC_LIFE_H
#define RC_LIFE_H

#include "work.h"

/*
 * The idle timer of a rule, in nanoseconds. A rule that had no packet for its idle time does not match any more. It
 * stays idle, because it gets no packets. Its entry is freed when the set is removed.
 * @last: when it had its last packet, 0 = it had none since the set became active
 * @idle: 0 = it never expires
 */
struct life {
	__u64 last;
	__u64 idle;
};

/*
 * By rank plus 1. The entry of a learning rule is for the rules that it learns. The first entry has the time when the
 * set became active.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct life);
} ring_lives SEC(".maps");

static __always_inline int life_is_over(const struct life *life, const struct work *work)
{
	__u64 last;

	if (!(config.flags & CONFIG_IDLE) || !life->idle)
		return 0;
	last = life->last ? life->last : work->began;
	/* Another CPU may have seen a later packet. */
	return last && (__s64)(work->now - last) >= (__s64)life->idle;
}

static __always_inline void life_goes_on(struct life *life, const struct work *work)
{
	/* The coarse clock advances with the timer tick, so most packets write nothing. */
	if ((config.flags & CONFIG_IDLE) && life->idle && life->last != work->now)
		life->last = work->now;
}

static __always_inline struct life *life_of(__u32 rank)
{
	__u32 number = rank + 1;

	return bpf_map_lookup_elem(&ring_lives, &number);
}

static __always_inline void life_look_at_clock(struct work *work)
{
	__u32 zero = 0;
	struct life *set = bpf_map_lookup_elem(&ring_lives, &zero);

	work->now = bpf_ktime_get_coarse_ns();
	work->began = set ? set->last : 0;
}

#endif /* RC_LIFE_H */
