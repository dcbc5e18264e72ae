/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owned objects: rings and clusters that go when the netlink socket that made them is closed, however its process ends.
 * An object is its socket's for as long as it is there: nobody else replaces it, and what stays does not depend on what
 * goes.
 *
 * An owner is the socket's port, which is unique in its namespace; 0 is nobody, and the object stays until it is
 * deleted.
 */
#ifndef RC_OWNER_H
#define RC_OWNER_H

#include <linux/types.h>

struct netlink_ext_ack;

/* Whether a request by @owner may replace an object of @current_owner; the same has to be said of it again. */
int rc_owner_check_replace(u32 current_owner, u32 owner, struct netlink_ext_ack *extack);

/* Whether something of @owner may send packets to a cluster of @cluster_owner: it must not be there for longer. */
int rc_owner_check_feed(u32 owner, u32 cluster_owner, struct netlink_ext_ack *extack);

#endif /* RC_OWNER_H */
