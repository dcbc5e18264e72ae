/* SPDX-License-Identifier: GPL-2.0-only */
/* Grants: the interfaces that a cluster's consumers may send out of. */
#ifndef RC_GRANT_H
#define RC_GRANT_H

#include <linux/overflow.h>
#include <linux/ringcap.h>

#include "egress.h"

/* A granted interface. @attr: the attribute in which the configurer names it. */
struct rc_grant_spec {
	u32 ifindex;
	const struct nlattr *attr;
};

/* The granted interfaces; never changed, only replaced, under RCU. */
struct rc_grants {
	u32 nr;
	struct rc_egress egresses[];
};

/* Returns NULL if @nr is 0, or an ERR_PTR with the reason in @extack. Takes RTNL. */
struct rc_grants *rc_grants_create(struct net *net, const struct rc_grant_spec *spec, u32 nr,
				   struct netlink_ext_ack *extack);

/* No reader under RCU uses them any more. @grants may be NULL. */
void rc_grants_destroy(struct rc_grants *grants);

/*
 * The device with index @ifindex if it is granted and still there, else NULL. @ifindex 0: the only granted device.
 * Under RCU. @grants may be NULL.
 */
struct net_device *rc_grants_find(const struct rc_grants *grants, u32 ifindex);

#endif /* RC_GRANT_H */
