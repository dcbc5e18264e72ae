/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rule sets: a ring's exact rules, wildcard rules and payload patterns, with the targets that they name.
 *
 * A set is built aside by one netlink socket and activated in one step, under RCU, so that each packet is decided on by
 * one set. Single rules are added to and taken out of the active set. Exact rules are looked up first, then wildcard
 * rules; where none matches the set's default action holds.
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
 * @otherwise: where no rule matches
 * @targets: each counted in its cluster's nr_targets
 * @patterns: payload patterns, NULL = none; they are whole when the set is activated, and don't change any more
 * @by_id: struct rc_rule by id
 * @nr_rules: of @by_id
 * @least_idle_s: the shortest that a rule ever had in here, 0 = none had one
 * @expire_at: the exact rules' next head to be looked at for idle rules
 * @expire_next: jiffies, when to begin with the next round
 * @grow_next: jiffies, before which the table of exact rules is not tried to be made larger again
 * @round: rc_net.rules_round when it was last looked after
 * @ring: NULL once it was deleted while the set is compiled, or the set was given up
 * @portid: of the netlink socket that builds it, 0 = it is active
 * @compiling: without the lock, so nobody else reads or writes what is compiled
 * @list: of the active sets or of those that are built
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

/* All that follows is under the namespace's rc_net.control. */

/* A set without rules that socket @portid builds, an error pointer. What that socket has been building is forgotten. */
struct rc_rules *rc_rules_begin(struct rc_ring *ring, u32 portid, const struct rc_rules_spec *spec,
				struct netlink_ext_ack *extack);

/* The set for @ring that socket @portid builds, NULL = none. */
struct rc_rules *rc_rules_find_built(const struct rc_ring *ring, u32 portid);

/* The active set, NULL = none. */
struct rc_rules *rc_rules_in_force(const struct rc_ring *ring);

/* A set that was built, or that no packet knows any more. */
void rc_rules_destroy(struct rc_rules *rules);

/* All sets of a ring, which gets no packets any more. */
void rc_rules_ring_gone(struct rc_ring *ring);

/* Those that a netlink socket was building. Takes the lock itself. */
void rc_rules_socket_gone(struct rc_net *rc_net, u32 portid);

u64 rc_rules_memory(struct rc_rules *rules);
u32 rc_rules_nr_shapes(const struct rc_rules *rules);

/* For the files that change sets: takes one out of the list that it is in, and frees one that is nobody's any more. */
void rc_rules_unlist(struct rc_rules *rules);
void rc_rules_free(struct rc_rules *rules);

/*
 * Has rules_expire.c look after a set in use soon, if it has rules that expire; or its namespace's, in @delay jiffies.
 */
void rc_rules_arm(const struct rc_rules *rules);
void rc_rules_again(struct rc_net *rc_net, unsigned long delay);

/* Whether the table of exact rules is to become larger, and has not just failed to. */
static inline bool rc_rules_may_grow(struct rc_rules *rules)
{
	return rc_exacts_crowded(&rules->exacts) && time_after_eq(jiffies, READ_ONCE(rules->grow_next));
}

/* Has that done now. In any context. */
void rc_rules_grow_soon(const struct rc_rules *rules);

#endif /* RC_RULES_H */
