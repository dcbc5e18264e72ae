// SPDX-License-Identifier: GPL-2.0-only

#include "rx_queues.h"

#include <linux/netlink.h>
#include <linux/slab.h>
#include <net/netlink.h>

static int rc_rx_queues_check(const struct rc_rx_queues *rx_queues, const struct nlattr *attr,
			      const struct net_device *dev, struct netlink_ext_ack *extack)
{
	if (!rx_queues->nr) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "RINGCAP_A_TAP_RX_QUEUES: names no receive queue: leave it out for all of them");
		return -EINVAL;
	}
	if (rx_queues->nr > dev->num_rx_queues) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "RINGCAP_A_TAP_RX_QUEUES: names a receive queue that the interface does not have: 'ethtool -l' shows how many there are");
		return -EINVAL;
	}
	return 0;
}

struct rc_rx_queues *rc_rx_queues_create(const struct nlattr *attr, const struct net_device *dev,
					 struct netlink_ext_ack *extack)
{
	struct rc_rx_queues *rx_queues = kzalloc(sizeof(*rx_queues), GFP_KERNEL_ACCOUNT);
	unsigned long last;
	int err;

	BUILD_BUG_ON(sizeof(unsigned long) != sizeof(u64));
	if (!rx_queues)
		return ERR_PTR(-ENOMEM);
	memcpy(rx_queues->mask, nla_data(attr), min_t(size_t, nla_len(attr), sizeof(rx_queues->mask)));
	last = find_last_bit(rx_queues->mask, RINGCAP_RX_QUEUES_MAX);
	rx_queues->nr = last < RINGCAP_RX_QUEUES_MAX ? last + 1 : 0;
	err = rc_rx_queues_check(rx_queues, attr, dev, extack);
	if (!err)
		return rx_queues;
	kfree(rx_queues);
	return ERR_PTR(err);
}
