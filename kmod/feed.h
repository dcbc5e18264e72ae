/* SPDX-License-Identifier: GPL-2.0-only */
/* Which rings feed which clusters, by their outputs or by their rules. All functions under rc_net.control. */
#ifndef RC_FEED_H
#define RC_FEED_H

#include <linux/types.h>

struct netlink_ext_ack;
struct rc_cluster;
struct rc_net;

/* Updates what the clusters know of the rings that feed them. To be called after any of that has changed. */
void rc_feed_update(const struct rc_net *rc_net);

/* Fails if a rule of a ring names a queue of @cluster with number @from or above: it must not be taken away. */
int rc_feed_check_queues(const struct rc_cluster *cluster, u32 from, struct netlink_ext_ack *extack);

#endif /* RC_FEED_H */
