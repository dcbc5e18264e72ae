// SPDX-License-Identifier: GPL-2.0-only

#include "balance.h"

#include <linux/percpu.h>
#include <net/genetlink.h>

#include "attr.h"
#include "cluster.h"
#include "fragment.h"
#include "params.h"
#include "shunt.h"

#define RC_BALANCE_TRIES	4	/* a packet is dropped after so many stand-ins turned out to be full */

/* No queue: there is no stand-in, or no other copy of the packet. */
#define RC_BALANCE_NOWHERE	U32_MAX

bool rc_balance_is_special(u32 balance, const struct rc_balance_options *options, u32 nr_queues, bool hashed)
{
	if (hashed && (options->inner || options->fragments != RINGCAP_FRAGMENTS_TOGETHER ||
		       balance == RINGCAP_BALANCE_TCP_FIVE_TUPLE))
		return true;
	return nr_queues > 1 && (balance == RINGCAP_BALANCE_BOTH_ENDS || options->when_full != RINGCAP_POLICY_DROP ||
				 options->when_unattended != RINGCAP_POLICY_DROP);
}

/* ---- stand-ins ---- */

/*
 * How a packet, or one of its two copies, gets to a queue.
 *
 * @home: the queue that it belongs to
 * @seed: number that represents its flow
 * @except: the queue that has the other copy, RC_BALANCE_NOWHERE = there is no other copy
 */
struct rc_balance_way {
	u32 home;
	u32 seed;
	u32 except;
};

static u64 rc_balance_weight(u32 seed, u32 index)
{
	return rc_mix((u64)seed << 32 | (index + 1));
}

/* The queue with the greatest weight below *@bound that could take @pkt. *@bound becomes that weight. */
static u32 rc_balance_stand_in(const struct rc_cluster_config *config, const struct rc_packet *pkt,
			       const struct rc_balance_way *way, u64 *bound)
{
	bool with_room = config->options.when_full == RINGCAP_POLICY_SPREAD;
	u32 found = RC_BALANCE_NOWHERE, i;
	u64 best = 0, weight;

	for (i = 0; i < config->nr_queues; i++) {
		if (i == way->home || !READ_ONCE(config->queues[i]->attended))
			continue;
		weight = rc_balance_weight(way->seed, i);
		if (weight < best || weight >= *bound || (with_room && rc_queue_seems_full(config->queues[i], pkt)))
			continue;
		best = weight;
		found = i;
	}
	*bound = best;
	return found;
}

/* Returns the queue that took or dropped @pkt. RC_BALANCE_NOWHERE if the stand-in already has the other copy. */
static u32 rc_balance_give(struct rc_cluster *cluster, const struct rc_cluster_config *config, struct rc_packet *pkt,
			   const struct rc_balance_way *way)
{
	struct rc_queue *home = config->queues[way->home];
	bool attended = READ_ONCE(home->attended);
	u64 bound = U64_MAX;
	u32 tries, index;

	if (rc_cluster_is_shunted(config, way->home, pkt))
		return way->home;
	if ((attended ? config->options.when_full : config->options.when_unattended) == RINGCAP_POLICY_DROP)
		goto at_home;
	if (attended && rc_queue_offer(home, pkt))
		return way->home;
	for (tries = 0; tries < RC_BALANCE_TRIES; tries++) {
		index = rc_balance_stand_in(config, pkt, way, &bound);
		if (index == RC_BALANCE_NOWHERE)
			break;
		if (index == way->except)
			return RC_BALANCE_NOWHERE;
		if (rc_cluster_is_shunted(config, index, pkt)) {
			rc_account_add(this_cpu_ptr(cluster->balance_account)->spread, 1);
			return index;
		}
		if (config->options.when_full == RINGCAP_POLICY_DROP)
			rc_queue_deliver(config->queues[index], pkt);
		else if (!rc_queue_offer(config->queues[index], pkt))
			continue;
		rc_account_add(this_cpu_ptr(cluster->balance_account)->spread, 1);
		return index;
	}
at_home:
	rc_queue_deliver(home, pkt);
	return way->home;
}

/* ---- hashing ---- */

/*
 * The flow that @pkt is hashed by: its own, or that of the packet inside it. For a fragment it is the flow of the whole
 * datagram, in @whole, if that is known.
 */
static const struct rc_flow *rc_balance_flow(const struct rc_cluster_config *config, struct rc_packet *pkt,
					     struct rc_flow *whole)
{
	const struct rc_way_in *inner = config->options.inner ? rc_packet_inner(pkt) : NULL;
	const struct rc_flow *flow = inner ? &inner->flow : &pkt->flow;

	if (likely(!config->fragments || !(flow->flags & RINGCAP_SLOT_FRAGMENT)))
		return flow;
	*whole = *flow;
	return rc_fragments_complete(config->fragments, pkt, whole) ? whole : flow;
}

/* Gives @pkt to the queue of its source address, and to that of its destination address if it is another queue. */
static void rc_balance_both_ends(struct rc_cluster *cluster, const struct rc_cluster_config *config,
				 struct rc_packet *pkt, const struct rc_flow *flow)
{
	struct rc_balance_way way = { .except = RC_BALANCE_NOWHERE };
	u32 hashes[2], took;

	rc_end_hashes(flow, config->key, hashes);
	pkt->hash = way.seed = hashes[0];
	way.home = rc_queue(hashes[0], config->nr_queues);
	took = rc_balance_give(cluster, config, pkt, &way);
	way.home = rc_queue(hashes[1], config->nr_queues);
	if (way.home == took || way.home == rc_queue(hashes[0], config->nr_queues))
		return;
	pkt->hash = way.seed = hashes[1];
	way.except = took;
	if (rc_balance_give(cluster, config, pkt, &way) != RC_BALANCE_NOWHERE)
		rc_account_add(this_cpu_ptr(cluster->balance_account)->duplicated, 1);
}

