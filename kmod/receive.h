/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Receiving: a packet's path from a tap to the clusters. There are three: the fast path, in one piece, for the packets
 * that there are most of, the same with header rules, and the slow path for all. Every instruction of the fast path,
 * and of what it calls inline, is one for each packet of each ring; what makes it longer for some packets only belongs
 * on the slow path.
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
 * A tap's packet. The skb may be shared with other taps, which see it after us: what we move of it, we move back.
 * Nothing else is written to it. Bottom halves off, under RCU.
 */
void rc_ring_receive(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb, u32 ifindex);

/*
 * The fast path of a packet that rc_packet_init_plain has made, to @cluster. False, with nothing done, where there is
 * more to do.
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

/*
 * The same as rc_ring_receive for a packet that was received, by a ring that has nothing between its tap and one
 * cluster's queue. False, with nothing done, for packets in pieces or without their VLAN tag, and wherever else there
 * is more to do.
 */
static __always_inline bool rc_ring_receive_fast(const struct rc_tap *tap, const struct rc_ring_config *config,
						 struct sk_buff *skb, u16 rx_queue)
{
	struct rc_cluster *cluster = READ_ONCE(config->fast);
	struct rc_packet pkt rc_uninitialized;

	if (unlikely(!cluster || !rc_packet_init_received(&pkt, skb, config->snaplen, rx_queue)))
		return false;
	return rc_ring_receive_plain(tap, cluster, &pkt);
}

#endif /* RC_RECEIVE_H */
