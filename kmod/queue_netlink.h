/* SPDX-License-Identifier: GPL-2.0-only */
/* The commands for queues. */
#ifndef RC_QUEUE_NETLINK_H
#define RC_QUEUE_NETLINK_H

#include <net/genetlink.h>

int rc_queue_netlink_dump(struct sk_buff *skb, struct netlink_callback *cb);
int rc_queue_netlink_reset(struct sk_buff *skb, struct genl_info *info);
int rc_queue_netlink_revoke(struct sk_buff *skb, struct genl_info *info);

#endif /* RC_QUEUE_NETLINK_H */
