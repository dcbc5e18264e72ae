/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The functions that the rules in ../rules put into a driver in place of the kernel's. They do the same, but ask
 * ringcap first. The builder sets RINGCAP_OFFERS to what the driver offers.
 */
#ifndef RINGCAP_RX_H
#define RINGCAP_RX_H

#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/ringcap_driver.h>

/* Returns true if any ring takes packets from any aware device. Otherwise nothing needs to be prepared. */
static __always_inline bool ringcap_rx_wanted(void)
{
	return static_branch_unlikely(&ringcap_driver_wanted);
}

/* Returns true if any ring wants frames before there is an skb. */
static __always_inline bool ringcap_rx_frames_wanted(void)
{
	return static_branch_unlikely(&ringcap_driver_frames_wanted);
}

/* Drivers with one queue do not record the queue. */
static __always_inline bool ringcap_takes(struct sk_buff *skb)
{
	return ringcap_rx_wanted() && ringcap_rx_skb(skb, skb_rx_queue_recorded(skb) ? skb_get_rx_queue(skb) : 0);
}

static inline gro_result_t ringcap_napi_gro_receive(struct napi_struct *napi, struct sk_buff *skb)
{
	return ringcap_takes(skb) ? GRO_CONSUMED : napi_gro_receive(napi, skb);
}

/*
 * The packet of napi_get_frags() has all of its bytes in pages, and eth_type_trans() has not been called yet. After
 * that call, the packet is like any other.
 */
static inline gro_result_t ringcap_napi_gro_frags(struct napi_struct *napi)
{
	struct sk_buff *skb = napi->skb;

	if (!ringcap_rx_wanted() || !skb || !pskb_may_pull(skb, ETH_HLEN))
		return napi_gro_frags(napi);
	napi->skb = NULL;
	skb->protocol = eth_type_trans(skb, skb->dev);
	return ringcap_napi_gro_receive(napi, skb);
}

static inline int ringcap_netif_receive_skb(struct sk_buff *skb)
{
	return ringcap_takes(skb) ? NET_RX_SUCCESS : netif_receive_skb(skb);
}

static inline int ringcap_netif_rx(struct sk_buff *skb)
{
	return ringcap_takes(skb) ? NET_RX_SUCCESS : netif_rx(skb);
}

static inline int ringcap___netif_rx(struct sk_buff *skb)
{
	return ringcap_takes(skb) ? NET_RX_SUCCESS : __netif_rx(skb);
}

#ifdef RINGCAP_OFFERS
static inline int ringcap_register_netdev(struct net_device *dev)
{
	int err;

	ringcap_device_register(dev, RINGCAP_OFFERS);
	err = register_netdev(dev);
	if (err)
		ringcap_device_forget(dev);
	return err;
}

static inline int ringcap_register_netdevice(struct net_device *dev)
{
	int err;

	ringcap_device_register(dev, RINGCAP_OFFERS);
	err = register_netdevice(dev);
	if (err)
		ringcap_device_forget(dev);
	return err;
}
#endif

#endif /* RINGCAP_RX_H */
