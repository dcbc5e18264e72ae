/* SPDX-License-Identifier: GPL-2.0-only */
/* A set that was built is put in the place of the one that packets see. */
#ifndef RC_RULES_COMMIT_H
#define RC_RULES_COMMIT_H

struct netlink_ext_ack;
struct rc_rules;
struct rc_wild;

/* All under rc_net.control, but rc_rules_compile. */

/*
 * Compiles a set that was built, which takes its time: rc_rules_compile runs without the lock. It returns wildcard
 * rules, NULL = none, or an error pointer, for rc_rules_compile_end, which then fails too; the set is as before. It
 * fails also where the ring or the set have gone in between: then the set is freed.
 */
void rc_rules_compile_begin(struct rc_rules *rules);
struct rc_wild *rc_rules_compile(struct rc_rules *rules, struct netlink_ext_ack *extack);
int rc_rules_compile_end(struct rc_rules *rules, struct rc_wild *wild, struct netlink_ext_ack *extack);

/* Has packets decided on by a set that was compiled, in place of the ring's last one; when it returns all are. */
void rc_rules_commit(struct rc_rules *rules);

#endif /* RC_RULES_COMMIT_H */
