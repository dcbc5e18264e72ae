/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rule sets: a ring's exact rules, wildcard rules and payload patterns, with the targets that they name.
 *
 * One netlink socket builds a set while packets do not see it. The set is activated in one step, under RCU, so one set
 * decides on each packet. Single rules are added to the active set and deleted from it. Exact rules are looked up
 * first, then wildcard rules. If no rule matches, the set's default action applies.
 */
#ifndef RC_RULES_H
#define RC_RULES_H

#include <linux/list.h>
#include <linux/ringcap.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "exact.h"
#include "target.h"
#include "verdict.h"
#include "wild.h"

struct netlink_ext_ack;
struct rc_net;
struct rc_patterns;
struct rc_ring;

/* Seconds: jiffies are compared in 32 bits. */
#define RC_IDLE_MAX	1000000U

/* A set as its configurer wants it, without rules. */
struct rc_rules_spec {
	u64 generation;
	u32 default_action;
	u32 pattern_action;
	u32 nr_targets;
	struct rc_target_spec targets[RINGCAP_TARGETS_MAX];
};

/**
 * struct rc_rules - a rule set
 * @exacts: exact rules
 * @wild: compiled wildcard rules, NULL = none
 * @otherwise: verdict when no rule matches
 * @targets: each counted in its cluster's nr_targets
 * @patterns: payload patterns, NULL = none. They are complete when the set is activated, and do not change any more
 * @by_id: struct rc_rule by id
 * @nr_rules: number of rules in @by_id
 * @least_idle_s: the shortest idle time that a rule of this set ever had, 0 = no rule had one
 * @expire_at: the next head of exact rules that is checked for idle rules
 * @expire_next: jiffies at which the next round begins
 * @grow_next: jiffies before which we do not try again to enlarge the table of exact rules
 * @round: rc_net.rules_round when the set was last checked
 * @ring: NULL once the ring was deleted, or the set was abandoned, while the set was being compiled
 * @portid: of the netlink socket that builds the set, 0 = it is active
 * @compiling: runs without the lock, so no other code reads or writes the data that is compiled
 * @list: of the active sets or of those under construction
 *
 * Everything below @patterns is under rc_net.control.
 */
struct rc_rules {
	struct rc_exacts exacts;
	struct rc_wild __rcu *wild;
	struct rc_verdict otherwise;
	struct rc_target *targets;
	u32 nr_targets;
	struct rc_patterns *patterns;

	struct rc_ring *ring;
	u64 generation;
	u32 default_action;
	u32 pattern_action;
	struct xarray by_id;
	u32 nr_rules;
	u32 least_idle_s;
	u32 expire_at;
	unsigned long expire_next;
	unsigned long grow_next;
	u32 round;
	u32 portid;
	bool compiling;
	struct list_head list;
};

int rc_rules_module_init(void);
void rc_rules_module_exit(void);

/* The compiled wildcard rules. Under rc_net.control. */
#define rc_rules_wild(rules) \
	rcu_dereference_protected((rules)->wild, rc_net_held((rules)->exacts.rc_net))

/* Everything below is under the namespace's rc_net.control. */

/*
 * A set without rules that socket @portid builds, or an error pointer. The set that this socket was building is
 * discarded.
 */
struct rc_rules *rc_rules_begin(struct rc_ring *ring, u32 portid, const struct rc_rules_spec *spec,
				struct netlink_ext_ack *extack);

/* The set for @ring that socket @portid builds, NULL = none. */
struct rc_rules *rc_rules_find_built(const struct rc_ring *ring, u32 portid);

/* The active set, NULL = none. */
struct rc_rules *rc_rules_in_force(const struct rc_ring *ring);

/* For a set that was under construction, or that no packet sees any more. */
void rc_rules_destroy(struct rc_rules *rules);

/* Frees all sets of a ring that gets no packets any more. */
void rc_rules_ring_gone(struct rc_ring *ring);

/* Frees the sets that a netlink socket was building. Takes the lock itself. */
void rc_rules_socket_gone(struct rc_net *rc_net, u32 portid);

u64 rc_rules_memory(struct rc_rules *rules);
u32 rc_rules_nr_shapes(const struct rc_rules *rules);

/*
 * For the files that change sets. The first removes a set from its list. The second frees a set that nothing uses any
 * more.
 */
void rc_rules_unlist(struct rc_rules *rules);
void rc_rules_free(struct rc_rules *rules);

/*
 * Schedules rules_expire.c: for an active set, soon, if it has rules that expire; or for its namespace, in @delay
 * jiffies.
 */
void rc_rules_arm(const struct rc_rules *rules);
void rc_rules_again(struct rc_net *rc_net, unsigned long delay);

/* Whether the table of exact rules needs to grow, and the last attempt has not just failed. */
static inline bool rc_rules_may_grow(struct rc_rules *rules)
{
	return rc_exacts_crowded(&rules->exacts) && time_after_eq(jiffies, READ_ONCE(rules->grow_next));
}

/* Schedules this now. In any context. */
void rc_rules_grow_soon(const struct rc_rules *rules);

#endif /* RC_RULES_H */
