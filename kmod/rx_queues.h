/* SPDX-License-Identifier: GPL-2.0-only */
/* RX queues: the queues of a device from which a tap takes packets, if it does not take all of them. */
#ifndef RC_RX_QUEUES_H
#define RC_RX_QUEUES_H

#include <linux/bitmap.h>
#include <linux/netdevice.h>
#include <linux/ringcap.h>
#include <linux/skbuff.h>

struct netlink_ext_ack;
struct nlattr;

/**
 * struct rc_rx_queues - a set of RX queues; never changed, only replaced, under RCU
 * @nr: the greatest number in the set plus 1
 */
struct rc_rx_queues {
	struct rcu_head rcu;
	u32 nr;
	DECLARE_BITMAP(mask, RINGCAP_RX_QUEUES_MAX);
};

/* The set of RINGCAP_A_TAP_RX_QUEUES, for @dev; or an error and a reason. */
struct rc_rx_queues *rc_rx_queues_create(const struct nlattr *attr, const struct net_device *dev,
					 struct netlink_ext_ack *extack);

/* A device that does not record the queue has only one. */
static __always_inline bool rc_rx_queues_has(const struct rc_rx_queues *rx_queues, const struct sk_buff *skb)
{
	u32 queue = skb_rx_queue_recorded(skb) ? skb_get_rx_queue(skb) : 0;

	return queue < rx_queues->nr && test_bit(queue, rx_queues->mask);
}

#endif /* RC_RX_QUEUES_H */
