// SPDX-License-Identifier: GPL-2.0-only

#include "rules_decide.h"

#include <linux/sched/mm.h>

#include "ring.h"

void rc_rules_learn(struct rc_rules *rules, const struct rc_exact_key *key, u32 words, u32 idle_s)
{
	struct mem_cgroup *memcg = set_active_memcg(rcu_dereference(rules->ring->config)->memcg);
	bool learnt = rc_exacts_learn(&rules->exacts, key, words, idle_s);

	set_active_memcg(memcg);
	if (!learnt) {
		__this_cpu_inc(rules->ring->account->not_learnt);
		return;
	}
	atomic_inc(&rules->ring->rules_changes);
	if (unlikely(rc_rules_may_grow(rules)))
		rc_rules_grow_soon(rules);
}

struct rc_verdict rc_rules_decide(struct rc_rules *rules, struct rc_packet *pkt)
{
	const struct rc_wild *wild = rcu_dereference(rules->wild);
	const struct rc_way_in *inner;
	struct rc_verdict verdict rc_uninitialized;
	struct rc_frame frame;
	struct rc_key key rc_uninitialized;

	if (!READ_ONCE(rules->exacts.nr) && !wild)
		return rules->otherwise;
	if (!pkt->parsed)
		rc_packet_parse(pkt);
	rc_packet_frame(pkt, &frame);
	if (rc_rules_decide_exact(rules, &frame, &pkt->flow, pkt->len, &verdict))
		return verdict;
	if (!wild)
		return rules->otherwise;
	rc_key_of_packet(&frame, &pkt->flow, &key);
	inner = wild->inner ? rc_packet_inner(pkt) : NULL;
	if (inner)
		rc_key_add_inner(inner, &key);
	return rc_rules_decide_wild(rules, rc_wild_find(wild, &key), &frame, &pkt->flow, pkt->len, &pkt->rule);
}
