/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a network driver that is capture-aware calls: its received packets are offered to ringcap before the stack has
 * them. Behind it is ringcap_driver.ko, a module of its own: ringcap.ko comes and goes without the network driver.
 *
 *	probe, before register_netdev():	ringcap_device_register(netdev,
 *							RINGCAP_OFFERS_SKB | RINGCAP_OFFERS_FRAME);
 *	probe, where that fails:		ringcap_device_forget(netdev);
 *	receive, a whole frame in one buffer:	if (ringcap_rx_frame(netdev, &frame)) recycle the buffer, next frame
 *	receive, where the stack gets the skb:	if (!ringcap_rx_skb(skb, rx_queue)) napi_gro_receive(napi, skb);
 *
 * Nothing else is to be undone: a device that is unregistered is forgotten. While no ring takes packets from any aware
 * device, an offer costs one branch that is patched out; so does that of a frame while none takes packets away from the
 * stack, which needs an skb.
 */
#ifndef _LINUX_RINGCAP_DRIVER_H
#define _LINUX_RINGCAP_DRIVER_H

#include <linux/jump_label.h>
#include <linux/ktime.h>
#include <linux/types.h>

struct net_device;
struct sk_buff;

/* What a driver calls. */
#define RINGCAP_OFFERS_SKB	1	/* ringcap_rx_skb() for each packet; all drivers must */
#define RINGCAP_OFFERS_FRAME	2	/* before that ringcap_rx_frame(), where the frame is in one buffer */

/**
 * struct ringcap_frame - a received frame that is no skb yet
 * @data: its MAC header, in memory of the kernel that this CPU may read (synced for it)
 * @len: bytes, without what the device put before the frame or the checksum behind it
 * @hash: the device's, 0 = none
 * @rx_queue: number of the receive queue, from 0
 * @vlan_tci, @vlan_proto: the tag that the device took off, @vlan_proto as on the wire; 0 = none
 * @hwtstamp: when the device received it; 0 = it did not take the time
 *
 * Good until ringcap_rx_frame() returns. Initialize it by name; there may be more one day.
 */
struct ringcap_frame {
	void *data;
	u32 len;
	u32 hash;
	u16 rx_queue;
	u16 vlan_tci;
	__be16 vlan_proto;
	ktime_t hwtstamp;
};

DECLARE_STATIC_KEY_FALSE(ringcap_driver_wanted);
DECLARE_STATIC_KEY_FALSE(ringcap_driver_frames_wanted);
bool __ringcap_rx_skb(struct sk_buff *skb, u16 rx_queue);
bool __ringcap_rx_frame(struct net_device *dev, const struct ringcap_frame *frame);

/*
 * Makes @dev known, which is about to be registered: with register_netdev() or, under RTNL, register_netdevice(). May
 * sleep. Where memory is short the device works as if its driver were not aware.
 */
void ringcap_device_register(struct net_device *dev, unsigned int offers);

/* For a device that could not be registered after all. May sleep; does nothing for one that is not known. */
void ringcap_device_forget(struct net_device *dev);

/*
 * Offers a received packet, of which the driver knows all that it will ever know: skb->dev, VLAN tag, hash, time are
 * set, and eth_type_trans() has been called. True when it was taken: it is gone then, and must not be touched. Bottom
 * halves off, not in a hard interrupt.
 */
static __always_inline bool ringcap_rx_skb(struct sk_buff *skb, u16 rx_queue)
{
	return static_branch_unlikely(&ringcap_driver_wanted) && __ringcap_rx_skb(skb, rx_queue);
}

/*
 * Offers one whole frame of an Ethernet device, never a piece of one. True when it was taken: the buffer is the
 * driver's again. Else it goes on as if nothing had been, and comes to ringcap_rx_skb() later. Bottom halves off, not
 * in a hard interrupt.
 */
static __always_inline bool ringcap_rx_frame(struct net_device *dev, const struct ringcap_frame *frame)
{
	return static_branch_unlikely(&ringcap_driver_frames_wanted) && __ringcap_rx_frame(dev, frame);
}

/* ---- the other side: what ringcap.ko does with ringcap_driver.ko, which it looks up when it is needed ---- */

/**
 * struct ringcap_hooks - the receiver of offered packets, for devices that have taps
 * @rx_skb: whether it has taken @skb
 * @rx_frame: whether it has taken @frame
 *
 * @taps is what was set for the device. Bottom halves off, under RCU.
 */
struct ringcap_hooks {
	bool (*rx_skb)(struct sk_buff *skb, u16 rx_queue, void *taps);
	bool (*rx_frame)(struct net_device *dev, const struct ringcap_frame *frame, void *taps);
};

/* Goes up with each change of what follows: ringcap.ko refuses another one by name. */
#define RINGCAP_DRIVER_ABI 2

/**
 * struct ringcap_driver_api - all of it, under one symbol: ringcap_driver_api
 * @abi: RINGCAP_DRIVER_ABI of ringcap_driver.ko
 * @attach: @hooks get what is offered from now on; there is one ringcap.ko
 * @detach: and no longer. No device has taps
 * @offers: of a registered device; 0 = its driver is not aware
 * @set_taps: for a device that is aware, NULL = none; whether it is to offer @frames too. What was there before may be
 *	in use for an RCU grace period more
 * @taps: what was set; NULL also for a device that is not aware
 *
 * All under RTNL; they may sleep.
 */
struct ringcap_driver_api {
	u32 abi;
	void (*attach)(const struct ringcap_hooks *hooks);
	void (*detach)(void);
	unsigned int (*offers)(const struct net_device *dev);
	void (*set_taps)(const struct net_device *dev, void *taps, bool frames);
	void *(*taps)(const struct net_device *dev);
};

extern const struct ringcap_driver_api ringcap_driver_api;

#endif /* _LINUX_RINGCAP_DRIVER_H */
