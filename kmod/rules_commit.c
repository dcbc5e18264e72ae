// SPDX-License-Identifier: GPL-2.0-only

#include "rules_commit.h"

#include <linux/netdevice.h>
#include <linux/netlink.h>

#include "feed.h"
#include "net.h"
#include "pattern.h"
#include "ring.h"
#include "rules.h"
#include "rules_change.h"
#include "stages.h"

/* A set that passes everything counts as no set. */
static bool rc_rules_void(const struct rc_rules *rules)
{
	return !rules->exacts.nr && !rules->nr_rules && !rules->patterns &&
	       rules->default_action == RINGCAP_ACTION_PASS;
}

void rc_rules_compile_begin(struct rc_rules *rules)
{
	lockdep_assert_held(&rules->exacts.rc_net->control);
	rules->compiling = true;
}

struct rc_wild *rc_rules_compile(struct rc_rules *rules, struct netlink_ext_ack *extack)
{
	struct rc_wild *wild = rc_rules_compile_wild(rules, extack);
	int err;

	if (IS_ERR(wild))
		return wild;
	err = rc_patterns_compile(rules->patterns, extack);
	if (!err)
		return wild;
	rc_wild_free(wild);
	return ERR_PTR(err);
}

int rc_rules_compile_end(struct rc_rules *rules, struct rc_wild *wild, struct netlink_ext_ack *extack)
{
	lockdep_assert_held(&rules->exacts.rc_net->control);
	rules->compiling = false;
	if (!IS_ERR(wild))
		RCU_INIT_POINTER(rules->wild, wild);
	if (rules->ring)
		return PTR_ERR_OR_ZERO(wild);
	NL_SET_ERR_MSG(extack, "the ring was deleted, or this socket began another set, before the set was compiled");
	rc_rules_free(rules);
	return -ENOENT;
}

void rc_rules_commit(struct rc_rules *rules)
{
	struct rc_ring *ring = rules->ring;
	struct rc_rules *old = rc_rules_in_force(ring), *new = rc_rules_void(rules) ? NULL : rules;

	lockdep_assert_held(&rules->exacts.rc_net->control);
	rc_rules_unlist(rules);
	if (new) {
		/* Goes behind the sets that were checked: its time begins now. */
		new->round = ring->rc_net->rules_round;
		list_add_tail(&new->list, &ring->rc_net->rules_live);
	}
	rcu_assign_pointer(ring->rules, new);
	rc_stages_update(ring);
	atomic_inc(&ring->rules_changes);
	rc_feed_update(ring->rc_net);
	if (new)
		rc_rules_arm(new);
	else
		rc_rules_destroy(rules);
	/* After this, no packet is still being processed with the old set, or with none. */
	if (old || new)
		synchronize_net();
	rc_rules_destroy(old);
}
