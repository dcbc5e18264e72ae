// SPDX-License-Identifier: GPL-2.0-only

#include "message.h"

#include <linux/kdev_t.h>
#include <linux/pid.h>
#include <linux/ringcap.h>
#include <linux/rtnetlink.h>
#include <net/netlink.h>

#include "attr.h"
#include "balance.h"
#include "chardev.h"
#include "cluster.h"
#include "hold.h"
#include "pattern.h"
#include "plugin.h"
#include "ring.h"
#include "rules.h"
#include "rx_queues.h"
#include "shunt.h"
#include "tap.h"
#include "vlans.h"

/* Puts the granted devices that still exist. */
static int rc_message_put_grants(struct sk_buff *msg, const struct rc_grants *grants)
{
	u32 i;

	for (i = 0; grants && i < grants->nr; i++)
		if (rcu_access_pointer(grants->egresses[i].dev) &&
		    nla_put_u32(msg, RINGCAP_A_INJECT, grants->egresses[i].ifindex))
			return -EMSGSIZE;
	return 0;
}

int rc_message_put_cluster(struct sk_buff *msg, const struct rc_cluster *cluster)
{
	if (nla_put_string(msg, RINGCAP_A_NAME, cluster->name) ||
	    rc_attr_put_u64(msg, RINGCAP_A_GENERATION, cluster->generation) ||
	    nla_put_u32(msg, RINGCAP_A_QUEUES, cluster->shape.nr_queues) ||
	    nla_put_u32(msg, RINGCAP_A_LANES, cluster->shape.nr_lanes) ||
	    nla_put_u32(msg, RINGCAP_A_LANE_SIZE, cluster->shape.lane_size) ||
	    nla_put_u32(msg, RINGCAP_A_BALANCE, cluster->balance) ||
	    nla_put_u32(msg, RINGCAP_A_WATERMARK, cluster->watermark) ||
	    nla_put_u32(msg, RINGCAP_A_TIMEOUT_US, cluster->timeout_us) ||
	    nla_put_u32(msg, RINGCAP_A_MODE, cluster->mode) || nla_put_u32(msg, RINGCAP_A_OWNED, !!cluster->owner) ||
	    nla_put_u32(msg, RINGCAP_A_METADATA, cluster->metadata) ||
	    rc_attr_put_u64(msg, RINGCAP_A_MEMORY, rc_cluster_memory(cluster)))
		return -EMSGSIZE;
	if (cluster->shape.in_line && (nla_put_u32(msg, RINGCAP_A_INLINE, cluster->open) ||
				       nla_put_u32(msg, RINGCAP_A_HUNG_MS, cluster->hung_ms)))
		return -EMSGSIZE;
	if (nla_put_u32(msg, RINGCAP_A_SHUNT_QUOTA, cluster->shunt_quota))
		return -EMSGSIZE;
	return rc_balance_put(msg, cluster) ?: rc_message_put_grants(msg, cluster->grants);
}

static int rc_message_put_tap(struct sk_buff *msg, const struct rc_tap *tap)
{
	const struct rc_rx_queues *rx_queues = rtnl_dereference(tap->rx_queues);
	struct nlattr *nest = nla_nest_start(msg, RINGCAP_A_TAP);

	if (!nest || nla_put_u32(msg, RINGCAP_A_TAP_IFINDEX, tap->ifindex) ||
	    nla_put_u32(msg, RINGCAP_A_TAP_DIRECTION, tap->direction) ||
	    nla_put_u32(msg, RINGCAP_A_TRANSPARENT, tap->mode) ||
	    (tap->peer && nla_put_u32(msg, RINGCAP_A_TAP_PEER, tap->peer)) ||
	    (tap->follows && nla_put_u32(msg, RINGCAP_A_TAP_FOLLOWS, rc_tap_is_away(tap) ? 2 : 1)) ||
	    (rx_queues &&
	     nla_put(msg, RINGCAP_A_TAP_RX_QUEUES, BITS_TO_U64(rx_queues->nr) * sizeof(u64), rx_queues->mask)))
		return -EMSGSIZE;
	nla_nest_end(msg, nest);
	return 0;
}

static int rc_message_put_pairs(struct sk_buff *msg, const struct rc_ring *ring, const struct rc_account_sum *sum)
{
	u64 stats[RINGCAP_INLINE_STATS] = { [RINGCAP_INLINE_BRIDGED] = sum->bridged };

	memcpy(&stats[RINGCAP_INLINE_TOO_LONG], sum->lost, sizeof(sum->lost));
	if (nla_put_u32(msg, RINGCAP_A_ADDRESSED, ring->addressed) ||
	    nla_put(msg, RINGCAP_A_INLINE_STATS, sizeof(stats), stats))
		return -EMSGSIZE;
	return 0;
}

