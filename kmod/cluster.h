/* SPDX-License-Identifier: GPL-2.0-only */
/* Clusters: named sets of queues, of which each packet goes to one. */
#ifndef RC_CLUSTER_H
#define RC_CLUSTER_H

#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/ringcap.h>

#include "packet.h"
#include "queue.h"

struct netlink_ext_ack;
struct rc_net;
struct rc_node;

/* A cluster as its configurer wants it. */
struct rc_cluster_spec {
	char name[RINGCAP_NAME_MAX + 1];
	struct rc_queue_shape shape;
	u32 balance;
	u32 watermark;
	u32 timeout_us;
	u64 generation;
	u32 owner;
	umode_t mode;
	bool has_mode;
	bool has_key;
	u8 key[RINGCAP_KEY_LEN];
};

/**
 * struct rc_cluster_config - what packets need of a cluster; never changed, only replaced, under RCU
 * @round_robin: queues take turns
 * @hash_by: the balance type of the hash: the cluster's own, or FLOW where queues take turns
 * @key: of the hash
 * @queues: references are the cluster's, not the configuration's
 */
struct rc_cluster_config {
	u32 nr_queues;
	bool round_robin;
	u32 hash_by;
	rc_u64 key[2];
	struct rc_queue *queues[];
};

/**
 * struct rc_cluster - a cluster
 * @config: written under rc_control_lock
 * @turn: per CPU, the next queue of a round robin
 * @list: in rc_net.clusters
 * @registered: in the list of all namespaces' clusters: device nodes have no namespace
 * @nr_rings: rings that feed it
 * @snaplen: the greatest of theirs, 0 = none feeds it
 * @nodes: one for each queue
 * @owner: see owner.h
 *
 * Everything but @config and @snaplen is under rc_control_lock.
 */
struct rc_cluster {
	struct rc_cluster_config __rcu *config;
	u32 __percpu *turn;

	char name[RINGCAP_NAME_MAX + 1];
	struct list_head list;
	struct list_head registered;
	struct rc_net *rc_net;
	struct rc_queue_shape shape;
	u32 balance;
	u32 watermark;
	u32 timeout_us;
	u64 generation;
	umode_t mode;
	u8 key[RINGCAP_KEY_LEN];
	unsigned int nr_rings;
	u32 snaplen;
	struct rc_node **nodes;
	u32 owner;
};

struct rc_cluster *rc_cluster_find(const struct rc_net *rc_net, const char *name);

/* Makes the cluster as described, or changes nothing and says why. */
int rc_cluster_set(struct rc_net *rc_net, const struct rc_cluster_spec *spec, struct netlink_ext_ack *extack);
int rc_cluster_delete(struct rc_cluster *cluster, struct netlink_ext_ack *extack);
int rc_cluster_reset_queue(struct rc_cluster *cluster, u32 index, struct netlink_ext_ack *extack);

/* With its namespace, consumers attached or not. No ring feeds it. */
void rc_cluster_destroy(struct rc_cluster *cluster);

struct rc_queue *rc_cluster_queue(const struct rc_cluster *cluster, u32 index);
u64 rc_cluster_memory(const struct rc_cluster *cluster);

/* Gives @pkt to one of the queues, which accounts for it. Bottom halves off, under RCU. */
static __always_inline void rc_cluster_deliver(struct rc_cluster *cluster, struct rc_packet *pkt)
{
	const struct rc_cluster_config *config = rcu_dereference(cluster->config);
	u32 index = 0;

	/* One queue and nobody at it: no need to know what flow this is, nor who comes meanwhile. */
	pkt->hashed = config->nr_queues > 1 || READ_ONCE(config->queues[0]->attended);
	if (pkt->hashed) {
		if (!pkt->parsed)
			rc_packet_parse(pkt);
		pkt->hash = rc_flow_hash(&pkt->flow, config->hash_by, config->key);
		index = rc_queue(pkt->hash, config->nr_queues);
	}
	if (unlikely(config->round_robin))
		index = this_cpu_inc_return(*cluster->turn) % config->nr_queues;
	rc_queue_deliver(config->queues[index], pkt);
}

#endif /* RC_CLUSTER_H */
