// SPDX-License-Identifier: GPL-2.0-only

#include "quick.h"

#include <linux/rtnetlink.h>
#include <net/genetlink.h>

#include "attr.h"
#include "channels.h"
#include "cluster.h"
#include "compat/compat.h"
#include "net.h"
#include "params.h"
#include "ring.h"
#include "spec.h"
#include "tap.h"

#define rc_quick_refuse(info, type)							\
	rc_attr_refuse((info)->extack, (info)->attrs[type], -EINVAL,			\
		       #type ": not with RINGCAP_A_QUICK, which takes packets as they come: leave one out")

static int rc_quick_refuse_stages(const struct genl_info *info, const struct rc_ring_spec *spec)
{
	if (info->attrs[RINGCAP_A_FILTER])
		return rc_quick_refuse(info, RINGCAP_A_FILTER);
	if (info->attrs[RINGCAP_A_VLANS])
		return rc_quick_refuse(info, RINGCAP_A_VLANS);
	if (info->attrs[RINGCAP_A_PLUGIN])
		return rc_quick_refuse(info, RINGCAP_A_PLUGIN);
	if (rc_attr_u32(info, RINGCAP_A_SAMPLE, 0) > 1)
		return rc_quick_refuse(info, RINGCAP_A_SAMPLE);
	if (spec->defrag)
		return rc_quick_refuse(info, RINGCAP_A_DEFRAG);
	if (spec->hwtstamp)
		return rc_quick_refuse(info, RINGCAP_A_HWTSTAMP);
	return 0;
}

int rc_quick_request(const struct genl_info *info, struct rc_ring_spec *spec)
{
	int err = rc_attr_flag_or(info, RINGCAP_A_QUICK, rc_param(quick_mode), &spec->quick);

	if (err || !spec->quick)
		return err;
	if (spec->nr_taps != 1)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_TAP], -EINVAL,
				      "RINGCAP_A_TAP: a ring with RINGCAP_A_QUICK has one tap: make a ring for each interface");
	if (spec->nr_outputs != 1)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_OUTPUT], -EINVAL,
				      "RINGCAP_A_OUTPUT: a ring with RINGCAP_A_QUICK feeds one cluster");
	return rc_quick_refuse_stages(info, spec);
}

/* Whether @tap takes a receive queue that @spec asks for too. */
static bool rc_quick_meets(const struct rc_tap *tap, const struct rc_tap_spec *spec)
{
	const struct rc_channels *channels = rcu_dereference_protected(tap->channels, lockdep_rtnl_is_held());
	DECLARE_BITMAP(wanted, RINGCAP_CHANNELS_MAX) = {};

	if (tap->ifindex != spec->ifindex)
		return false;
	if (!channels || !spec->channels)
		return true;
	nla_memcpy(wanted, spec->channels, sizeof(wanted));
	return bitmap_intersects(wanted, channels->mask, RINGCAP_CHANNELS_MAX);
}

/* The quick ring that @spec would share receive queues with, or NULL. */
static const struct rc_ring *rc_quick_rival(const struct rc_net *rc_net, const struct rc_ring *self,
					    const struct rc_ring_spec *spec)
{
	const struct rc_ring *ring, *rival = NULL;
	const struct rc_tap *tap;

	rtnl_lock();
	list_for_each_entry(ring, &rc_net->rings, list) {
		if (ring == self || !ring->quick)
			continue;
		list_for_each_entry(tap, &ring->taps, list)
			if (rc_quick_meets(tap, &spec->taps[0]))
				rival = ring;
	}
	rtnl_unlock();
	return rival;
}

int rc_quick_check(struct rc_net *rc_net, const struct rc_ring *ring, const struct rc_ring_spec *spec,
		   struct netlink_ext_ack *extack)
{
	char text[80];	/* a longer name is cut off */
	const struct rc_cluster *cluster;
	const struct rc_ring *rival;

	if (ring && ring->quick != spec->quick) {
		NL_SET_ERR_MSG(extack, "RINGCAP_A_QUICK: a ring cannot be put into quick mode, nor taken out of it: delete it first");
		return -EOPNOTSUPP;
	}
	if (!spec->quick)
		return 0;
	cluster = rc_cluster_find(rc_net, nla_data(spec->outputs[0]));
	if (cluster && !rc_quick_fits(cluster->shape.nr_queues, cluster->balance)) {
		NL_SET_ERR_MSG_ATTR(extack, spec->outputs[0],
				    "RINGCAP_A_OUTPUT: the cluster of a ring with RINGCAP_A_QUICK has one queue or RINGCAP_BALANCE_RX_QUEUE");
		return -EINVAL;
	}
	rival = rc_quick_rival(rc_net, ring, spec);
	if (!rival)
		return 0;
	snprintf(text, sizeof(text), "RINGCAP_A_TAP_IFINDEX: taken by quick ring %.31s", rival->name);
	rc_compat_set_err_msg(extack, text);
	NL_SET_BAD_ATTR(extack, spec->taps[0].attr);
	return -EBUSY;
}
