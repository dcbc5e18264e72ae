// SPDX-License-Identifier: GPL-2.0-only

#include "channels.h"

#include <linux/netlink.h>
#include <linux/slab.h>
#include <net/netlink.h>

static int rc_channels_check(const struct rc_channels *channels, const struct nlattr *attr,
			     const struct net_device *dev, struct netlink_ext_ack *extack)
{
	if (!channels->nr) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "RINGCAP_A_TAP_CHANNELS: names no receive queue: leave it out for all of them");
		return -EINVAL;
	}
	if (channels->nr > dev->num_rx_queues) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "RINGCAP_A_TAP_CHANNELS: names a receive queue that the interface does not have: 'ethtool -l' shows how many there are");
		return -EINVAL;
	}
	return 0;
}

struct rc_channels *rc_channels_create(const struct nlattr *attr, const struct net_device *dev,
				       struct netlink_ext_ack *extack)
{
	struct rc_channels *channels = kzalloc(sizeof(*channels), GFP_KERNEL_ACCOUNT);
	unsigned long last;
	int err;

	BUILD_BUG_ON(sizeof(unsigned long) != sizeof(u64));
	if (!channels)
		return ERR_PTR(-ENOMEM);
	memcpy(channels->mask, nla_data(attr), min_t(size_t, nla_len(attr), sizeof(channels->mask)));
	last = find_last_bit(channels->mask, RINGCAP_CHANNELS_MAX);
	channels->nr = last < RINGCAP_CHANNELS_MAX ? last + 1 : 0;
	err = rc_channels_check(channels, attr, dev, extack);
	if (!err)
		return channels;
	kfree(channels);
	return ERR_PTR(err);
}
