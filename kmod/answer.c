// SPDX-License-Identifier: GPL-2.0-only

#include "answer.h"

#include "family.h"

int rc_answer_reply(struct genl_info *info, rc_answer_fill_t fill, const struct rc_answer_subject *subject)
{
	struct sk_buff *msg = genlmsg_new(RC_ANSWER_MAX, GFP_KERNEL);
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

void *rc_answer_dump_begin(struct sk_buff *skb, struct netlink_callback *cb)
{
	void *header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &rc_netlink_family,
				   NLM_F_MULTI, ((struct genlmsghdr *)nlmsg_data(cb->nlh))->cmd);

	if (header)
		genl_dump_check_consistent(cb, header);
	return header;
}

int rc_answer_dump_one(struct sk_buff *skb, struct netlink_callback *cb, rc_answer_fill_t fill,
		       const struct rc_answer_subject *subject)
{
	void *header = rc_answer_dump_begin(skb, cb);

	if (!header)
		return -EMSGSIZE;
	if (fill(skb, subject)) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}
