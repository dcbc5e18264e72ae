/* SPDX-License-Identifier: GPL-2.0-only */
/* Adding rules to sets, and deleting them. */
#ifndef RC_RULES_CHANGE_H
#define RC_RULES_CHANGE_H

#include <linux/ringcap.h>

struct netlink_ext_ack;
struct rc_exact;
struct rc_rule;
struct rc_rules;
struct rc_wild;

/**
 * struct rc_rules_change - rules to be added
 * @exacts: by next[0]
 * @rules: by next
 * @least_idle_s: of all of them, 0 = none
 */
struct rc_rules_change {
	struct rc_exact *exacts;
	u32 nr_exacts;
	struct rc_rule *rules;
	u32 nr_rules;
	u32 least_idle_s;
};

/* All under rc_net.control, but rc_rules_compile_wild of a set that is compiling. */

/*
 * Adds @change to a set that is built or in use, and leaves it empty; or changes nothing. In a set under construction
 * an id may occur once.
 */
int rc_rules_add(struct rc_rules *rules, struct rc_rules_change *change, struct netlink_ext_ack *extack);

/* Frees the rules that were not added. */
void rc_rules_change_free(struct rc_rules_change *change);

/* Deletes rules from an active set: all named ones, or none. */
int rc_rules_delete(struct rc_rules *rules, const struct ringcap_exact *exacts, u32 nr_exacts,
		    const struct ringcap_rule *ids, u32 nr_ids, struct netlink_ext_ack *extack);

/* Compiles all rules except those that are to be removed. Returns NULL for none, or an error pointer. */
struct rc_wild *rc_rules_compile_wild(struct rc_rules *rules, struct netlink_ext_ack *extack);

/* Removes the marked wildcard rules, all in one step. If this fails, they stay. */
int rc_rules_purge(struct rc_rules *rules, struct netlink_ext_ack *extack);

#endif /* RC_RULES_CHANGE_H */
