// SPDX-License-Identifier: GPL-2.0-only

#include "netlink.h"

#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "attr.h"
#include "aware.h"
#include "cluster.h"
#include "compat/compat.h"
#include "event.h"
#include "message.h"
#include "net.h"
#include "node.h"
#include "request.h"
#include "ring.h"
#include "rule_netlink.h"
#include "version.h"

static struct genl_family rc_netlink_family;

/* ---- answers ---- */

/* A ring with all taps, each with channels, and with all outputs, plugins and VLANs takes 20 kB: see below. */
#define RC_NETLINK_ANSWER_MAX 24576U

/* The most that a ring's answer has, but for 1 kB that is more than enough for what it has once. */
static inline u32 rc_netlink_ring_max(void)
{
	u32 tap = nla_total_size(0) + 4 * nla_total_size(sizeof(u32)) + nla_total_size(RINGCAP_CHANNELS_MAX / 8);
	u32 plugin = nla_total_size(0) + nla_total_size(RINGCAP_PLUGIN_NAME_MAX + 1) + nla_total_size(sizeof(u32)) +
		     nla_total_size_64bit(sizeof(u64));

	return RINGCAP_TAPS_MAX * tap + RINGCAP_OUTPUTS_MAX * nla_total_size(RINGCAP_NAME_MAX + 1) +
	       RINGCAP_PLUGINS_MAX * plugin + nla_total_size(VLAN_N_VID * sizeof(u16)) + 1024;
}

/* What a message is about; queue is for rc_netlink_fill_queue only. */
struct rc_netlink_subject {
	struct rc_cluster *cluster;
	struct rc_ring *ring;
	const struct net_device *dev;
	u32 queue;
};

typedef int (*rc_netlink_fill_t)(struct sk_buff *msg, const struct rc_netlink_subject *subject);

static int rc_netlink_fill_info(struct sk_buff *msg, const struct rc_netlink_subject *subject)
{
	if (nla_put_u32(msg, RINGCAP_A_ABI, RINGCAP_ABI) || nla_put_u32(msg, RINGCAP_A_ABI_MIN, RINGCAP_ABI_MIN) ||
	    nla_put_string(msg, RINGCAP_A_VERSION, RC_VERSION))
		return -EMSGSIZE;
	return 0;
}

static int rc_netlink_fill_cluster(struct sk_buff *msg, const struct rc_netlink_subject *subject)
{
	return rc_message_put_cluster(msg, subject->cluster);
}

static int rc_netlink_fill_ring(struct sk_buff *msg, const struct rc_netlink_subject *subject)
{
	return rc_message_put_ring(msg, subject->ring);
}

static int rc_netlink_fill_queue(struct sk_buff *msg, const struct rc_netlink_subject *subject)
{
	return rc_message_put_queue(msg, subject->cluster, subject->queue);
}

static int rc_netlink_reply(struct genl_info *info, rc_netlink_fill_t fill, const struct rc_netlink_subject *subject)
{
	struct sk_buff *msg = genlmsg_new(RC_NETLINK_ANSWER_MAX, GFP_KERNEL);
	void *header;
	int err = -EMSGSIZE;

	if (!msg)
		return -ENOMEM;
	header = genlmsg_put_reply(msg, info, &rc_netlink_family, 0, info->genlhdr->cmd);
	if (header)
		err = fill(msg, subject);
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	genlmsg_end(msg, header);
	return genlmsg_reply(msg, info);
}

void *rc_netlink_dump_begin(struct sk_buff *skb, struct netlink_callback *cb)
{
	void *header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &rc_netlink_family,
				   NLM_F_MULTI, ((struct genlmsghdr *)nlmsg_data(cb->nlh))->cmd);

	if (header)
		genl_dump_check_consistent(cb, header);
	return header;
}

/* One message of a dump: 0, or -EMSGSIZE when it has to go into the next buffer. */
static int rc_netlink_dump_one(struct sk_buff *skb, struct netlink_callback *cb, rc_netlink_fill_t fill,
			       const struct rc_netlink_subject *subject)
{
	void *header = rc_netlink_dump_begin(skb, cb);

	if (!header)
		return -EMSGSIZE;
	if (fill(skb, subject)) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

/* ---- commands ---- */

static struct rc_cluster *rc_netlink_find_cluster(struct genl_info *info)
{
	char name[RINGCAP_NAME_MAX + 1];
	struct rc_cluster *cluster;
	int err;

	err = rc_request_name(info->attrs[RINGCAP_A_NAME], name, info->extack);
	if (err)
		return ERR_PTR(err);
	cluster = rc_cluster_find(rc_net(genl_info_net(info)), name);
	if (cluster)
		return cluster;
	NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[RINGCAP_A_NAME], "RINGCAP_A_NAME: there is no such cluster");
	return ERR_PTR(-ENOENT);
}

