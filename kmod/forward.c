// SPDX-License-Identifier: GPL-2.0-only

#include "forward.h"

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>

#include "compat/compat.h"
#include "egress.h"

DEFINE_PER_CPU(bool, rc_forward_sending);

/* As packet sockets do, so that the device and taps on the way find them. */
void rc_forward_set_headers(struct sk_buff *skb)
{
	int depth = ETH_HLEN;

	skb_reset_mac_header(skb);
	skb->protocol = eth_hdr(skb)->h_proto;
	if (eth_type_vlan(skb->protocol) && !__vlan_get_protocol(skb, skb->protocol, &depth))
		depth = ETH_HLEN;
	skb_set_network_header(skb, depth);
}

/* A device that computes the checksum looks for the network header behind all tags; see br_dev_queue_push_xmit. */
static void rc_forward_pass_tags(struct sk_buff *skb)
{
	int depth;

	if (skb->ip_summed == CHECKSUM_PARTIAL && eth_type_vlan(skb->protocol) &&
	    __vlan_get_protocol(skb, skb->protocol, &depth))
		skb_set_network_header(skb, depth);
}

void rc_forward_prepare(struct sk_buff *skb)
{
	/* A local sender must not be stopped by packets of it that wait. */
	skb_orphan(skb);
	skb_forward_csum(skb);
	skb_scrub_packet(skb, true);
	skb->priority = 0;
	/* That device may be gone when the packet leaves. */
	skb->dev = NULL;
	rc_forward_pass_tags(skb);
}

static bool rc_forward_fits(const struct net_device *dev, const struct sk_buff *skb)
{
	u32 max = READ_ONCE(dev->mtu) + dev->hard_header_len + (eth_type_vlan(skb->protocol) ? VLAN_HLEN : 0);

	return skb_is_gso(skb) ? skb_gso_validate_mac_len(skb, max) : skb->len <= max;
}

static int rc_forward_check(const struct net_device *dev, const struct sk_buff *skb)
{
	/* Without carrier, the queue drops packets and reports success. */
	if (unlikely(!(dev->flags & IFF_UP) || !netif_carrier_ok(dev)))
		return RINGCAP_INLINE_DOWN;
	/* Packets that hardware has merged without a type cannot be split again. */
	if (unlikely(skb_is_gso(skb) && !skb_shinfo(skb)->gso_type))
		return RINGCAP_INLINE_REFUSED;
	return likely(rc_forward_fits(dev, skb)) ? 0 : RINGCAP_INLINE_TOO_LONG;
}

/* The stack chooses the transmit queue by the sending CPU, where XPS is set up. That CPU is chosen by the flow here. */
static void rc_forward_choose_queue(const struct net_device *dev, struct sk_buff *skb)
{
#ifdef CONFIG_XPS
	if (dev->real_num_tx_queues > 1)
		skb->sender_cpu = 1 + reciprocal_scale(skb_get_hash(skb), nr_cpu_ids);
#endif
}

void rc_forward_follow(struct net_device *dev, struct sk_buff *other, struct sk_buff *skb)
{
	/* What computes the hash asks the device for its namespace. */
	skb->dev = dev;
	skb_get_hash(skb);
	skb_copy_hash(other, skb);
	skb_copy_queue_mapping(other, skb);
}

int rc_forward_send(struct net_device *dev, struct sk_buff *skb)
{
	int loss = rc_forward_check(dev, skb);
	bool sent;

	if (unlikely(loss)) {
		kfree_skb(skb);
		return loss;
	}
	/* What computes the hash asks the device for its namespace. */
	skb->dev = dev;
	rc_forward_choose_queue(dev, skb);
	memset(skb->cb, 0, sizeof(skb->cb));
	__this_cpu_write(rc_forward_sending, true);
	sent = rc_egress_send(dev, skb);
	__this_cpu_write(rc_forward_sending, false);
	return sent ? 0 : RINGCAP_INLINE_REFUSED;
}
