/* SPDX-License-Identifier: GPL-2.0-only */
/* The generic netlink family, whose manual is include/uapi/linux/ringcap.h. */
#ifndef RC_NETLINK_H
#define RC_NETLINK_H

#include <linux/ringcap.h>
#include <net/genetlink.h>

struct rc_ring;

int rc_netlink_module_init(void);
void rc_netlink_module_exit(void);

/* The ring that a request names, or an error pointer. Under rc_net.control. */
struct rc_ring *rc_netlink_find_ring(struct genl_info *info);

/* Begins a message of a dump, marked if something changed since the last one; NULL when there is no room. */
void *rc_netlink_dump_begin(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* RC_NETLINK_H */