struct rc_ring *rc_netlink_find_ring(struct genl_info *info)
{
	char name[RINGCAP_NAME_MAX + 1];
	struct rc_ring *ring;
	int err;

	err = rc_request_name(info->attrs[RINGCAP_A_NAME], name, info->extack);
	if (err)
		return ERR_PTR(err);
	ring = rc_ring_find(rc_net(genl_info_net(info)), name);
	if (ring)
		return ring;
	NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[RINGCAP_A_NAME], "RINGCAP_A_NAME: there is no such ring");
	return ERR_PTR(-ENOENT);
}

static int rc_netlink_info_get(struct sk_buff *skb, struct genl_info *info)
{
	return rc_netlink_reply(info, rc_netlink_fill_info, NULL);
}

static int rc_netlink_cluster_set(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_cluster_spec spec = {};
	int err;

	err = rc_request_cluster(info, &spec);
	if (err)
		return err;
	mutex_lock(&this->control);
	err = rc_cluster_set(this, &spec, info->extack);
	mutex_unlock(&this->control);
	return err;
}

static int rc_netlink_cluster_del(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_cluster *cluster;
	int err;

	mutex_lock(&this->control);
	cluster = rc_netlink_find_cluster(info);
	err = IS_ERR(cluster) ? PTR_ERR(cluster) : rc_cluster_delete(cluster, info->extack);
	mutex_unlock(&this->control);
	return err;
}

static int rc_netlink_cluster_get(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_netlink_subject subject = {};
	int err;

	mutex_lock(&this->control);
	subject.cluster = rc_netlink_find_cluster(info);
	err = IS_ERR(subject.cluster) ? PTR_ERR(subject.cluster) :
					rc_netlink_reply(info, rc_netlink_fill_cluster, &subject);
	mutex_unlock(&this->control);
	return err;
}

static int rc_netlink_cluster_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rc_net *this = rc_net(sock_net(skb->sk));
	struct rc_netlink_subject subject = {};
	long skip = cb->args[0], at = 0;
	int err = 0;

	mutex_lock(&this->control);
	cb->seq = this->changes;
	list_for_each_entry(subject.cluster, &this->clusters, list) {
		if (at++ < skip)
			continue;
		err = rc_netlink_dump_one(skb, cb, rc_netlink_fill_cluster, &subject);
		if (err)
			break;
		cb->args[0] = at;
	}
	mutex_unlock(&this->control);
	return skb->len ?: err;
}

static int rc_netlink_ring_set(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_ring_spec *spec = kzalloc(sizeof(*spec), GFP_KERNEL);
	int err;

	if (!spec)
		return -ENOMEM;
	err = rc_request_ring(skb, info, spec);
	if (!err) {
		mutex_lock(&this->control);
		err = rc_ring_set(this, spec, info->extack);
		mutex_unlock(&this->control);
	}
	kfree(spec);
	return err;
}

static int rc_netlink_ring_del(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_ring *ring;

	mutex_lock(&this->control);
	ring = rc_netlink_find_ring(info);
	if (!IS_ERR(ring))
		rc_ring_destroy(ring);
	mutex_unlock(&this->control);
	return PTR_ERR_OR_ZERO(ring);
}

static int rc_netlink_ring_get(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_netlink_subject subject = {};
	int err;

	mutex_lock(&this->control);
	subject.ring = rc_netlink_find_ring(info);
	err = PTR_ERR_OR_ZERO(subject.ring);
	if (!err) {
		rtnl_lock();
		err = rc_netlink_reply(info, rc_netlink_fill_ring, &subject);
		rtnl_unlock();
	}
	mutex_unlock(&this->control);
	return err;
}

static int rc_netlink_ring_dump_start(struct netlink_callback *cb)
{
	cb->min_dump_alloc = RC_NETLINK_ANSWER_MAX;
	return 0;
}

