// SPDX-License-Identifier: GPL-2.0-only

#include "rules_decide.h"

#include <linux/sched/mm.h>

#include "packet.h"
#include "ring.h"
#include "rules.h"

static void rc_rules_learn(struct rc_rules *rules, const struct rc_frame *frame, const struct rc_packet *pkt,
			   u32 idle_s)
{
	u32 words;
	struct rc_exact_key key;
	struct mem_cgroup *memcg;
	bool learnt;

	/* A fragment has no ports, so its flow is not known. */
	if (pkt->flow.flags & RINGCAP_SLOT_FRAGMENT)
		return;
	words = rc_exact_key_of_packet(frame, &pkt->flow, &key);
	if (!words)
		return;
	memcg = set_active_memcg(rcu_dereference(rules->ring->config)->memcg);
	learnt = rc_exacts_learn(&rules->exacts, &key, words, idle_s);
	set_active_memcg(memcg);
	if (!learnt) {
		__this_cpu_inc(rules->ring->account->not_learnt);
		return;
	}
	atomic_inc(&rules->ring->rules_changes);
	if (unlikely(rc_rules_may_grow(rules)))
		rc_rules_grow_soon(rules);
}

static struct rc_exact *rc_rules_find_exact(struct rc_rules *rules, const struct rc_frame *frame,
					    const struct rc_packet *pkt)
{
	struct rc_exact_key key;
	u32 words = rc_exact_key_of_packet(frame, &pkt->flow, &key);

	return words ? rc_exacts_find(&rules->exacts, key.w, words) : NULL;
}

static struct rc_verdict rc_rules_decide_wild(struct rc_rules *rules, const struct rc_wild *wild,
					      const struct rc_frame *frame, struct rc_packet *pkt)
{
	struct rc_verdict verdict = rules->otherwise;
	const struct rc_way_in *inner;
	struct rc_rule *rule;
	struct rc_key key;

	rc_key_of_packet(frame, &pkt->flow, &key);
	inner = wild->inner ? rc_packet_inner(pkt) : NULL;
	if (inner)
		rc_key_add_inner(inner, &key);
	rule = rc_wild_find(wild, &key);
	if (!rule)
		return verdict;
	rc_rule_count(rule, pkt->len);
	pkt->rule = rule->rule.id;
	verdict.action = rule->rule.action;
	verdict.target = rule->rule.target;
	if (verdict.action == RINGCAP_ACTION_LEARN)
		rc_rules_learn(rules, frame, pkt, rule->rule.idle_s);
	return verdict;
}

struct rc_verdict rc_rules_decide(struct rc_rules *rules, struct rc_packet *pkt)
{
	const struct rc_wild *wild = rcu_dereference(rules->wild);
	bool has_exacts = READ_ONCE(rules->exacts.nr);
	struct rc_exact *exact;
	struct rc_frame frame;

	if (!has_exacts && !wild)
		return rules->otherwise;
	if (!pkt->parsed)
		rc_packet_parse(pkt);
	rc_packet_frame(pkt, &frame);
	exact = has_exacts ? rc_rules_find_exact(rules, &frame, pkt) : NULL;
	if (exact) {
		rc_exact_count(exact, pkt->len);
		return rc_exact_verdict(exact);
	}
	return wild ? rc_rules_decide_wild(rules, wild, &frame, pkt) : rules->otherwise;
}
