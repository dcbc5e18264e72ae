/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owned objects: rings and clusters that are deleted when the netlink socket that made them is closed, however its
 * process ends. An object belongs to its socket for as long as it exists: no other socket replaces it. An object that
 * stays does not depend on one that is deleted.
 *
 * An owner is the socket's port, which is unique in its namespace. With owner 0 the object has no owner and stays
 * until it is deleted.
 */
#ifndef RC_OWNER_H
#define RC_OWNER_H

#include <linux/types.h>

struct netlink_ext_ack;

/*
 * Whether a request by @owner may replace an object of @current_owner. Such a request must name the same owner again.
 */
int rc_owner_check_replace(u32 current_owner, u32 owner, struct netlink_ext_ack *extack);

/* Whether an object of @owner may send packets to a cluster of @cluster_owner: it must not outlive the cluster. */
int rc_owner_check_feed(u32 owner, u32 cluster_owner, struct netlink_ext_ack *extack);

#endif /* RC_OWNER_H */