static int rc_netlink_ring_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rc_net *this = rc_net(sock_net(skb->sk));
	struct rc_netlink_subject subject = {};
	long skip = cb->args[0], at = 0;
	int err = 0;

	mutex_lock(&this->control);
	rtnl_lock();
	cb->seq = this->changes;
	list_for_each_entry(subject.ring, &this->rings, list) {
		if (at++ < skip)
			continue;
		err = rc_netlink_dump_one(skb, cb, rc_netlink_fill_ring, &subject);
		if (err)
			break;
		cb->args[0] = at;
	}
	rtnl_unlock();
	mutex_unlock(&this->control);
	return skb->len ?: err;
}

/* Goes on with queue cb->args[1] of cluster number cb->args[0]. */
static int rc_netlink_dump_queues(struct sk_buff *skb, struct netlink_callback *cb, const char *only)
{
	struct rc_netlink_subject subject = {};
	long at = 0;
	int err;

	cb->seq = rc_net(sock_net(skb->sk))->changes;
	list_for_each_entry(subject.cluster, &rc_net(sock_net(skb->sk))->clusters, list) {
		if (at++ < cb->args[0] || (only && strcmp(subject.cluster->name, only)))
			continue;
		for (subject.queue = cb->args[1]; subject.queue < subject.cluster->shape.nr_queues; subject.queue++) {
			err = rc_netlink_dump_one(skb, cb, rc_netlink_fill_queue, &subject);
			if (err)
				return err;
			cb->args[1] = subject.queue + 1;
		}
		cb->args[0] = at;
		cb->args[1] = 0;
	}
	return 0;
}

static int rc_netlink_queue_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rc_net *this = rc_net(sock_net(skb->sk));
	const struct nlattr *attr = rc_compat_dump_attrs(cb)[RINGCAP_A_NAME];
	const char *only = attr ? nla_data(attr) : NULL;
	int err = 0;

	mutex_lock(&this->control);
	if (only && !rc_cluster_find(this, only)) {
		NL_SET_ERR_MSG_ATTR(cb->extack, attr, "RINGCAP_A_NAME: there is no such cluster");
		err = -ENOENT;
	}
	if (!err)
		err = rc_netlink_dump_queues(skb, cb, only);
	mutex_unlock(&this->control);
	return skb->len ?: err;
}

/* Finds the cluster and the number of a queue. */
static struct rc_cluster *rc_netlink_find_queue(struct genl_info *info, u32 *index)
{
	const struct nlattr *queue = info->attrs[RINGCAP_A_QUEUE];
	struct rc_cluster *cluster = rc_netlink_find_cluster(info);

	if (IS_ERR(cluster))
		return cluster;
	if (!queue || nla_get_u32(queue) >= cluster->shape.nr_queues) {
		NL_SET_ERR_MSG(info->extack, "RINGCAP_A_QUEUE: missing, or the cluster has no queue of this number");
		NL_SET_BAD_ATTR(info->extack, queue);
		return ERR_PTR(queue ? -ENOENT : -EINVAL);
	}
	*index = nla_get_u32(queue);
	return cluster;
}

static int rc_netlink_queue_reset(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_cluster *cluster;
	u32 index;
	int err;

	mutex_lock(&this->control);
	cluster = rc_netlink_find_queue(info, &index);
	err = IS_ERR(cluster) ? PTR_ERR(cluster) : rc_cluster_reset_queue(cluster, index, info->extack);
	mutex_unlock(&this->control);
	return err;
}

static int rc_netlink_queue_revoke(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *attachment = info->attrs[RINGCAP_A_ATTACHMENT];
	const struct rc_holder holder = {
		.pid = rc_attr_u32(info, RINGCAP_A_ATTACHED_PID, 0),
		.attachment = attachment ? nla_get_u64(attachment) : 0,
	};
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_cluster *cluster;
	u32 index;
	int err;

	mutex_lock(&this->control);
	cluster = rc_netlink_find_queue(info, &index);
	err = IS_ERR(cluster) ? PTR_ERR(cluster) : rc_cluster_revoke_queue(cluster, index, &holder, info->extack);
	mutex_unlock(&this->control);
	return err;
}

static int rc_netlink_fill_device(struct sk_buff *msg, const struct rc_netlink_subject *subject)
{
	if (nla_put_u32(msg, RINGCAP_A_TAP_IFINDEX, subject->dev->ifindex) ||
	    nla_put_u32(msg, RINGCAP_A_OFFERS, rc_aware_offers(subject->dev)))
		return -EMSGSIZE;
	return 0;
}

