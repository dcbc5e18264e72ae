// SPDX-License-Identifier: GPL-2.0-only

#include "rules_change.h"

#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "net.h"
#include "ring.h"
#include "rules.h"

void rc_rules_change_free(struct rc_rules_change *change)
{
	rc_exact_free_list(change->exacts);
	rc_rule_free_list(change->rules);
	*change = (struct rc_rules_change){};
}

struct rc_wild *rc_rules_compile_wild(struct rc_rules *rules, struct netlink_ext_ack *extack)
{
	struct rc_rule **array, *rule;
	unsigned long id;
	u32 nr = 0;

	if (!rules->nr_rules)
		return NULL;
	array = kvmalloc_array(rules->nr_rules, sizeof(*array), GFP_KERNEL_ACCOUNT);
	if (!array)
		return ERR_PTR(-ENOMEM);
	xa_for_each(&rules->by_id, id, rule) {
		if (!rule->marked)
			array[nr++] = rule;
		cond_resched();
	}
	if (nr)
		return rc_wild_create(array, nr, extack);
	kvfree(array);
	return NULL;
}

/* Compiles a set that packets see and activates the result; frees the previous one. */
static int rc_rules_recompile(struct rc_rules *rules, struct netlink_ext_ack *extack)
{
	struct rc_wild *wild = rc_rules_compile_wild(rules, extack), *old;

	if (IS_ERR(wild))
		return PTR_ERR(wild);
	old = rcu_replace_pointer(rules->wild, wild, rc_net_held(rules->exacts.rc_net));
	if (!old && !wild)
		return 0;
	synchronize_net();
	rc_wild_free(old);
	return 0;
}

/* Removes the first @nr rules of @change from the set again, and restores the rules that they had replaced. */
static void rc_rules_unstore(struct rc_rules *rules, struct rc_rules_change *change, u32 nr)
{
	struct rc_rule *rule;
	void *old;

	for (rule = change->rules; nr; nr--, rule = rule->next) {
		old = rule->replaced;
		rule->replaced = NULL;
		/* Changing or clearing an existing entry allocates nothing. */
		xa_store(&rules->by_id, rule->rule.id, old, 0);
		rules->nr_rules -= !old;
	}
}

static int rc_rules_store(struct rc_rules *rules, struct rc_rules_change *change, struct netlink_ext_ack *extack)
{
	struct rc_rule *rule;
	u32 nr = 0;
	int err = 0;

	for (rule = change->rules; rule && !err; rule = rule->next) {
		struct rc_rule *old = xa_load(&rules->by_id, rule->rule.id);

		/* The same id occurs twice in a request, or in a set under construction. */
		if (old && (rules->portid || old->replaced || old->fresh)) {
			NL_SET_ERR_MSG(extack, "RINGCAP_A_RULE: two rules have the same id: ids are unique in a set");
			err = -EEXIST;
		} else if (!old && rules->nr_rules == RINGCAP_RULES_MAX) {
			NL_SET_ERR_MSG(extack, "RINGCAP_A_RULE: a ring has at most 65536 wildcard rules");
			err = -E2BIG;
		} else {
			err = xa_err(xa_store(&rules->by_id, rule->rule.id, rule, GFP_KERNEL_ACCOUNT));
		}
		if (err)
			break;
		rule->replaced = old;
		rule->fresh = true;
		rules->nr_rules += !old;
		nr++;
	}
	if (err)
		rc_rules_unstore(rules, change, nr);
	return err;
}

/* Makes room for the exact rules of @change. */
static int rc_rules_reserve(struct rc_rules *rules, const struct rc_rules_change *change,
			    struct netlink_ext_ack *extack)
{
	int err;

	if (!rc_exacts_reserve(&rules->exacts, change->nr_exacts)) {
		NL_SET_ERR_MSG(extack, "RINGCAP_A_EXACT: a ring has at most 1048576 exact rules, learnt ones included");
		return -E2BIG;
	}
	err = rc_exacts_grow(&rules->exacts, READ_ONCE(rules->exacts.nr), !rules->portid);
	if (err)
		rc_exacts_unreserve(&rules->exacts, change->nr_exacts);
	return err;
}

