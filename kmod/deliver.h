/* SPDX-License-Identifier: GPL-2.0-only */
/* Delivery: a packet that a ring passes goes to the ring's clusters, and to a queue in each of them. */
#ifndef RC_DELIVER_H
#define RC_DELIVER_H

#include "balance.h"
#include "cluster.h"
#include "ring.h"

/* Gives @pkt to one of the queues, which accounts for it. Bottom halves off, under RCU. */
static __always_inline void rc_cluster_deliver(struct rc_cluster *cluster, struct rc_packet *pkt)
{
	const struct rc_cluster_config *config = rcu_dereference(cluster->config);
	u32 index = 0;

	if (unlikely(READ_ONCE(config->special))) {
		rc_balance_deliver(cluster, config, pkt);
		return;
	}
	rc_cluster_describe(config, pkt);
	if (config->nr_queues > 1)
		index = rc_cluster_choose(cluster, config, pkt);
	rc_queue_deliver(config->queues[index], pkt);
}

static inline void rc_ring_deliver(const struct rc_ring_config *config, struct rc_packet *pkt)
{
	u32 i;

	for (i = 0; i < config->nr_outputs; i++)
		rc_cluster_deliver(config->outputs[i], pkt);
}

#endif /* RC_DELIVER_H */
