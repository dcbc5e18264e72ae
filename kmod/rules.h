/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rule sets: a ring's exact rules, wildcard rules and payload patterns, with the targets that they name.
 *
 * A set is built aside by one netlink socket and put in force in one step, under RCU, so that each packet is decided on by
 * one set. Single rules are added to and taken out of the set in force. Exact rules are looked up first, then wildcard
 * rules; where none matches the set's default action holds.
 */
#ifndef RC_RULES_H
#define RC_RULES_H

#include <linux/list.h>
#include <linux/ringcap.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "exact.h"
#include "outlet.h"
#include "packet.h"
#include "verdict.h"
#include "wild.h"

struct netlink_ext_ack;
struct nlattr;
struct rc_cluster;
struct rc_net;
struct rc_patterns;
struct rc_ring;

/* Seconds: jiffies are compared in 32 bits. */
#define RC_IDLE_MAX	1000000U

/* Where rules send packets: a queue of @cluster, or @outlet where that is NULL. */
struct rc_target {
	struct rc_cluster *cluster;
	u32 queue;
	struct rc_outlet outlet;
};

/* A target as its configurer wants it; @attr is where he said so. Without a cluster's name it is an interface. */
struct rc_target_spec {
	const char *cluster;
	u32 queue;
	u32 ifindex;
	const struct nlattr *attr;
};

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
 * @patterns: payload patterns, NULL = none; they are whole when the set is put in force, and don't change any more
 * @by_id: struct rc_rule by id
 * @nr_rules: of @by_id
 * @least_idle_s: the shortest that a rule ever had in here, 0 = none had one
 * @expire_at: the exact rules' next head to be looked at for idle rules
 * @expire_next: jiffies, when to begin with the next round
 * @grow_next: jiffies, before which the table of exact rules is not tried to be made larger again
 * @round: rc_net.rules_round when it was last looked after
 * @ring: NULL once it was deleted while the set is compiled, or the set was given up
 * @portid: of the netlink socket that builds it, 0 = it is in force
 * @compiling: without the lock, so nobody else reads or writes what is compiled
 * @list: of those in force or of those that are built
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

int rc_rules_module_init(void);
void rc_rules_module_exit(void);

/* What a namespace has of rule sets, and the end of it when it has no ring any more. */
void rc_rules_net_init(struct rc_net *rc_net);
void rc_rules_net_exit(struct rc_net *rc_net);

/* All that follows is under the namespace's rc_net.control, but rc_rules_compile and rc_rules_decide. */

/* A set without rules that socket @portid builds, an error pointer. What that socket has been building is forgotten. */
struct rc_rules *rc_rules_begin(struct rc_ring *ring, u32 portid, const struct rc_rules_spec *spec,
				struct netlink_ext_ack *extack);

/* The set for @ring that socket @portid builds, NULL = none. */
struct rc_rules *rc_rules_find_built(const struct rc_ring *ring, u32 portid);

/* The set in force, NULL = none. */
struct rc_rules *rc_rules_in_force(const struct rc_ring *ring);

/*
 * Adds @change, of which nothing is left, to a set that is built or in force; or changes nothing. In a set that is built
 * an id may come once.
 */
int rc_rules_add(struct rc_rules *rules, struct rc_rules_change *change, struct netlink_ext_ack *extack);

/* What was not added. */
void rc_rules_change_free(struct rc_rules_change *change);

/* Takes rules out of a set in force: all that are named, or none. */
int rc_rules_delete(struct rc_rules *rules, const struct ringcap_exact *exacts, u32 nr_exacts,
		    const struct ringcap_rule *ids, u32 nr_ids, struct netlink_ext_ack *extack);

/*
 * Compiles a set that was built, which takes its time: rc_rules_compile runs without the lock. It returns wildcard rules,
 * NULL = none, or an error pointer, for rc_rules_compile_end, which then fails too; the set is as before. It fails also
 * where the ring or the set have gone in between: then the set is freed.
 */
void rc_rules_compile_begin(struct rc_rules *rules);
struct rc_wild *rc_rules_compile(struct rc_rules *rules, struct netlink_ext_ack *extack);
int rc_rules_compile_end(struct rc_rules *rules, struct rc_wild *wild, struct netlink_ext_ack *extack);

/* Has packets decided on by a set that was compiled, in place of the ring's last one; when it returns all are. */
void rc_rules_commit(struct rc_rules *rules);

/* A set that was built, or that no packet knows any more. */
void rc_rules_destroy(struct rc_rules *rules);

/* All sets of a ring, which gets no packets any more. */
void rc_rules_ring_gone(struct rc_ring *ring);

/* Those that a netlink socket was building. Takes the lock itself. */
void rc_rules_socket_gone(struct rc_net *rc_net, u32 portid);

/* Whether @ring's set in force has a target in @cluster. */
bool rc_rules_name(const struct rc_ring *ring, const struct rc_cluster *cluster);

/* Refuses to take queues from number @from on from @cluster if a rule of a ring names one of them. */
int rc_rules_check_queues(const struct rc_cluster *cluster, u32 from, struct netlink_ext_ack *extack);

u64 rc_rules_memory(struct rc_rules *rules);
u32 rc_rules_nr_shapes(const struct rc_rules *rules);

/* What is to become of @pkt. Bottom halves off, under RCU. */
struct rc_verdict rc_rules_decide(struct rc_rules *rules, struct rc_packet *pkt);

#endif /* RC_RULES_H */
