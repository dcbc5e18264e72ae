/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads rules from netlink messages, and checks them as in request.h. */
#ifndef RC_RULE_REQUEST_H
#define RC_RULE_REQUEST_H

#include <linux/types.h>

struct genl_info;
struct rc_rules;
struct rc_rules_change;
struct rc_rules_spec;

/* RULES_BEGIN. @spec points into the message. */
int rc_rule_request_set(const struct genl_info *info, struct rc_rules_spec *spec);

/* RULES_ADD and RULE_NEW: all rules of the message, for a set with these targets. On error @change is empty. */
int rc_rule_request_rules(const struct genl_info *info, const struct rc_rules *rules, struct rc_rules_change *change);

/* RULES_ADD: the patterns of the message. To undo this, remove all but the first @nr patterns. */
int rc_rule_request_patterns(const struct genl_info *info, struct rc_rules *rules);
void rc_rule_request_forget_patterns(struct rc_rules *rules, u32 nr);

/* RULE_DEL: removes the rules of the message from @rules. */
int rc_rule_request_delete(const struct genl_info *info, struct rc_rules *rules);

#endif /* RC_RULE_REQUEST_H */
