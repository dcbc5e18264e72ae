/* SPDX-License-Identifier: GPL-2.0-only */
/* Clusters: named sets of queues. Each packet goes to one queue of the cluster. */
#ifndef RC_CLUSTER_H
#define RC_CLUSTER_H

#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/ringcap.h>

#include "grant.h"
#include "packet.h"
#include "queue.h"
#include "shunt.h"

struct netlink_ext_ack;
struct rc_fragments;
struct rc_net;
struct rc_chardev;

/**
 * struct rc_balance_options - options of a cluster beyond its balance type
 * @inner: hash the innermost packet of tunnels
 * @fragments: enum ringcap_fragments
 * @when_full, @when_unattended: enum ringcap_policy
 */
struct rc_balance_options {
	bool inner;
	u8 fragments;
	u8 when_full;
	u8 when_unattended;
};

/* One CPU's share of a cluster's account, see RINGCAP_A_DUPLICATED and RINGCAP_A_SPREAD. */
struct rc_balance_account {
	u64 duplicated;
	u64 spread;
};

/* The path of plain packets to their queue, see rc_cluster_find_queue. */
enum rc_cluster_path {
	RC_PATH_SLOW,		/* special options, shunted flows, or more than a short slot */
	RC_PATH_ONE,		/* there is only one queue */
	RC_PATH_RX_QUEUE,
	RC_PATH_HASH,
};

/**
 * struct rc_cluster_config - the configuration of a cluster that packets use; replaced under RCU. Only @path, @special and
 *	@shunting change: packets may see any of their values, in any combination
 * @balance: how one of several queues is chosen
 * @hashed: RINGCAP_SLOT_HASHED if packets are parsed and hashed, to choose a queue or for their slots; else 0
 * @hdr_len: length of the slots' headers: with metadata, or short
 * @path, @special: @usual_path and @usually_special, or while @shunting RC_PATH_SLOW and true
 * @usual_path: enum rc_cluster_path
 * @usually_special: @options need more than rc_cluster_deliver does itself, see balance.h
 * @shunting: a consumer has shunted flows
 * @key: of the hash
 * @fragments: table, if fragments go with their flow, else NULL; the next configuration takes it over if it needs one
 * @queues: the cluster holds the references to them, not the configuration
 */
struct rc_cluster_config {
	u32 nr_queues;
	u32 balance;
	u8 hashed;
	u8 hdr_len;
	u8 path;
	u8 usual_path;
	bool special;
	bool usually_special;
	bool shunting;
	struct rc_balance_options options;
	rc_u64 key[2];
	struct rc_fragments *fragments;
	struct rc_queue *queues[];
};

/**
 * struct rc_cluster - a cluster
 * @config: written under rc_net.control
 * @turn: per CPU, the next queue of a round robin
 * @balance_account: per CPU
 * @list: in rc_net.clusters
 * @registered: in the list of the clusters of all namespaces: device nodes have no namespace
 * @open, @hung_ms: of an in-line cluster, see rc_hold
 * @shunt_quota: flows that each of its consumers may shunt
 * @nr_rings: number of rings that feed it
 * @nr_targets: number of rule set targets that are queues of it
 * @snaplen: greatest snap length of the rings that feed it, 0 = none
 * @chardevs: character devices of its queues
 * @owner: see owner.h
 * @grants: interfaces that its consumers may send out of, NULL = none
 *
 * Everything but @config and @snaplen is under rc_net.control.
 */
struct rc_cluster {
	struct rc_cluster_config __rcu *config;
	u32 __percpu *turn;
	struct rc_balance_account __percpu *balance_account;

	char name[RINGCAP_NAME_MAX + 1];
	struct list_head list;
	struct list_head registered;
	struct rc_net *rc_net;
	struct rc_queue_shape shape;
	u32 balance;
	u32 watermark;
	u32 timeout_us;
	bool metadata;
	struct rc_balance_options options;
	u8 open;
	u32 hung_ms;
	u32 shunt_quota;
	u64 generation;
	umode_t mode;
	u8 key[RINGCAP_KEY_LEN];
	unsigned int nr_rings;
	unsigned int nr_targets;
	u32 snaplen;
	struct rc_chardev **chardevs;
	u32 owner;
	struct rc_grants *grants;
};

struct rc_cluster *rc_cluster_find(const struct rc_net *rc_net, const char *name);

/* The configuration that packets see. Under rc_net.control. */
#define rc_cluster_config(cluster) \
	rcu_dereference_protected((cluster)->config, rc_net_held((cluster)->rc_net))

/* A configuration for @nr_queues queues, without the queues. NULL without memory. */
struct rc_cluster_config *rc_cluster_config_alloc(u32 nr_queues);

