/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules: exact ones, and what the learnt flows of learnt.h and the wildcard rules of wild.h decide. The maps belong to
 * the ring, and to one set. Another set has maps of its own, and comes with the program that reads them.
 */
#ifndef RC_RULES_H
#define RC_RULES_H

#include "learnt.h"
#include "life.h"
#include "wild.h"

struct rule_hits {
	__u64 packets;
	__u64 bytes;
};

struct exact_rule {
	__u32 action;
	__u32 target;
	struct rule_hits hits;
	struct life life;
};

/* The loader sets max_entries of these to what the set needs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct rc_exact_key);
	__type(value, struct exact_rule);
} ring_exact SEC(".maps");

/* By rank. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rule_hits);
} ring_rule_hits SEC(".maps");

/* By several CPUs. */
static __always_inline void rule_count(struct rule_hits *hits, const struct work *work)
{
	__sync_fetch_and_add(&hits->packets, 1);
	__sync_fetch_and_add(&hits->bytes, work->len);
}

/* Makes the key of the packet's flow, work->exact. Returns false if no exact rule can match. */
static __always_inline int rules_make_exact_key(struct work *work)
{
	struct rc_frame frame;
	__u32 i, has;

	work_frame(work, &frame, RC_PARSE_MAX);
	for (i = 0; i < RC_EXACT_WORDS_IPV6; i++)
		work->exact.w[i] = 0;
	has = rc_exact_key_of_packet(&frame, &work->flow, &work->exact);
	/* The flow of a fragment is not known. */
	work->can_learn = has && !(work->flow.flags & RINGCAP_SLOT_FRAGMENT);
	return has != 0;
}

/* Whether there is an exact rule for work->exact. */
static __always_inline int rules_find_exact(struct work *work)
{
	struct exact_rule *rule = bpf_map_lookup_elem(&ring_exact, &work->exact);

	if (!rule || life_is_over(&rule->life, work))
		return 0;
	rule_count(&rule->hits, work);
	life_goes_on(&rule->life, work);
	work->action = rule->action;
	work->target = rule->target;
	return 1;
}

static __always_inline void rules_learn(const struct work *work)
{
	const struct life *life = config.flags & CONFIG_IDLE ? life_of(work->rank) : 0;

	if (work->can_learn)
		learnt_add(life ? life->idle : 0);
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

/* Whether a wildcard rule decided, by @key; see wild_search. */
static __always_inline int rules_find_wild(struct work *work, const __u64 key[RC_KEY_WORDS], int whole)
{
	struct rule_hits *hits;
	struct life *life;
	__u32 rank;

	wild_search(work, key, whole);
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
		rules_learn(work);
	return 1;
}

static __always_inline int rules_decide_exact(struct work *work)
{
	if (!(config.flags & (CONFIG_EXACT | CONFIG_LEARN)) || !rules_make_exact_key(work))
		return 0;
	if (config.flags & CONFIG_EXACT && rules_find_exact(work))
		return 1;
	if (!(config.flags & CONFIG_LEARN) || !learnt_find())
		return 0;
	work->action = RINGCAP_ACTION_PASS;
	return 1;
}

static __always_inline int rules_decide_wild(struct work *work)
{
	if (!(config.flags & CONFIG_WILD))
		return 0;
	rules_make_key();
	if ((config.flags & CONFIG_INNER_KEY) && work_look_inside())
		rc_key_add_inner(&work->inner.found, &work->key);
	return rules_find_wild(work, work->key.w, 1);
}

/* Sets work->action and work->target to the rules' decision for the packet. */
__attribute__((noinline)) int rules_decide(void)
{
	struct work *work = this_work();

	if (!work)
		return 0;
	if (config.flags & CONFIG_IDLE)
		life_look_at_clock(work);
	if (rules_decide_exact(work) || rules_decide_wild(work))
		return 0;
	work->action = config.default_action;
	work->target = config.default_target;
	return 0;
}

#endif /* RC_RULES_H */
