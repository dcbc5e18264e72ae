// SPDX-License-Identifier: GPL-2.0-only

#include "stages.h"

#include "cluster.h"
#include "net.h"
#include "pattern.h"
#include "plugin.h"
#include "rules.h"
#include "rules_decide.h"
#include "sample.h"
#include "scratch.h"
#include "vlans.h"

/* Stages other than rules. */
static bool rc_stages_others(const struct rc_ring_config *config)
{
	return config->vlans || config->plugins || config->sample.n > 1 || config->hwtstamp || config->defrag;
}

void rc_stages_note(const struct rc_ring *ring, struct rc_ring_config *config)
{
	const struct rc_rules *rules = rc_rules_in_force(ring);
	bool has_others = rc_stages_others(config);
	struct rc_cluster *only = has_others || config->nr_outputs != 1 ? NULL : config->outputs[0];
	bool filter = config->filter;

	WRITE_ONCE(config->has_stages, rules || has_others);
	WRITE_ONCE(config->fast, rules || filter ? NULL : only);
	WRITE_ONCE(config->ruled, rules && !rules->patterns && !filter ? only : NULL);
	WRITE_ONCE(config->filtered, filter && !rules ? only : NULL);
}

void rc_stages_update(struct rc_ring *ring)
{
	rc_stages_note(ring, rcu_dereference_protected(ring->config, rc_net_held(ring->rc_net)));
}

static enum rc_fate rc_stages_reflect(struct rc_ring *ring, const struct rc_target *target, const struct rc_packet *pkt)
{
	struct rc_account *account = this_cpu_ptr(ring->account);
	struct sk_buff *copy = NULL, *skb = pkt->skb;

	if (rc_scratch_is(skb))
		skb = copy = rc_scratch_copy(skb);
	if (!skb || !rc_egress_reflect(&target->egress, skb))
		rc_account_add(account->reflect_failed, 1);
	consume_skb(copy);
	return RC_FATE_REFLECTED;
}

static enum rc_fate rc_stages_direct(const struct rc_target *target, struct rc_packet *pkt)
{
	rc_cluster_direct(target->cluster, target->queue, pkt);
	return RC_FATE_DIRECTED;
}

enum rc_fate rc_stages_run(struct rc_ring *ring, const struct rc_ring_config *config, struct rc_packet *pkt)
{
	struct rc_rules *rules = rcu_dereference(ring->rules);
	struct rc_verdict verdict = { .action = RINGCAP_ACTION_PASS };

	if (config->hwtstamp)
		rc_packet_device_time(pkt);
	if (config->vlans && !rc_vlans_pass(config->vlans, pkt))
		return RC_FATE_FILTERED;
	if (rules) {
		verdict = rc_rules_decide(rules, pkt);
		if (verdict.action == RINGCAP_ACTION_DROP)
			return RC_FATE_FILTERED;
		if (verdict.action == RINGCAP_ACTION_REFLECT)
			return rc_stages_reflect(ring, &rules->targets[verdict.target], pkt);
		if (rules->patterns && !rc_patterns_pass(rules->patterns, pkt))
			return RC_FATE_FILTERED;
	}
	if (config->plugins && !rc_plugins_pass(config->plugins, pkt))
		return RC_FATE_FILTERED;
	if (config->sample.n > 1 && !rc_sample_keep(&config->sample, pkt))
		return RC_FATE_SAMPLED_OUT;
	if (verdict.action != RINGCAP_ACTION_QUEUE)
		return RC_FATE_PASSED;
	return rc_stages_direct(&rules->targets[verdict.target], pkt);
}

enum rc_fate rc_stages_obey(struct rc_ring *ring, const struct rc_rules *rules, struct rc_verdict verdict,
			    struct rc_packet *pkt)
{
	switch (verdict.action) {
	case RINGCAP_ACTION_DROP:
		return RC_FATE_FILTERED;
	case RINGCAP_ACTION_REFLECT:
		return rc_stages_reflect(ring, &rules->targets[verdict.target], pkt);
	case RINGCAP_ACTION_QUEUE:
		return rc_stages_direct(&rules->targets[verdict.target], pkt);
	default:
		return RC_FATE_PASSED;
	}
}
