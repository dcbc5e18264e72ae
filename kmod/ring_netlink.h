/* SPDX-License-Identifier: GPL-2.0-only */
/* The commands for rings. */
#ifndef RC_RING_NETLINK_H
#define RC_RING_NETLINK_H

#include <net/genetlink.h>

struct rc_ring;

/* The ring that a request names, or an error pointer. Under rc_net.control. */
struct rc_ring *rc_ring_netlink_find(struct genl_info *info);

int rc_ring_netlink_set(struct sk_buff *skb, struct genl_info *info);
int rc_ring_netlink_del(struct sk_buff *skb, struct genl_info *info);
int rc_ring_netlink_get(struct sk_buff *skb, struct genl_info *info);
int rc_ring_netlink_dump_start(struct netlink_callback *cb);
int rc_ring_netlink_dump(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* RC_RING_NETLINK_H */
