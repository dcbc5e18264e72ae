// SPDX-License-Identifier: GPL-2.0-only

#include "ring_netlink.h"

#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/sock.h>

#include "answer.h"
#include "message.h"
#include "net.h"
#include "request.h"
#include "ring.h"
#include "ring_set.h"
#include "spec.h"

/* Maximum size of the answer for a ring. 1 kB is more than enough for the attributes that occur once. */
static inline u32 rc_ring_netlink_max(void)
{
	u32 tap = nla_total_size(0) + 5 * nla_total_size(sizeof(u32)) + nla_total_size(RINGCAP_RX_QUEUES_MAX / 8);
	u32 plugin = nla_total_size(0) + nla_total_size(RINGCAP_PLUGIN_NAME_MAX + 1) + nla_total_size(sizeof(u32)) +
		     nla_total_size_64bit(sizeof(u64));

	BUILD_BUG_ON(nla_total_size(RINGCAP_INLINE_STATS * sizeof(u64)) > 256);
	return RINGCAP_TAPS_MAX * tap + RINGCAP_OUTPUTS_MAX * nla_total_size(RINGCAP_NAME_MAX + 1) +
	       RINGCAP_PLUGINS_MAX * plugin + nla_total_size(VLAN_N_VID * sizeof(u16)) + 1024;
}

static int rc_ring_netlink_fill(struct sk_buff *msg, const struct rc_answer_subject *subject)
{
	return rc_message_put_ring(msg, subject->ring);
}

struct rc_ring *rc_ring_netlink_find(struct genl_info *info)
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

int rc_ring_netlink_set(struct sk_buff *skb, struct genl_info *info)
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

int rc_ring_netlink_del(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_ring *ring;

	mutex_lock(&this->control);
	ring = rc_ring_netlink_find(info);
	if (!IS_ERR(ring))
		rc_ring_destroy(ring);
	mutex_unlock(&this->control);
	return PTR_ERR_OR_ZERO(ring);
}

int rc_ring_netlink_get(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_answer_subject subject = {};
	int err;

	mutex_lock(&this->control);
	subject.ring = rc_ring_netlink_find(info);
	err = PTR_ERR_OR_ZERO(subject.ring);
	if (!err) {
		rtnl_lock();
		err = rc_answer_reply(info, rc_ring_netlink_fill, &subject);
		rtnl_unlock();
	}
	mutex_unlock(&this->control);
	return err;
}

int rc_ring_netlink_dump_start(struct netlink_callback *cb)
{
	BUILD_BUG_ON(rc_ring_netlink_max() > RC_ANSWER_MAX);
	cb->min_dump_alloc = RC_ANSWER_MAX;
	return 0;
}

int rc_ring_netlink_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rc_net *this = rc_net(sock_net(skb->sk));
	struct rc_answer_subject subject = {};
	long skip = cb->args[0], at = 0;
	int err = 0;

	mutex_lock(&this->control);
	rtnl_lock();
	cb->seq = this->changes;
	list_for_each_entry(subject.ring, &this->rings, list) {
		if (at++ < skip)
			continue;
		err = rc_answer_dump_one(skb, cb, rc_ring_netlink_fill, &subject);
		if (err)
			break;
		cb->args[0] = at;
	}
	rtnl_unlock();
	mutex_unlock(&this->control);
	return skb->len ?: err;
}
