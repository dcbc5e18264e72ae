// SPDX-License-Identifier: GPL-2.0-only

#include "grant.h"

#include <linux/rtnetlink.h>
#include <linux/slab.h>

struct rc_grants *rc_grants_create(struct net *net, const struct rc_grant_spec *spec, u32 nr,
				   struct netlink_ext_ack *extack)
{
	struct rc_grants *grants;
	int err = 0;

	if (!nr)
		return NULL;
	grants = kzalloc(struct_size(grants, egresses, nr), GFP_KERNEL_ACCOUNT);
	if (!grants)
		return ERR_PTR(-ENOMEM);
	rtnl_lock();
	for (; grants->nr < nr && !err; grants->nr++)
		err = rc_egress_open(&grants->egresses[grants->nr], net, spec[grants->nr].ifindex,
				     spec[grants->nr].attr, extack);
	rtnl_unlock();
	if (!err)
		return grants;
	rc_grants_destroy(grants);
	return ERR_PTR(err);
}

void rc_grants_destroy(struct rc_grants *grants)
{
	u32 i;

	if (!grants)
		return;
	for (i = 0; i < grants->nr; i++)
		rc_egress_close(&grants->egresses[i]);
	kfree(grants);
}

struct net_device *rc_grants_find(const struct rc_grants *grants, u32 ifindex)
{
	u32 i;

	for (i = 0; grants && i < grants->nr; i++)
		if (grants->egresses[i].ifindex == ifindex || (!ifindex && grants->nr == 1))
			return rcu_dereference(grants->egresses[i].dev);
	return NULL;
}