/* No step can fail any more: the set has the wildcard rules, and now gets the exact ones. */
static void rc_rules_settle(struct rc_rules *rules, struct rc_rules_change *change)
{
	struct rc_exact *exact, *next_exact;
	struct rc_rule *rule, *next_rule;

	for (exact = change->exacts; exact; exact = next_exact) {
		next_exact = rcu_dereference_protected(exact->next[0], true);
		rc_exacts_put(&rules->exacts, exact);
	}
	/* No packet sees the replaced rules any more. */
	for (rule = change->rules; rule; rule = next_rule) {
		next_rule = rule->next;
		if (rule->replaced)
			rc_rule_free(rule->replaced);
		rule->replaced = NULL;
		rule->fresh = false;
		rule->next = NULL;
	}
	if (change->least_idle_s)
		rules->least_idle_s = min_not_zero(rules->least_idle_s, change->least_idle_s);
	*change = (struct rc_rules_change){};
	atomic_inc(&rules->ring->rules_changes);
}

int rc_rules_add(struct rc_rules *rules, struct rc_rules_change *change, struct netlink_ext_ack *extack)
{
	int err;

	lockdep_assert_held(&rules->exacts.rc_net->control);
	err = rc_rules_reserve(rules, change, extack);
	if (err)
		return err;
	err = rc_rules_store(rules, change, extack);
	if (err)
		goto fail;
	/* A set under construction is compiled when it is complete. */
	if (!rules->portid && change->nr_rules) {
		err = rc_rules_recompile(rules, extack);
		if (err)
			goto fail_stored;
	}
	rc_rules_settle(rules, change);
	rc_rules_arm(rules);
	return 0;

fail_stored:
	rc_rules_unstore(rules, change, change->nr_rules);
fail:
	rc_exacts_unreserve(&rules->exacts, change->nr_exacts);
	return err;
}

/* ---- removing ---- */

int rc_rules_purge(struct rc_rules *rules, struct netlink_ext_ack *extack)
{
	struct rc_rule *rule, *gone = NULL;
	unsigned long id;
	int err;

	err = rc_rules_recompile(rules, extack);
	xa_for_each(&rules->by_id, id, rule) {
		cond_resched();
		if (!rule->marked)
			continue;
		rule->marked = false;
		if (err)
			continue;
		xa_erase(&rules->by_id, id);
		rules->nr_rules--;
		rule->next = gone;
		gone = rule;
	}
	rc_rule_free_list(gone);
	return err;
}

static struct rc_exact *rc_rules_find_exact_rule(struct rc_rules *rules, const struct ringcap_exact *rule)
{
	struct rc_exact_key key;
	int swapped;
	u32 words = rc_exact_key_of_rule(rule, &key, &swapped);

	return rc_exacts_find(&rules->exacts, key.w, words);
}

static int rc_rules_mark(struct rc_rules *rules, const struct ringcap_rule *ids, u32 nr_ids,
			 struct netlink_ext_ack *extack)
{
	struct rc_rule *rule;
	u32 i;

	for (i = 0; i < nr_ids; i++) {
		if (xa_load(&rules->by_id, ids[i].id))
			continue;
		NL_SET_ERR_MSG(extack, "RINGCAP_A_RULE: there is no rule of this id; none was taken out");
		return -ENOENT;
	}
	for (i = 0; i < nr_ids; i++) {
		rule = xa_load(&rules->by_id, ids[i].id);
		rule->marked = true;
	}
	return 0;
}

static void rc_rules_take_exacts(struct rc_rules *rules, const struct ringcap_exact *exacts, u32 nr_exacts)
{
	struct rc_exact *exact, *gone = NULL;
	u32 i;

	for (i = 0; i < nr_exacts; i++) {
		exact = rc_rules_find_exact_rule(rules, &exacts[i]);
		/* A request may name it twice. */
		if (exact)
			rc_exacts_take(&rules->exacts, exact, &gone);
	}
	if (!gone)
		return;
	synchronize_net();
	rc_exacts_free_gone(&rules->exacts, gone);
}

int rc_rules_delete(struct rc_rules *rules, const struct ringcap_exact *exacts, u32 nr_exacts,
		    const struct ringcap_rule *ids, u32 nr_ids, struct netlink_ext_ack *extack)
{
	u32 i;
	int err;

	lockdep_assert_held(&rules->exacts.rc_net->control);
	for (i = 0; i < nr_exacts; i++) {
		if (rc_rules_find_exact_rule(rules, &exacts[i]))
			continue;
		NL_SET_ERR_MSG(extack, "RINGCAP_A_EXACT: there is no rule of this flow; none was taken out");
		return -ENOENT;
	}
	err = rc_rules_mark(rules, ids, nr_ids, extack);
	if (!err && nr_ids)
		err = rc_rules_purge(rules, extack);
	if (err)
		return err;
	rc_rules_take_exacts(rules, exacts, nr_exacts);
	atomic_inc(&rules->ring->rules_changes);
	return 0;
}
