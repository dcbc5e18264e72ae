/* SPDX-License-Identifier: GPL-2.0-only */
/* Targets: where rules send packets. */
#ifndef RC_TARGET_H
#define RC_TARGET_H

#include <linux/types.h>

#include "egress.h"

struct netlink_ext_ack;
struct nlattr;
struct rc_cluster;
struct rc_ring;

/* A queue of @cluster, or @egress where that is NULL. */
struct rc_target {
	struct rc_cluster *cluster;
	u32 queue;
	struct rc_egress egress;
};

/*
 * A target as its configurer wants it. @attr is the attribute of the request. If no cluster is named, it is an
 * interface.
 */
struct rc_target_spec {
	const char *cluster;
	u32 queue;
	u32 ifindex;
	const struct nlattr *attr;
};

/* Both under rc_net.control. Neither the cluster nor the queue can be deleted while the target exists. */
int rc_target_open(struct rc_target *target, const struct rc_ring *ring, const struct rc_target_spec *spec,
		   struct netlink_ext_ack *extack);
void rc_target_close(struct rc_target *target);

#endif /* RC_TARGET_H */