/*
 * Frees @config, which packets do not see, but not its queues. @other: the configuration that packets see, or its
 * successor, or NULL.
 */
void rc_cluster_config_free(struct rc_cluster_config *config, const struct rc_cluster_config *other);

/* Lets packets look up shunted flows if there are any, and if the cluster's consumers may have some. Under rc_chardev_lock. */
void rc_cluster_note_shunts(struct rc_cluster *cluster);

/*
 * Gives @cluster the new @config, in which packets look up shunted flows from the first packet on. Returns the former
 * one. Under rc_net.control and rc_chardev_lock.
 */
struct rc_cluster_config *rc_cluster_replace_config(struct rc_cluster *cluster, struct rc_cluster_config *config);

struct rc_queue *rc_cluster_queue(const struct rc_cluster *cluster, u32 index);
u64 rc_cluster_memory(const struct rc_cluster *cluster);

/* The queue, of several, that gets @pkt. */
static __always_inline u32 rc_cluster_choose(struct rc_cluster *cluster, const struct rc_cluster_config *config,
					     const struct rc_packet *pkt)
{
	switch (config->balance) {
	case RINGCAP_BALANCE_ROUND_ROBIN:
		return this_cpu_inc_return(*cluster->turn) % config->nr_queues;
	case RINGCAP_BALANCE_RX_QUEUE:
		return pkt->rx_queue % config->nr_queues;
	default:
		return rc_queue(pkt->hash, config->nr_queues);
	}
}

/* Fills in @pkt for the slots of this cluster, but for the hash. */
static __always_inline void rc_cluster_describe_slot(const struct rc_cluster_config *config, struct rc_packet *pkt)
{
	pkt->hash = 0;
	pkt->hashed = config->hashed;
	pkt->hdr_len = config->hdr_len;
}

/* Fills in @pkt for the slots of this cluster. */
static __always_inline void rc_cluster_describe(const struct rc_cluster_config *config, struct rc_packet *pkt)
{
	rc_cluster_describe_slot(config, pkt);
	if (config->hashed) {
		if (!pkt->parsed)
			rc_packet_parse(pkt);
		pkt->hash = rc_flow_hash(&pkt->flow, config->balance, config->key);
	}
}

/* Whether the consumer of queue @index has shunted the flow of @pkt, which is counted then. */
static __always_inline bool rc_cluster_is_shunted(const struct rc_cluster_config *config, u32 index,
						  struct rc_packet *pkt)
{
	return unlikely(READ_ONCE(config->shunting)) && rc_shunt_takes(config->queues[index], pkt);
}

/* Gives @pkt to the queue that a rule names. It exists as long as the rule. Bottom halves off, under RCU. */
static inline void rc_cluster_direct(struct rc_cluster *cluster, u32 index, struct rc_packet *pkt)
{
	const struct rc_cluster_config *config = rcu_dereference(cluster->config);

	rc_cluster_describe(config, pkt);
	if (!rc_cluster_is_shunted(config, index, pkt))
		rc_queue_deliver(config->queues[index], pkt);
}

/*
 * Finds the @queue of a plain packet, and the hash for its short slot. False if the packet needs the general path. @pkt
 * is new, or was parsed as a plain packet. Its address is not passed on from here. So the compiler keeps the necessary
 * fields in registers and drops the rest. As no other cluster gets it, @flags has RINGCAP_SLOT_HASHED: that takes no
 * register more.
 */
static __always_inline bool rc_cluster_find_queue_by(u8 path, const struct rc_cluster_config *config,
						     struct rc_packet *pkt, struct rc_queue **queue)
{
	pkt->hash = 0;
	pkt->hashed = 0;
	pkt->hdr_len = RINGCAP_SLOT_SHORT;
	if (likely(path == RC_PATH_ONE)) {
		*queue = config->queues[0];
		return true;
	}
	if (path == RC_PATH_HASH) {
		if (unlikely(!pkt->parsed && !rc_packet_parse_plain(pkt)))
			return false;
		pkt->hash = rc_flow_hash(&pkt->flow, config->balance, config->key);
		pkt->flags |= RINGCAP_SLOT_HASHED;
		*queue = config->queues[rc_queue(pkt->hash, config->nr_queues)];
		return true;
	}
	if (path != RC_PATH_RX_QUEUE)
		return false;
	*queue = config->queues[pkt->rx_queue % config->nr_queues];
	return true;
}

static __always_inline bool rc_cluster_find_queue(const struct rc_cluster *cluster, struct rc_packet *pkt,
						  struct rc_queue **queue)
{
	const struct rc_cluster_config *config = rcu_dereference(cluster->config);

	return rc_cluster_find_queue_by(READ_ONCE(config->path), config, pkt, queue);
}

#endif /* RC_CLUSTER_H */
