/* SPDX-License-Identifier: GPL-2.0-only */
/* Channels: the receive queues of a device whose packets a tap takes, where it does not take all of them. */
#ifndef RC_CHANNELS_H
#define RC_CHANNELS_H

#include <linux/bitmap.h>
#include <linux/netdevice.h>
#include <linux/ringcap.h>
#include <linux/skbuff.h>

struct netlink_ext_ack;
struct nlattr;

/**
 * struct rc_channels - a set of receive queues; never changed, only replaced, under RCU
 * @nr: least number that none of them reaches
 */
struct rc_channels {
	struct rcu_head rcu;
	u32 nr;
	DECLARE_BITMAP(mask, RINGCAP_CHANNELS_MAX);
};

/* Of RINGCAP_A_TAP_CHANNELS, for @dev; or an error and why. */
struct rc_channels *rc_channels_create(const struct nlattr *attr, const struct net_device *dev,
				       struct netlink_ext_ack *extack);

/* A device that does not record the queue has one. */
static __always_inline bool rc_channels_has(const struct rc_channels *channels, const struct sk_buff *skb)
{
	u32 queue = skb_rx_queue_recorded(skb) ? skb_get_rx_queue(skb) : 0;

	return queue < channels->nr && test_bit(queue, channels->mask);
}

#endif /* RC_CHANNELS_H */
