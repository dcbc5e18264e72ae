/* SPDX-License-Identifier: GPL-2.0-only */
/* A set under construction replaces the one that packets see. */
#ifndef RC_RULES_COMMIT_H
#define RC_RULES_COMMIT_H

struct netlink_ext_ack;
struct rc_rules;
struct rc_wild;

/* All under rc_net.control, but rc_rules_compile. */

/*
 * Compile a set under construction. This takes long, so rc_rules_compile runs without the lock. It returns wildcard
 * rules, NULL = none, or an error pointer. Pass the result to rc_rules_compile_end, which fails too if it is an error
 * pointer; then the set is unchanged. It also fails if the ring or the set was deleted meanwhile; then the set is
 * freed.
 */
void rc_rules_compile_begin(struct rc_rules *rules);
struct rc_wild *rc_rules_compile(struct rc_rules *rules, struct netlink_ext_ack *extack);
int rc_rules_compile_end(struct rc_rules *rules, struct rc_wild *wild, struct netlink_ext_ack *extack);

/* Activates a compiled set in place of the ring's last one. When it returns, the new set decides on all packets. */
void rc_rules_commit(struct rc_rules *rules);

#endif /* RC_RULES_COMMIT_H */
