// SPDX-License-Identifier: GPL-2.0-only

#include "target.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "cluster.h"
#include "net.h"
#include "owner.h"
#include "ring.h"

void rc_target_close(struct rc_target *target)
{
	if (target->cluster)
		target->cluster->nr_targets--;
	rc_egress_close(&target->egress);
}

static int rc_target_open_queue(struct rc_target *target, const struct rc_ring *ring, const struct rc_target_spec *spec,
				struct netlink_ext_ack *extack)
{
	struct rc_cluster *cluster = rc_cluster_find(ring->rc_net, spec->cluster);
	int err;

	if (!cluster || spec->queue >= cluster->shape.nr_queues) {
		NL_SET_ERR_MSG_ATTR(extack, spec->attr,
				    "RINGCAP_A_TARGET: there is no cluster of this name, or it has no queue of this number");
		return -ENOENT;
	}
	if (cluster->shape.in_line) {
		NL_SET_ERR_MSG_ATTR(extack, spec->attr,
				    "RINGCAP_A_TARGET: this cluster is in line: it gets packets only from its rings' pairs, not from rules");
		return -EINVAL;
	}
	err = rc_owner_check_feed(ring->owner, cluster->owner, extack);
	if (err) {
		NL_SET_BAD_ATTR(extack, spec->attr);
		return err;
	}
	cluster->nr_targets++;
	target->cluster = cluster;
	target->queue = spec->queue;
	return 0;
}

int rc_target_open(struct rc_target *target, const struct rc_ring *ring, const struct rc_target_spec *spec,
		   struct netlink_ext_ack *extack)
{
	int err;

	if (spec->cluster)
		return rc_target_open_queue(target, ring, spec, extack);
	rtnl_lock();
	err = rc_egress_open(&target->egress, ring->rc_net->net, spec->ifindex, spec->attr, extack);
	rtnl_unlock();
	return err;
}
