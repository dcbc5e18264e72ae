/* SPDX-License-Identifier: GPL-2.0-only */
/* Which rings feed which clusters: by their outputs, and by their rules. All under rc_net.control. */
#ifndef RC_FEED_H
#define RC_FEED_H

#include <linux/types.h>

struct netlink_ext_ack;
struct rc_cluster;
struct rc_net;

/* What the clusters are told of the rings that feed them, after something of that has changed. */
void rc_feed_update(const struct rc_net *rc_net);

/* Refuses to take queues from number @from on from @cluster if a rule of a ring names one of them. */
int rc_feed_check_queues(const struct rc_cluster *cluster, u32 from, struct netlink_ext_ack *extack);

#endif /* RC_FEED_H */
