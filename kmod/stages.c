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

static bool rc_stages_needed(const struct rc_ring *ring, const struct rc_ring_config *config)
{
	return rc_rules_in_force(ring) || config->vlans || config->plugins || config->sample.n > 1 ||
	       config->hwtstamp || config->defrag;
}

void rc_stages_note(const struct rc_ring *ring, struct rc_ring_config *config)
{
	bool has_stages = rc_stages_needed(ring, config);
	bool is_fast = !has_stages && !config->filter && config->nr_outputs == 1;

	WRITE_ONCE(config->has_stages, has_stages);
	WRITE_ONCE(config->fast, is_fast ? config->outputs[0] : NULL);
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

enum rc_fate rc_stages_run(struct rc_ring *ring, const struct rc_ring_config *config, struct rc_packet *pkt)
{
	struct rc_rules *rules = rcu_dereference(ring->rules);
	struct rc_verdict verdict = { .action = RINGCAP_ACTION_PASS };
	const struct rc_target *target;

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
	target = &rules->targets[verdict.target];
	rc_cluster_direct(target->cluster, target->queue, pkt);
	return RC_FATE_DIRECTED;
}
