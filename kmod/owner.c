// SPDX-License-Identifier: GPL-2.0-only

#include "owner.h"

#include <linux/netlink.h>

int rc_owner_check_replace(u32 current_owner, u32 owner, struct netlink_ext_ack *extack)
{
	if (current_owner == owner)
		return 0;
	if (current_owner)
		NL_SET_ERR_MSG(extack,
			       "RINGCAP_A_OWNED: an open netlink socket owns the object of this name: only that one can change it, with RINGCAP_A_OWNED = 1; choose another name");
	else
		NL_SET_ERR_MSG(extack,
			       "RINGCAP_A_OWNED: the object of this name is there to stay: delete it first, or choose another name");
	return -EBUSY;
}

int rc_owner_check_feed(u32 owner, u32 cluster_owner, struct netlink_ext_ack *extack)
{
	if (!cluster_owner || cluster_owner == owner)
		return 0;
	NL_SET_ERR_MSG(extack,
		       "this cluster goes when the netlink socket that made it is closed: only rings with RINGCAP_A_OWNED = 1 of the same socket can feed it");
	return -EBUSY;
}