static int rc_netlink_device_get(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *ifindex = info->attrs[RINGCAP_A_TAP_IFINDEX];
	struct rc_netlink_subject subject = {};
	int err = -ENODEV;

	if (!ifindex) {
		NL_SET_ERR_MSG(info->extack, "RINGCAP_A_TAP_IFINDEX: missing");
		return -EINVAL;
	}
	rtnl_lock();
	subject.dev = __dev_get_by_index(genl_info_net(info), nla_get_u32(ifindex));
	if (subject.dev)
		err = rc_netlink_reply(info, rc_netlink_fill_device, &subject);
	else
		NL_SET_ERR_MSG_ATTR(info->extack, ifindex,
				    "RINGCAP_A_TAP_IFINDEX: there is no interface of this index in this network namespace");
	rtnl_unlock();
	return err;
}

static const struct genl_multicast_group rc_netlink_groups[] = {
	{ .name = RINGCAP_GENL_MCGRP },
};

/* ---- the family ---- */

/*
 * Clusters, and queues that come in the place of others, make device nodes, which all namespaces have in common, and take
 * memory: not for the administrator of just any user namespace. The GETs that are for everybody tell names, sizes and sums, as
 * /proc/net does, and no consumer finds its queue without them; rules tell flows, with their addresses, and what is searched
 * for.
 */
static const struct genl_ops rc_netlink_ops[] = {
	{ .cmd = RINGCAP_CMD_INFO_GET, .doit = rc_netlink_info_get },
	{ .cmd = RINGCAP_CMD_CLUSTER_SET, .doit = rc_netlink_cluster_set, .flags = GENL_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_CLUSTER_DEL, .doit = rc_netlink_cluster_del, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_CLUSTER_GET, .doit = rc_netlink_cluster_get, .dumpit = rc_netlink_cluster_dump },
	{ .cmd = RINGCAP_CMD_RING_SET, .doit = rc_netlink_ring_set, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RING_DEL, .doit = rc_netlink_ring_del, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RING_GET, .doit = rc_netlink_ring_get, .start = rc_netlink_ring_dump_start,
	  .dumpit = rc_netlink_ring_dump },
	{ .cmd = RINGCAP_CMD_QUEUE_GET, .dumpit = rc_netlink_queue_dump },
	{ .cmd = RINGCAP_CMD_QUEUE_RESET, .doit = rc_netlink_queue_reset, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_QUEUE_REVOKE, .doit = rc_netlink_queue_revoke, .flags = GENL_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULES_BEGIN, .doit = rc_rule_netlink_begin, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULES_ADD, .doit = rc_rule_netlink_add, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULES_COMMIT, .doit = rc_rule_netlink_commit, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULES_ABORT, .doit = rc_rule_netlink_abort, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULES_GET, .dumpit = rc_rule_netlink_dump, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULE_NEW, .doit = rc_rule_netlink_new, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_RULE_DEL, .doit = rc_rule_netlink_del, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = RINGCAP_CMD_DEVICE_GET, .doit = rc_netlink_device_get },
};

static struct genl_family rc_netlink_family __ro_after_init = {
	.name = RINGCAP_GENL_NAME,
	.version = RINGCAP_GENL_VERSION,
	.maxattr = RINGCAP_A_MAX,
	.policy = rc_request_policy,
	.module = THIS_MODULE,
	.netnsok = true,
	.parallel_ops = true,	/* each namespace has its own lock: large rings take their time */
	.ops = rc_netlink_ops,
	.n_ops = ARRAY_SIZE(rc_netlink_ops),
	.resv_start_op = __RINGCAP_CMD_MAX,
	.mcgrps = rc_netlink_groups,
	.n_mcgrps = ARRAY_SIZE(rc_netlink_groups),
};

int rc_netlink_module_init(void)
{
	int err = genl_register_family(&rc_netlink_family);

	BUILD_BUG_ON(rc_netlink_ring_max() > RC_NETLINK_ANSWER_MAX);
	if (!err)
		rc_event_start(&rc_netlink_family);
	return err;
}

void rc_netlink_module_exit(void)
{
	rc_event_stop();
	/* Events are sent under one of these: those that had begun are done after this. */
	mutex_lock(&rc_node_lock);
	mutex_unlock(&rc_node_lock);
	rtnl_lock();
	rtnl_unlock();
	genl_unregister_family(&rc_netlink_family);
}
