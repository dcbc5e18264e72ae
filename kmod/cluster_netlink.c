// SPDX-License-Identifier: GPL-2.0-only

#include "cluster_netlink.h"

#include <net/genetlink.h>
#include <net/sock.h>

#include "answer.h"
#include "cluster.h"
#include "cluster_set.h"
#include "message.h"
#include "net.h"
#include "request.h"
#include "spec.h"

static int rc_cluster_netlink_fill(struct sk_buff *msg, const struct rc_answer_subject *subject)
{
	return rc_message_put_cluster(msg, subject->cluster);
}

struct rc_cluster *rc_cluster_netlink_find(struct genl_info *info)
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

int rc_cluster_netlink_set(struct sk_buff *skb, struct genl_info *info)
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

int rc_cluster_netlink_del(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_cluster *cluster;
	int err;

	mutex_lock(&this->control);
	cluster = rc_cluster_netlink_find(info);
	err = IS_ERR(cluster) ? PTR_ERR(cluster) : rc_cluster_delete(cluster, info->extack);
	mutex_unlock(&this->control);
	return err;
}

int rc_cluster_netlink_get(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_answer_subject subject = {};
	int err;

	mutex_lock(&this->control);
	subject.cluster = rc_cluster_netlink_find(info);
	err = IS_ERR(subject.cluster) ? PTR_ERR(subject.cluster) :
					rc_answer_reply(info, rc_cluster_netlink_fill, &subject);
	mutex_unlock(&this->control);
	return err;
}

int rc_cluster_netlink_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rc_net *this = rc_net(sock_net(skb->sk));
	struct rc_answer_subject subject = {};
	long skip = cb->args[0], at = 0;
	int err = 0;

	mutex_lock(&this->control);
	cb->seq = this->changes;
	list_for_each_entry(subject.cluster, &this->clusters, list) {
		if (at++ < skip)
			continue;
		err = rc_answer_dump_one(skb, cb, rc_cluster_netlink_fill, &subject);
		if (err)
			break;
		cb->args[0] = at;
	}
	mutex_unlock(&this->control);
	return skb->len ?: err;
}
