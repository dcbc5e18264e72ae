/* SPDX-License-Identifier: GPL-2.0-only */
/* The commands for clusters. */
#ifndef RC_CLUSTER_NETLINK_H
#define RC_CLUSTER_NETLINK_H

#include <net/genetlink.h>

struct rc_cluster;

/* The cluster that a request names, or an error pointer. Under rc_net.control. */
struct rc_cluster *rc_cluster_netlink_find(struct genl_info *info);

int rc_cluster_netlink_set(struct sk_buff *skb, struct genl_info *info);
int rc_cluster_netlink_del(struct sk_buff *skb, struct genl_info *info);
int rc_cluster_netlink_get(struct sk_buff *skb, struct genl_info *info);
int rc_cluster_netlink_dump(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* RC_CLUSTER_NETLINK_H */