static int rc_message_put_account(struct sk_buff *msg, const struct rc_ring *ring)
{
	struct rc_account_sum sum;

	rc_account_sum(ring->account, &sum);
	if (rc_attr_put_u64(msg, RINGCAP_A_SEEN, sum.seen) ||
	    rc_attr_put_u64(msg, RINGCAP_A_SEEN_BYTES, sum.seen_bytes) ||
	    rc_attr_put_u64(msg, RINGCAP_A_FILTERED, sum.fates[RC_FATE_FILTERED]) ||
	    rc_attr_put_u64(msg, RINGCAP_A_SAMPLED_OUT, sum.fates[RC_FATE_SAMPLED_OUT]) ||
	    rc_attr_put_u64(msg, RINGCAP_A_REFLECTED, sum.fates[RC_FATE_REFLECTED]) ||
	    rc_attr_put_u64(msg, RINGCAP_A_REFLECT_FAILED, sum.reflect_failed) ||
	    rc_attr_put_u64(msg, RINGCAP_A_ABSORBED, sum.fates[RC_FATE_ABSORBED]) ||
	    rc_attr_put_u64(msg, RINGCAP_A_DIRECTED, sum.fates[RC_FATE_DIRECTED]) ||
	    rc_attr_put_u64(msg, RINGCAP_A_PASSED, sum.fates[RC_FATE_PASSED]))
		return -EMSGSIZE;
	return rc_ring_config(ring)->in_line ? rc_message_put_pairs(msg, ring, &sum) : 0;
}

static int rc_message_put_stages(struct sk_buff *msg, const struct rc_ring_config *config)
{
	if ((config->vlans && rc_vlans_put(msg, config->vlans)) ||
	    (config->plugins && rc_plugins_put(msg, config->plugins)))
		return -EMSGSIZE;
	if (config->sample.n > 1 && (nla_put_u32(msg, RINGCAP_A_SAMPLE, config->sample.n) ||
				     nla_put_u32(msg, RINGCAP_A_SAMPLE_BY, config->sample.by)))
		return -EMSGSIZE;
	return 0;
}

static int rc_message_put_rules(struct sk_buff *msg, const struct rc_ring *ring)
{
	struct rc_rules *rules = rc_rules_in_force(ring);
	struct rc_account_sum sum;
	u64 memory = 0;

	if (rules) {
		memory = rc_rules_memory(rules);
		if (rc_attr_put_u64(msg, RINGCAP_A_RULES_GENERATION, rules->generation) ||
		    nla_put_u32(msg, RINGCAP_A_DEFAULT_ACTION, rules->default_action) ||
		    nla_put_u32(msg, RINGCAP_A_NR_EXACT, READ_ONCE(rules->exacts.nr)) ||
		    nla_put_u32(msg, RINGCAP_A_NR_RULES, rules->nr_rules) ||
		    nla_put_u32(msg, RINGCAP_A_NR_SHAPES, rc_rules_nr_shapes(rules)) ||
		    nla_put_u32(msg, RINGCAP_A_PATTERN_ACTION, rules->pattern_action) ||
		    nla_put_u32(msg, RINGCAP_A_NR_PATTERNS, rc_patterns_count(rules->patterns)))
			return -EMSGSIZE;
	}
	rc_account_sum(ring->account, &sum);
	if (rc_attr_put_u64(msg, RINGCAP_A_EXPIRED, atomic64_read(&ring->expired)) ||
	    rc_attr_put_u64(msg, RINGCAP_A_NOT_LEARNT, sum.not_learnt) ||
	    rc_attr_put_u64(msg, RINGCAP_A_MEMORY, memory))
		return -EMSGSIZE;
	return 0;
}

int rc_message_put_ring(struct sk_buff *msg, const struct rc_ring *ring)
{
	const struct rc_ring_config *config = rc_ring_config(ring);
	const struct rc_tap *tap;
	u32 i;

	if (nla_put_string(msg, RINGCAP_A_NAME, ring->name) ||
	    rc_attr_put_u64(msg, RINGCAP_A_GENERATION, ring->generation) ||
	    nla_put_u32(msg, RINGCAP_A_SNAPLEN, config->snaplen) ||
	    nla_put_u32(msg, RINGCAP_A_PROMISC, ring->promiscuous) ||
	    nla_put_u32(msg, RINGCAP_A_DEFRAG, config->defrag) ||
	    nla_put_u32(msg, RINGCAP_A_OWNED, !!ring->owner) || nla_put_u32(msg, RINGCAP_A_QUICK, ring->quick) ||
	    nla_put_u32(msg, RINGCAP_A_TRANSPARENT, ring->transparent) ||
	    nla_put_u32(msg, RINGCAP_A_TRANSPARENT_FALLBACK, ring->transparent_fallback) ||
	    nla_put_u32(msg, RINGCAP_A_HWTSTAMP, config->hwtstamp))
		return -EMSGSIZE;
	list_for_each_entry(tap, &ring->taps, list)
		if (rc_message_put_tap(msg, tap))
			return -EMSGSIZE;
	for (i = 0; i < config->nr_outputs; i++)
		if (nla_put_string(msg, RINGCAP_A_OUTPUT, config->outputs[i]->name))
			return -EMSGSIZE;
	return rc_message_put_stages(msg, config) ?: rc_message_put_rules(msg, ring) ?:
	       rc_message_put_account(msg, ring);
}