/* The seed for a packet's flow. If the balance type does not use flows, the seed is the value that it uses instead. */
static u32 rc_balance_seed(struct rc_cluster *cluster, const struct rc_cluster_config *config,
			   const struct rc_packet *pkt)
{
	switch (config->balance) {
	case RINGCAP_BALANCE_ROUND_ROBIN:
		return this_cpu_read(*cluster->turn);
	case RINGCAP_BALANCE_RX_QUEUE:
		return pkt->rx_queue;
	default:
		return pkt->hash;
	}
}

/* Fills in @pkt for the slots of this cluster, but for the hash. The flow to hash, or NULL if the cluster does not. */
static const struct rc_flow *rc_balance_describe(const struct rc_cluster_config *config, struct rc_packet *pkt,
						 struct rc_flow *whole)
{
	rc_cluster_describe_slot(config, pkt);
	if (!config->hashed)
		return NULL;
	if (!pkt->parsed)
		rc_packet_parse(pkt);
	return rc_balance_flow(config, pkt, whole);
}

/* The queue of a packet with @flow, which rc_balance_describe gave, if the cluster does not balance by both ends. */
static u32 rc_balance_choose(struct rc_cluster *cluster, const struct rc_cluster_config *config, struct rc_packet *pkt,
			     const struct rc_flow *flow)
{
	if (flow)
		pkt->hash = rc_flow_hash(flow, rc_flow_balance(flow, config->balance), config->key);
	return config->nr_queues > 1 ? rc_cluster_choose(cluster, config, pkt) : 0;
}

void rc_balance_deliver(struct rc_cluster *cluster, const struct rc_cluster_config *config, struct rc_packet *pkt)
{
	struct rc_balance_way way = { .except = RC_BALANCE_NOWHERE };
	struct rc_flow whole rc_uninitialized;
	const struct rc_flow *flow = rc_balance_describe(config, pkt, &whole);

	if (flow && config->balance == RINGCAP_BALANCE_BOTH_ENDS) {
		rc_balance_both_ends(cluster, config, pkt, flow);
		return;
	}
	way.home = rc_balance_choose(cluster, config, pkt, flow);
	way.seed = rc_balance_seed(cluster, config, pkt);
	rc_balance_give(cluster, config, pkt, &way);
}

u32 rc_balance_home(struct rc_cluster *cluster, const struct rc_cluster_config *config, struct rc_packet *pkt)
{
	struct rc_flow whole rc_uninitialized;

	return rc_balance_choose(cluster, config, pkt, rc_balance_describe(config, pkt, &whole));
}

/* ---- configuration and account ---- */

void rc_balance_account_sum(const struct rc_cluster *cluster, struct rc_balance_account *sum)
{
	unsigned int cpu;

	*sum = (struct rc_balance_account){};
	for_each_possible_cpu(cpu) {
		const struct rc_balance_account *account = per_cpu_ptr(cluster->balance_account, cpu);

		sum->duplicated += READ_ONCE(account->duplicated);
		sum->spread += READ_ONCE(account->spread);
	}
}

static int rc_balance_request_policy(const struct genl_info *info, int type, u8 *policy)
{
	u32 value = rc_attr_u32(info, type, RINGCAP_POLICY_DROP);

	*policy = value;
	if (value <= RINGCAP_POLICY_SPREAD)
		return 0;
	return rc_attr_refuse(info->extack, info->attrs[type], -EINVAL,
			      "RINGCAP_A_WHEN_FULL, RINGCAP_A_WHEN_UNATTENDED: a policy is 0 (drop) or 1 (spread over other attended queues)");
}

int rc_balance_request(const struct genl_info *info, struct rc_balance_options *options)
{
	u32 usual = rc_param(enable_frag_coherence) ? RINGCAP_FRAGMENTS_WITH_FLOW : RINGCAP_FRAGMENTS_TOGETHER;
	u32 fragments = rc_attr_u32(info, RINGCAP_A_FRAGMENTS, usual);

	if (fragments > RINGCAP_FRAGMENTS_WITH_FLOW)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_FRAGMENTS], -EINVAL,
				      "RINGCAP_A_FRAGMENTS: fragments go to one queue 0 (together) or 1 (with their flow)");
	options->fragments = fragments;
	return rc_attr_flag(info, RINGCAP_A_INNER, &options->inner) ?:
	       rc_balance_request_policy(info, RINGCAP_A_WHEN_FULL, &options->when_full) ?:
	       rc_balance_request_policy(info, RINGCAP_A_WHEN_UNATTENDED, &options->when_unattended);
}

int rc_balance_put(struct sk_buff *msg, const struct rc_cluster *cluster)
{
	const struct rc_balance_options *options = &cluster->options;
	struct rc_balance_account sum;

	rc_balance_account_sum(cluster, &sum);
	if (nla_put_u32(msg, RINGCAP_A_INNER, options->inner) ||
	    nla_put_u32(msg, RINGCAP_A_FRAGMENTS, options->fragments) ||
	    nla_put_u32(msg, RINGCAP_A_WHEN_FULL, options->when_full) ||
	    nla_put_u32(msg, RINGCAP_A_WHEN_UNATTENDED, options->when_unattended) ||
	    rc_attr_put_u64(msg, RINGCAP_A_DUPLICATED, sum.duplicated) ||
	    rc_attr_put_u64(msg, RINGCAP_A_SPREAD, sum.spread))
		return -EMSGSIZE;
	return 0;
}
