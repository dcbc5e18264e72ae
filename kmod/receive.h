/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Receiving: a packet's way from a tap to the clusters, in one piece. Every instruction in here, and in what it calls
 * inline, is one for each packet of each ring.
 */
#ifndef RC_RECEIVE_H
#define RC_RECEIVE_H

#include <linux/filter.h>
#include <linux/if_vlan.h>

#include "account.h"
#include "cluster.h"
#include "packet.h"
#include "ring.h"
#include "steps.h"

static __always_inline void rc_ring_deliver(const struct rc_ring_config *config, struct rc_packet *pkt)
{
	u32 i;

	for (i = 0; i < config->nr_outputs; i++)
		rc_cluster_deliver(config->outputs[i], pkt);
}

/* Any packet that has passed the filter. */
enum rc_fate rc_ring_decide(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb,
			    u32 wire_len, u32 ifindex);

/* What becomes of a packet that starts at its MAC header. A @quick ring has nothing between its tap and its queues. */
static __always_inline enum rc_fate rc_ring_pass(struct rc_ring *ring, const struct rc_ring_config *config,
						 struct sk_buff *skb, u32 wire_len, u32 ifindex, bool quick)
{
	struct rc_packet pkt rc_uninitialized;

	if (!quick && config->filter && !bpf_prog_run(config->filter, skb))
		return RC_FATE_FILTERED;
	if (quick || likely(!rc_steps_any(config) && config->nr_outputs == 1)) {
		rc_packet_init(&pkt, skb, wire_len, config->snaplen, ifindex);
		if (likely(rc_cluster_deliver_direct(config->outputs[0], &pkt, !quick)))
			return RC_FATE_PASSED;
	}
	return rc_ring_decide(ring, config, skb, wire_len, ifindex);
}

/*
 * A tap's packet. The skb may be shared with other taps, which see it after us: what we move of it, we move back. Nothing
 * else is written to it. Bottom halves off, under RCU.
 */
static __always_inline void rc_ring_receive(struct rc_ring *ring, struct sk_buff *skb, u32 ifindex, bool quick)
{
	const struct rc_ring_config *config = rcu_dereference(ring->config);
	unsigned char *data = skb->data;
	unsigned int len = skb->len;
	enum rc_fate fate;
	u32 wire_len;

	/* Received packets begin behind the MAC header here, sent ones at it. */
	if (likely(skb_mac_header_was_set(skb)))
		__skb_push(skb, data - skb_mac_header(skb));
	wire_len = skb->len + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0);
	fate = rc_ring_pass(ring, config, skb, wire_len, ifindex, quick);
	rc_account_packet(ring->account, fate, wire_len);
	skb->data = data;
	skb->len = len;
}

#endif /* RC_RECEIVE_H */
