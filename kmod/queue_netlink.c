// SPDX-License-Identifier: GPL-2.0-only

#include "queue_netlink.h"

#include <net/genetlink.h>
#include <net/sock.h>

#include "answer.h"
#include "attr.h"
#include "cluster.h"
#include "cluster_netlink.h"
#include "compat/compat.h"
#include "message.h"
#include "net.h"
#include "revoke.h"

static int rc_queue_netlink_fill(struct sk_buff *msg, const struct rc_answer_subject *subject)
{
	return rc_message_put_queue(msg, subject->cluster, subject->queue);
}

/* Continues with queue cb->args[1] of cluster number cb->args[0]. */
static int rc_queue_netlink_dump_some(struct sk_buff *skb, struct netlink_callback *cb, const char *only)
{
	struct rc_answer_subject subject = {};
	long at = 0;
	int err;

	cb->seq = rc_net(sock_net(skb->sk))->changes;
	list_for_each_entry(subject.cluster, &rc_net(sock_net(skb->sk))->clusters, list) {
		if (at++ < cb->args[0] || (only && strcmp(subject.cluster->name, only)))
			continue;
		for (subject.queue = cb->args[1]; subject.queue < subject.cluster->shape.nr_queues; subject.queue++) {
			err = rc_answer_dump_one(skb, cb, rc_queue_netlink_fill, &subject);
			if (err)
				return err;
			cb->args[1] = subject.queue + 1;
		}
		cb->args[0] = at;
		cb->args[1] = 0;
	}
	return 0;
}

int rc_queue_netlink_dump(struct sk_buff *skb, struct netlink_callback *cb)
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
		err = rc_queue_netlink_dump_some(skb, cb, only);
	mutex_unlock(&this->control);
	return skb->len ?: err;
}

/* Finds the cluster and the queue number that a request names. */
static struct rc_cluster *rc_queue_netlink_find(struct genl_info *info, u32 *index)
{
	const struct nlattr *queue = info->attrs[RINGCAP_A_QUEUE];
	struct rc_cluster *cluster = rc_cluster_netlink_find(info);

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

int rc_queue_netlink_reset(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_cluster *cluster;
	u32 index;
	int err;

	mutex_lock(&this->control);
	cluster = rc_queue_netlink_find(info, &index);
	err = IS_ERR(cluster) ? PTR_ERR(cluster) : rc_cluster_reset_queue(cluster, index, info->extack);
	mutex_unlock(&this->control);
	return err;
}

int rc_queue_netlink_revoke(struct sk_buff *skb, struct genl_info *info)
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
	cluster = rc_queue_netlink_find(info, &index);
	err = IS_ERR(cluster) ? PTR_ERR(cluster) : rc_cluster_revoke_queue(cluster, index, &holder, info->extack);
	mutex_unlock(&this->control);
	return err;
}