static int rc_message_put_hold(struct sk_buff *msg, struct rc_hold *hold)
{
	u64 stats[RINGCAP_INLINE_STATS];
	struct rc_hold_episode now;

	rc_hold_stats(hold, stats);
	if (nla_put(msg, RINGCAP_A_INLINE_STATS, sizeof(stats), stats))
		return -EMSGSIZE;
	if (!rc_hold_is_past(hold, &now))
		return 0;
	return nla_put_u32(msg, RINGCAP_A_PAST, now.event) ?:
	       rc_attr_put_u64(msg, RINGCAP_A_PAST_PACKETS, now.packets) ?:
	       rc_attr_put_u64(msg, RINGCAP_A_PAST_MS, now.ms);
}

static int rc_message_put_shunts(struct sk_buff *msg, const struct rc_queue *queue)
{
	struct rc_queue_shunted shunted;

	rc_queue_shunted(queue, &shunted);
	if (rc_attr_put_u64(msg, RINGCAP_A_SHUNTED, shunted.packets) ||
	    rc_attr_put_u64(msg, RINGCAP_A_SHUNTED_BYTES, shunted.bytes))
		return -EMSGSIZE;
	return 0;
}

static int rc_message_put_stats(struct sk_buff *msg, struct rc_queue *queue)
{
	struct ringcap_lane_stats sum;

	rc_queue_stats(queue, &sum);
	if (rc_attr_put_u64(msg, RINGCAP_A_DELIVERED, sum.delivered) ||
	    rc_attr_put_u64(msg, RINGCAP_A_DELIVERED_BYTES, sum.delivered_bytes) ||
	    rc_attr_put_u64(msg, RINGCAP_A_TRUNCATED, sum.truncated) ||
	    rc_attr_put_u64(msg, RINGCAP_A_TRUNCATED_BYTES, sum.truncated_bytes) ||
	    nla_put(msg, RINGCAP_A_DROPPED, sizeof(sum.dropped), sum.dropped) ||
	    rc_attr_put_u64(msg, RINGCAP_A_SHARED, rc_queue_shared(queue)) ||
	    nla_put_u32(msg, RINGCAP_A_LANES_TAKEN, rc_queue_lanes(queue)) ||
	    rc_attr_put_u64(msg, RINGCAP_A_UNREAD_BYTES, rc_queue_unread_bytes(queue)) ||
	    rc_attr_put_u64(msg, RINGCAP_A_FULLEST_LANE, rc_queue_fullest_lane(queue)) ||
	    rc_attr_put_u64(msg, RINGCAP_A_TX_SENT, READ_ONCE(queue->tx_sent)) ||
	    rc_attr_put_u64(msg, RINGCAP_A_TX_FAILED, READ_ONCE(queue->tx_failed)) ||
	    rc_attr_put_u64(msg, RINGCAP_A_MEMORY, rc_queue_memory(queue)))
		return -EMSGSIZE;
	return rc_message_put_shunts(msg, queue) ?: queue->hold ? rc_message_put_hold(msg, queue->hold) : 0;
}

int rc_message_put_queue(struct sk_buff *msg, struct rc_cluster *cluster, u32 index)
{
	struct rc_chardev *chardev = cluster->chardevs[index];
	char dev[sizeof("ringcap/") + RINGCAP_NAME_MAX + sizeof("/255")];
	struct rc_queue *queue;
	u64 attachment, lost;
	bool attached;
	u32 shunts;
	pid_t pid;

	mutex_lock(&rc_chardev_lock);
	queue = chardev->queue;
	attached = rc_queue_has_consumer(queue);
	pid = attached ? pid_vnr(queue->pid) : 0;
	attachment = queue->attachment;
	shunts = rc_shunts_count(queue);
	lost = rc_shunts_lost(queue);
	mutex_unlock(&rc_chardev_lock);

	snprintf(dev, sizeof(dev), "ringcap/%s/%u", cluster->name, index);
	if (nla_put_string(msg, RINGCAP_A_NAME, cluster->name) ||
	    nla_put_u32(msg, RINGCAP_A_QUEUE, index) ||
	    nla_put_u32(msg, RINGCAP_A_ATTACHED, attached) ||
	    (attached && (nla_put_u32(msg, RINGCAP_A_ATTACHED_PID, pid) ||
			  rc_attr_put_u64(msg, RINGCAP_A_ATTACHMENT, attachment))) ||
	    nla_put_u32(msg, RINGCAP_A_SHUNTS, shunts) || rc_attr_put_u64(msg, RINGCAP_A_SHUNTS_LOST, lost) ||
	    nla_put_string(msg, RINGCAP_A_DEV, dev) ||
	    nla_put_u32(msg, RINGCAP_A_DEVT, MAJOR(chardev->devt) << 20 | MINOR(chardev->devt)))
		return -EMSGSIZE;
	return rc_message_put_stats(msg, queue);
}
