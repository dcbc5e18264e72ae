// SPDX-License-Identifier: GPL-2.0-only

#include "netlink.h"

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "answer.h"
#include "chardev.h"
#include "cluster_netlink.h"
#include "driver_hook.h"
#include "event.h"
#include "family.h"
#include "queue_netlink.h"
#include "request.h"
#include "ring_netlink.h"
#include "rule_netlink.h"
#include "version.h"

static int rc_netlink_fill_info(struct sk_buff *msg, const struct rc_answer_subject *subject)
{
	if (nla_put_u32(msg, RINGCAP_A_ABI, RINGCAP_ABI) || nla_put_u32(msg, RINGCAP_A_ABI_MIN, RINGCAP_ABI_MIN) ||
	    nla_put_string(msg, RINGCAP_A_VERSION, RC_VERSION))
		return -EMSGSIZE;
	return 0;
}

static int rc_netlink_info_get(struct sk_buff *skb, struct genl_info *info)
{
	return rc_answer_reply(info, rc_netlink_fill_info, NULL);
}

static int rc_netlink_fill_device(struct sk_buff *msg, const struct rc_answer_subject *subject)
{
	if (nla_put_u32(msg, RINGCAP_A_TAP_IFINDEX, subject->dev->ifindex) ||
	    nla_put_u32(msg, RINGCAP_A_OFFERS, rc_driver_hook_offers(subject->dev)))
		return -EMSGSIZE;
	return 0;
}

static int rc_netlink_device_get(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *ifindex = info->attrs[RINGCAP_A_TAP_IFINDEX];
	struct rc_answer_subject subject = {};
	int err = -ENODEV;

	if (!ifindex) {
		NL_SET_ERR_MSG(info->extack, "RINGCAP_A_TAP_IFINDEX: missing");
		return -EINVAL;
	}
	rtnl_lock();
	subject.dev = __dev_get_by_index(genl_info_net(info), nla_get_u32(ifindex));
	if (subject.dev)
		err = rc_answer_reply(info, rc_netlink_fill_device, &subject);
	else
		NL_SET_ERR_MSG_ATTR(info->extack, ifindex,
				    "RINGCAP_A_TAP_IFINDEX: there is no interface of this index in this network namespace");
	rtnl_unlock();
	return err;
}

static const struct genl_multicast_group rc_netlink_groups[] = {
	{ .name = RINGCAP_GENL_MCGRP },
};

/*
 * Some commands are not for the administrator of an arbitrary user namespace. Clusters, and queues that replace
 * others, create device nodes, which all namespaces share, and take memory.
 *
 * Some GETs need no privilege. They report names, sizes and sums, as /proc/net does, and no consumer finds its queue
 * without them. Rules reveal flows with their addresses, and what is searched for.
 */
static const struct genl_ops rc_netlink_ops[] = {
	{ .cmd = RINGCAP_CMD_INFO_GET, .doit = rc_netlink_info_get },
	{ .cmd = RINGCAP_CMD_CLUSTER_SET, .doit = rc_cluster_netlink_set, .flags = GENL_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_CLUSTER_DEL, .doit = rc_cluster_netlink_del, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_CLUSTER_GET, .doit = rc_cluster_netlink_get, .dumpit = rc_cluster_netlink_dump },
	{ .cmd = RINGCAP_CMD_RING_SET, .doit = rc_ring_netlink_set, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RING_DEL, .doit = rc_ring_netlink_del, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RING_GET, .doit = rc_ring_netlink_get, .start = rc_ring_netlink_dump_start,
	  .dumpit = rc_ring_netlink_dump },
	{ .cmd = RINGCAP_CMD_QUEUE_GET, .dumpit = rc_queue_netlink_dump },
	{ .cmd = RINGCAP_CMD_QUEUE_RESET, .doit = rc_queue_netlink_reset, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_QUEUE_REVOKE, .doit = rc_queue_netlink_revoke, .flags = GENL_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULES_BEGIN, .doit = rc_rule_netlink_begin, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULES_ADD, .doit = rc_rule_netlink_add, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULES_COMMIT, .doit = rc_rule_netlink_commit, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULES_ABORT, .doit = rc_rule_netlink_abort, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULES_GET, .dumpit = rc_rule_netlink_dump, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULE_NEW, .doit = rc_rule_netlink_new, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULE_DEL, .doit = rc_rule_netlink_del, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_DEVICE_GET, .doit = rc_netlink_device_get },
};

struct genl_family rc_netlink_family __ro_after_init = {
	.name = RINGCAP_GENL_NAME,
	.version = RINGCAP_GENL_VERSION,
	.maxattr = RINGCAP_A_MAX,
	.policy = rc_request_policy,
	.module = THIS_MODULE,
	.netnsok = true,
	.parallel_ops = true,	/* each namespace has its own lock: large rings take long */
	.ops = rc_netlink_ops,
	.n_ops = ARRAY_SIZE(rc_netlink_ops),
	.resv_start_op = __RINGCAP_CMD_MAX,
	.mcgrps = rc_netlink_groups,
	.n_mcgrps = ARRAY_SIZE(rc_netlink_groups),
};

int rc_netlink_module_init(void)
{
	int err = genl_register_family(&rc_netlink_family);

	if (!err)
		rc_event_start(&rc_netlink_family);
	return err;
}

void rc_netlink_module_exit(void)
{
	rc_event_stop();
	/* Events are sent under one of these locks: after this, all events that had begun are sent. */
	mutex_lock(&rc_chardev_lock);
	mutex_unlock(&rc_chardev_lock);
	rtnl_lock();
	rtnl_unlock();
	genl_unregister_family(&rc_netlink_family);
}
