/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules. The maps belong to the ring, and to one set. Another set has maps of its own, and comes with the program that
 * reads them.
 *
 * Wildcard rules are found by tuple space search, as in kmod/wild.h. A packet's key is masked and looked up once for
 * each shape, in the order of the best rank that each has. The search ends when no later shape could have a better
 * rank.
 */
#ifndef RC_RULES_H
#define RC_RULES_H

#include "work.h"

struct rule_hits {
	__u64 packets;
	__u64 bytes;
};

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

struct exact_rule {
	__u32 action;
	__u32 target;
	struct rule_hits hits;
	struct life life;
};

struct learnt {
	struct rule_hits hits;
	struct life life;
};

struct wild_rule {
	__u32 rank;
	__u32 id;
	__u32 action;
	__u32 target;
};

/* @has: RC_HAS_* that the mask asks for; @best: least rank of a rule of this shape. */
struct shape {
	struct rc_key mask;
	__u32 has;
	__u32 best;
};

/* The loader sets max_entries of all these to what the set needs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct rc_exact_key);
	__type(value, struct exact_rule);
} ring_exact SEC(".maps");

/* Learnt flows. When the map is full, the flow that had no packet for the longest time is evicted. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct rc_exact_key);
	__type(value, struct learnt);
} ring_learnt SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct shape);
} ring_shapes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct wild_key);
	__type(value, struct wild_rule);
} ring_wild SEC(".maps");

/* By rank. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rule_hits);
} ring_rule_hits SEC(".maps");

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

/* By several CPUs. */
static __always_inline void rule_count(struct rule_hits *hits, const struct work *work)
{
	__sync_fetch_and_add(&hits->packets, 1);
	__sync_fetch_and_add(&hits->bytes, work->len);
}

/* The key of the packet's flow in work->exact; false where no exact rule can match. */
static __always_inline int rules_exact_key(struct work *work)
{
	struct rc_frame frame;
	__u32 i;

	work_frame(work, &frame, RC_PARSE_MAX);
	for (i = 0; i < RC_EXACT_WORDS_IPV6; i++)
		work->exact.w[i] = 0;
	return rc_exact_key_of_packet(&frame, &work->flow, &work->exact) != 0;
}

/* Whether there is an exact rule for the packet, including learnt ones. */
__attribute__((noinline)) int rules_find_exact(void)
{
	struct work *work = this_work();
	struct exact_rule *rule;
	struct learnt *learnt;

	if (!work || !rules_exact_key(work))
		return 0;
	if (config.flags & CONFIG_EXACT) {
		rule = bpf_map_lookup_elem(&ring_exact, &work->exact);
		if (rule && !life_is_over(&rule->life, work)) {
			rule_count(&rule->hits, work);
			life_goes_on(&rule->life, work);
			work->action = rule->action;
			work->target = rule->target;
			return 1;
		}
	}
	if (!(config.flags & CONFIG_LEARN))
		return 0;
	learnt = bpf_map_lookup_elem(&ring_learnt, &work->exact);
	if (!learnt || life_is_over(&learnt->life, work))
		return 0;
	rule_count(&learnt->hits, work);
	life_goes_on(&learnt->life, work);
	work->action = RINGCAP_ACTION_PASS;
	return 1;
}

__attribute__((noinline)) int rules_learn(void)
{
	struct work *work = this_work();
	struct learnt fresh = {};
	__u64 flags = BPF_NOEXIST;
	struct life *life;

	/* The flow of a fragment is not known. */
	if (!work || (work->flow.flags & RINGCAP_SLOT_FRAGMENT) || !rules_exact_key(work))
		return 0;
	if (config.flags & CONFIG_IDLE) {
		life = life_of(work->rank);
		fresh.life.last = work->now;
		fresh.life.idle = life ? life->idle : 0;
		flags = BPF_ANY; /* replaces one that is over */
	}
	bpf_map_update_elem(&ring_learnt, &work->exact, &fresh, flags);
	return 0;
}

/* Whether a rule that was found has expired. A learning rule does not expire; the rules that it learnt do. */
static __always_inline int rules_is_over(const struct work *work, const struct wild_rule *rule)
{
	struct life *life;

	if (!(config.flags & CONFIG_IDLE) || rule->action == RINGCAP_ACTION_LEARN)
		return 0;
	life = life_of(rule->rank);
	return life && life_is_over(life, work);
}

static __always_inline void rules_take(struct work *work, const struct wild_rule *rule)
{
	if (rule->rank >= work->rank)
		return;
	work->rank = rule->rank;
	work->rule = rule->id;
	work->action = rule->action;
	work->target = rule->target;
}

/* Looks for a rule of shape number @i. Returns 0 if neither this shape nor a later one could have a better rule. */
__attribute__((noinline)) int rules_try_shape(__u32 i)
{
	struct work *work = this_work();
	struct wild_rule *rule;
	struct shape *shape;
	__u32 word;

	if (!work)
		return 0;
	shape = bpf_map_lookup_elem(&ring_shapes, &i);
	if (!shape || shape->best >= work->rank)
		return 0;
	if ((work->key.w[0] & shape->has) != shape->has)
		return 1;
	work->wild.shape = i;
	for (word = 0; word < RC_KEY_WORDS; word++)
		work->wild.w[word] = work->key.w[word] & shape->mask.w[word];
	rule = bpf_map_lookup_elem(&ring_wild, &work->wild);
	if (rule && !rules_is_over(work, rule))
		rules_take(work, rule);
	return 1;
}

__attribute__((noinline)) int rules_make_key(void)
{
	struct work *work = this_work();
	struct rc_frame frame;

	if (!work)
		return 0;
	work_frame(work, &frame, RC_PARSE_MAX);
	rc_key_of_packet(&frame, &work->flow, &work->key);
	return 0;
}

/* Whether a wildcard rule decided. */
static __always_inline int rules_find_wild(struct work *work)
{
	struct rule_hits *hits;
	struct life *life;
	__u32 rank;

	rules_make_key();
	if ((config.flags & CONFIG_INNER_KEY) && work_look_inside())
		rc_key_add_inner(&work->inner.found, &work->key);
	work->rank = ~0U;
	for (__u32 i = 0; i < SHAPES_MAX && i < config.nr_shapes; i++)
		if (!rules_try_shape(i))
			break;
	rank = work->rank;
	hits = bpf_map_lookup_elem(&ring_rule_hits, &rank);
	if (!hits)
		return 0;
	hits->packets++;
	hits->bytes += work->len;
	if (config.flags & CONFIG_IDLE) {
		life = life_of(rank);
		if (life)
			life_goes_on(life, work);
	}
	if (work->action == RINGCAP_ACTION_LEARN)
		rules_learn();
	return 1;
}

/* Sets work->action and work->target to the rules' decision for the packet. */
__attribute__((noinline)) int rules_decide(void)
{
	struct work *work = this_work();

	if (!work)
		return 0;
	if (config.flags & CONFIG_IDLE)
		life_look_at_clock(work);
	if ((config.flags & (CONFIG_EXACT | CONFIG_LEARN)) && rules_find_exact())
		return 0;
	if ((config.flags & CONFIG_WILD) && rules_find_wild(work))
		return 0;
	work->action = config.default_action;
	work->target = config.default_target;
	return 0;
}

#endif /* RC_RULES_H */
