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

#endif /* RC_RECEIVE_H */
