/* SPDX-License-Identifier: GPL-2.0-only */
/* The netlink commands for rules. */
#ifndef RC_RULE_NETLINK_H
#define RC_RULE_NETLINK_H

struct genl_info;
struct netlink_callback;
struct sk_buff;

int rc_rule_netlink_begin(struct sk_buff *skb, struct genl_info *info);
int rc_rule_netlink_add(struct sk_buff *skb, struct genl_info *info);
int rc_rule_netlink_commit(struct sk_buff *skb, struct genl_info *info);
int rc_rule_netlink_abort(struct sk_buff *skb, struct genl_info *info);
int rc_rule_netlink_new(struct sk_buff *skb, struct genl_info *info);
int rc_rule_netlink_del(struct sk_buff *skb, struct genl_info *info);
int rc_rule_netlink_dump(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* RC_RULE_NETLINK_H */
