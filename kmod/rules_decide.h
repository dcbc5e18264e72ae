/* SPDX-License-Identifier: GPL-2.0-only */
/* What rules decide on packets. */
#ifndef RC_RULES_DECIDE_H
#define RC_RULES_DECIDE_H

#include "classify/rule.h"
#include "packet.h"
#include "rules.h"
#include "verdict.h"

/* Decides on @pkt. Bottom halves off, under RCU. */
struct rc_verdict rc_rules_decide(struct rc_rules *rules, struct rc_packet *pkt);

/* Adds the flow of the packet that matched a learning rule to the exact rules, or counts that this failed. */
void rc_rules_learn(struct rc_rules *rules, const struct rc_exact_key *key, u32 words, u32 idle_s);

/* The verdict of the exact rule of the packet's flow. The rule counts the packet. Returns false if there is no rule. */
static __always_inline bool rc_rules_decide_exact(struct rc_rules *rules, const struct rc_frame *frame,
						  const struct rc_flow *flow, u32 len, struct rc_verdict *verdict)
{
	struct rc_exact_key key rc_uninitialized;
	struct rc_exact *exact;
	u32 words;

	if (!READ_ONCE(rules->exacts.nr))
		return false;
	words = rc_exact_key_of_packet(frame, flow, &key);
	exact = words ? rc_exacts_find(&rules->exacts, key.w, words) : NULL;
	if (!exact)
		return false;
	rc_exact_count(exact, len);
	*verdict = rc_exact_verdict(exact);
	return true;
}

/* The verdict of @rule, which counts the packet; @id gets the rule's id. If @rule is NULL, the set's default. */
static __always_inline struct rc_verdict rc_rules_decide_wild(struct rc_rules *rules, struct rc_rule *rule,
							      const struct rc_frame *frame, const struct rc_flow *flow,
							      u32 len, u32 *id)
{
	struct rc_verdict verdict = rules->otherwise;
	struct rc_exact_key key rc_uninitialized;
	u32 words;

	if (!rule)
		return verdict;
	rc_rule_count(rule, len);
	*id = rule->rule.id;
	verdict.action = rule->rule.action;
	verdict.target = rule->rule.target;
	/* A fragment has no ports, so its flow is not known. */
	if (verdict.action == RINGCAP_ACTION_LEARN && !(flow->flags & RINGCAP_SLOT_FRAGMENT)) {
		words = rc_exact_key_of_packet(frame, flow, &key);
		if (words)
			rc_rules_learn(rules, &key, words, rule->rule.idle_s);
	}
	return verdict;
}

/*
 * Does the same as rc_rules_decide for a packet that is contiguous and has no tag outside of its data. Its address is
 * passed to no function. Returns false and has done nothing if the packet is not plain, or if patterns or packets in
 * tunnels matter.
 */
static __always_inline bool rc_rules_decide_plain(struct rc_rules *rules, struct rc_packet *pkt,
						  struct rc_verdict *verdict)
{
	const struct rc_wild *wild = rcu_dereference(rules->wild);
	const struct rc_frame frame = { .data = pkt->data, .avail = pkt->linear };
	struct rc_rule *rule;

	if (unlikely(rules->patterns || (wild && wild->inner) || !rc_packet_parse_plain(pkt)))
		return false;
	if (rc_rules_decide_exact(rules, &frame, &pkt->flow, pkt->len, verdict))
		return true;
	rule = wild ? rc_wild_find_plain(wild, pkt->data, pkt->linear) : NULL;
	*verdict = rc_rules_decide_wild(rules, rule, &frame, &pkt->flow, pkt->len, &pkt->rule);
	return true;
}

#endif /* RC_RULES_DECIDE_H */
