/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Receiving: a packet's path from a tap to the clusters. There are four paths. The fast path is one piece of code for
 * the most frequent packets. Two others are the same with header rules and with a filter. The slow path is for all
 * packets.
 *
 * The fast path and the functions that it calls inline cost each packet of each ring every one of their instructions.
 * Code that only some packets need belongs on the slow path.
 */
#ifndef RC_RECEIVE_H
#define RC_RECEIVE_H

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>

#include "account.h"
#include "cluster.h"
#include "packet.h"
#include "ring.h"
#include "tap.h"

/*
 * Receives a tap's packet. The skb may be shared with other taps, which see it after us: we undo what we move in it. We
 * write nothing else to it. Bottom halves off, under RCU.
 */
void rc_ring_receive(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb, u32 ifindex);

/* The slow path. */
void rc_ring_receive_any(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb, u32 ifindex);

/* The slow path of a packet that the filter has passed. */
void rc_ring_receive_passed(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb,
			    u32 ifindex);

/*
 * The fast path to @cluster for a packet that rc_packet_init_plain has made. If the packet needs more, returns false
 * and has done nothing.
 */
static __always_inline bool rc_ring_receive_plain(const struct rc_tap *tap, const struct rc_cluster *cluster,
						  struct rc_packet *pkt)
{
	struct rc_queue *queue;

	if (unlikely(!rc_cluster_find_queue(cluster, pkt, &queue)))
		return false;
	rc_account_packet(tap->ring->account, RC_FATE_PASSED, pkt->len);
	pkt->ifindex = tap->ifindex;
	rc_queue_deliver(queue, pkt);
	return true;
}

static __always_inline bool rc_ring_receive_to(const struct rc_tap *tap, const struct rc_cluster *cluster,
					       u32 snaplen, struct sk_buff *skb, u16 rx_queue)
{
	struct rc_packet pkt rc_uninitialized;

	if (unlikely(!rc_packet_init_received(&pkt, skb, snaplen, rx_queue)))
		return false;
	return rc_ring_receive_plain(tap, cluster, &pkt);
}

/*
 * Does the same as rc_ring_receive for a received packet, if the ring has nothing between its tap and one cluster's
 * queue. Returns false and has done nothing if the packet is in pieces, has its tag stripped, or needs more work.
 */
static __always_inline bool rc_ring_receive_fast(const struct rc_tap *tap, const struct rc_ring_config *config,
						 struct sk_buff *skb, u16 rx_queue)
{
	struct rc_cluster *cluster = READ_ONCE(config->fast);

	return likely(cluster) && rc_ring_receive_to(tap, cluster, config->snaplen, skb, rx_queue);
}

/* The same with the RX queue that the skb says. For rings that need more, that is not read here. */
static __always_inline bool rc_ring_receive_fast_skb(const struct rc_tap *tap, const struct rc_ring_config *config,
						     struct sk_buff *skb)
{
	struct rc_cluster *cluster = READ_ONCE(config->fast);

	return likely(cluster) && rc_ring_receive_to(tap, cluster, config->snaplen, skb, rc_skb_rx_queue(skb));
}

/*
 * The path of received plain packets in a ring that has only a filter. As on the fast path, the address of @pkt is
 * passed to no function. It is filled after the filter has run, so that nothing of it has to be kept meanwhile. Other
 * packets take the slow path. The ring has one output. If it gets rules meanwhile, they are for later packets.
 *
 * @ring and @ifindex are read where they are needed, so that they need not be kept while the filter runs.
 */
static __always_inline void rc_ring_receive_filtered(struct rc_ring *const *ring, const struct rc_ring_config *config,
						     struct sk_buff *skb, const u32 *ifindex)
{
	unsigned char *data = skb->data;
	u32 pulled = data - skb_mac_header(skb), len = skb->len + pulled, passes;
	struct rc_packet pkt rc_uninitialized;
	struct rc_queue *queue;

	/* Without a MAC header, @pulled is an invalid large number. */
	if (unlikely(pulled > ETH_HLEN)) {
		rc_ring_receive_any(*ring, config, skb, *ifindex);
		return;
	}
	__skb_push(skb, pulled);
	passes = bpf_prog_run(config->filter, skb);
	skb->data = data;
	skb->len = len - pulled;
	if (!passes) {
		len += skb_vlan_tag_present(skb) ? VLAN_HLEN : 0;
		rc_account_packet((*ring)->account, RC_FATE_FILTERED, len);
		return;
	}
	rc_packet_init_plain(&pkt, skb, data - pulled, len, config->snaplen, rc_skb_rx_queue(skb));
	pkt.flags = rc_skb_flags(skb);
	if (unlikely(skb_vlan_tag_present(skb) || skb_is_nonlinear(skb) ||
		     !rc_cluster_find_queue(config->outputs[0], &pkt, &queue))) {
		rc_ring_receive_passed(*ring, config, skb, *ifindex);
		return;
	}
	rc_account_packet((*ring)->account, RC_FATE_PASSED, len);
	pkt.ifindex = *ifindex;
	rc_queue_deliver(queue, &pkt);
}

#endif /* RC_RECEIVE_H */
