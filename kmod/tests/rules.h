/* SPDX-License-Identifier: GPL-2.0-only */
/* Rule sets, as a configurer speaks of them, and packets for rules to be tried on. */
#ifndef RT_RULES_H
#define RT_RULES_H

#include <linux/ringcap.h>

#include "control.h"
#include "test.h"

/* A target of a set: a queue of @cluster, or interface @ifindex. */
struct rt_target {
	const char *cluster;
	u32 queue;
	u32 ifindex;
};

/* Zeroes are the contract's defaults. */
struct rt_rules {
	u64 generation;
	u32 default_action;
	struct rt_target targets[8];	/* up to the first that is neither */
};

/* RING_GET's attributes of rules. */
struct rt_rules_counts {
	u64 generation, expired, not_learnt, memory;
	u32 nr_exact, nr_rules, nr_shapes;
	bool in_force;
};

/* A dump, in arrays that grow; to be freed. */
struct rt_rules_dump {
	struct ringcap_exact_state *exacts;
	struct ringcap_rule_state *rules;
	u32 nr_exacts, nr_rules;
};

/* 0 or a negative errno; rt_reason has the reason. */
int rt_rules_begin(const char *ring, const struct rt_rules *rules);
int rt_rules_send(u8 cmd, const char *ring, const struct ringcap_exact *exacts, u32 nr_exacts,
		  const struct ringcap_rule *rules, u32 nr_rules);
int rt_rules_commit(const char *ring);

/* A whole set: begin, add in messages of a bearable size, commit. Fails the case if that does. */
void rt_rules_set(const char *ring, const struct rt_rules *set, const struct ringcap_exact *exacts, u32 nr_exacts,
		  const struct ringcap_rule *rules, u32 nr_rules);

void rt_rules_counts(const char *ring, struct rt_rules_counts *counts);
void rt_rules_dump(const char *ring, struct rt_rules_dump *dump);
void rt_rules_dump_free(struct rt_rules_dump *dump);
const struct ringcap_rule_state *rt_rules_dump_find(const struct rt_rules_dump *dump, u32 id);

/* The exact rule for flow number @flow of the traffic of traffic.h; @back: written the other way round. */
struct ringcap_exact rt_exact(u32 flow, u8 action, bool back);

#endif /* RT_RULES_H */
