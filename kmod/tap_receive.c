// SPDX-License-Identifier: GPL-2.0-only

#include "tap_receive.h"

#include <linux/if_ether.h>
#include <linux/netdevice.h>

#include "receive.h"
#include "ring.h"
#include "tap.h"

/*
 * Drops the reference to @skb that its handler was given.
 *
 * A handler that is not the last one gets a reference of its own. The stack's frame that calls it has another one (see
 * deliver_skb in net/core/dev.c). If there are two references, they are these. Only code that has a reference can take
 * another one. So nobody else can change their number, and we can drop ours without an atomic operation.
 *
 * The last handler instead gets the frame's reference. If there are two then, anyone may have the other one. A received
 * IPv4 packet has IPv4's handler behind us, which is always there. For other packets, and for those that are sent, we
 * don't know.
 */
static __always_inline void rc_tap_put_received(struct sk_buff *skb)
{
	if (likely(refcount_read(&skb->users) == 2 && skb->protocol == htons(ETH_P_IP)))
		refcount_set(&skb->users, 1);
	else
		consume_skb(skb);
}

int rc_tap_receive_any(struct sk_buff *skb, struct net_device *dev, struct packet_type *packet_type,
		       struct net_device *orig_dev)
{
	const struct rc_tap *tap = container_of(packet_type, struct rc_tap, packet_type);

	if (rc_tap_wants(tap, skb))
		rc_ring_receive(tap->ring, rcu_dereference(tap->ring->config), skb, tap->ifindex);
	consume_skb(skb);
	return 0;
}

int rc_tap_receive(struct sk_buff *skb, struct net_device *dev, struct packet_type *packet_type,
		   struct net_device *orig_dev)
{
	const struct rc_tap *tap = container_of(packet_type, struct rc_tap, packet_type);

	/* PACKET_HOST and the types that follow it, but no type after PACKET_OUTGOING. */
	if (unlikely(skb->pkt_type & PACKET_OUTGOING))
		return rc_tap_receive_any(skb, dev, packet_type, orig_dev);
	if (unlikely(!rc_ring_receive_fast_skb(tap, rcu_dereference(tap->ring->config), skb)))
		rc_ring_receive(tap->ring, rcu_dereference(tap->ring->config), skb, tap->ifindex);
	rc_tap_put_received(skb);
	return 0;
}

int rc_tap_receive_filtered(struct sk_buff *skb, struct net_device *dev, struct packet_type *packet_type,
			    struct net_device *orig_dev)
{
	const struct rc_tap *tap = container_of(packet_type, struct rc_tap, packet_type);
	const struct rc_ring_config *config = rcu_dereference(tap->ring->config);

	if (unlikely(skb->pkt_type & PACKET_OUTGOING || !READ_ONCE(config->filtered)))
		return rc_tap_receive_any(skb, dev, packet_type, orig_dev);
	rc_ring_receive_filtered(&tap->ring, config, skb, &tap->ifindex);
	rc_tap_put_received(skb);
	return 0;
}

int rc_tap_receive_sent(struct sk_buff *skb, struct net_device *dev, struct packet_type *packet_type,
			struct net_device *orig_dev)
{
	if (skb->pkt_type == PACKET_OUTGOING)
		return rc_tap_receive_any(skb, dev, packet_type, orig_dev);
	consume_skb(skb);
	return 0;
}
