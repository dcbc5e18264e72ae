// SPDX-License-Identifier: GPL-2.0-only

#include "rules.h"

#include <linux/mm.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "net.h"
#include "pattern.h"
#include "ring.h"

#define RC_RULES_BUILT_MAX	64U	/* sets under construction at a time in a namespace */

static struct workqueue_struct *rc_rules_workqueue;

static int rc_rules_open_targets(struct rc_rules *rules, const struct rc_rules_spec *spec,
				 struct netlink_ext_ack *extack)
{
	u32 i;
	int err;

	rules->targets = kvcalloc(spec->nr_targets, sizeof(*rules->targets), GFP_KERNEL_ACCOUNT);
	if (spec->nr_targets && !rules->targets)
		return -ENOMEM;
	for (i = 0; i < spec->nr_targets; i++) {
		err = rc_target_open(&rules->targets[i], rules->ring, &spec->targets[i], extack);
		if (err)
			return err;
		rules->nr_targets = i + 1;
	}
	return 0;
}

struct rc_rules *rc_rules_in_force(const struct rc_ring *ring)
{
	return rcu_dereference_protected(ring->rules, rc_net_held(ring->rc_net));
}

struct rc_rules *rc_rules_find_built(const struct rc_ring *ring, u32 portid)
{
	struct rc_rules *rules;

	list_for_each_entry(rules, &ring->rc_net->rules_built, list)
		if (rules->ring == ring && rules->portid == portid)
			return rules;
	return NULL;
}

void rc_rules_unlist(struct rc_rules *rules)
{
	struct rc_net *rc_net = rules->ring->rc_net;

	list_del_init(&rules->list);
	if (rules->portid)
		WRITE_ONCE(rc_net->nr_built, rc_net->nr_built - 1);
	rules->portid = 0;
}

void rc_rules_free(struct rc_rules *rules)
{
	struct rc_rule *rule;
	unsigned long id;

	kvfree(rules->targets);
	rc_patterns_free(rules->patterns);
	rc_exacts_destroy(&rules->exacts);
	rc_wild_free(rc_rules_wild(rules));
	xa_for_each(&rules->by_id, id, rule) {
		rc_rule_free(rule);
		cond_resched();
	}
	xa_destroy(&rules->by_id);
	kfree(rules);
}

void rc_rules_destroy(struct rc_rules *rules)
{
	u32 i;

	if (!rules)
		return;
	lockdep_assert_held(&rules->exacts.rc_net->control);
	rc_rules_unlist(rules);
	for (i = 0; i < rules->nr_targets; i++)
		rc_target_close(&rules->targets[i]);
	/* The task that compiles the set frees it. */
	if (rules->compiling)
		rules->ring = NULL;
	else
		rc_rules_free(rules);
}

static void rc_rules_forget_built(struct rc_net *rc_net, u32 portid)
{
	struct rc_rules *rules, *next;

	list_for_each_entry_safe(rules, next, &rc_net->rules_built, list)
		if (rules->portid == portid)
			rc_rules_destroy(rules);
}

void rc_rules_socket_gone(struct rc_net *rc_net, u32 portid)
{
	/* A closed socket starts no more sets, so this check needs no lock. Most sockets build none. */
	if (!READ_ONCE(rc_net->nr_built))
		return;
	mutex_lock(&rc_net->control);
	rc_rules_forget_built(rc_net, portid);
	mutex_unlock(&rc_net->control);
}

void rc_rules_ring_gone(struct rc_ring *ring)
{
	struct rc_rules *rules, *next;

	list_for_each_entry_safe(rules, next, &ring->rc_net->rules_built, list)
		if (rules->ring == ring)
			rc_rules_destroy(rules);
	rules = rc_rules_in_force(ring);
	RCU_INIT_POINTER(ring->rules, NULL);
	rc_rules_destroy(rules);
}

struct rc_rules *rc_rules_begin(struct rc_ring *ring, u32 portid, const struct rc_rules_spec *spec,
				struct netlink_ext_ack *extack)
{
	struct rc_net *rc_net = ring->rc_net;
	struct rc_rules *rules;
	int err;

	lockdep_assert_held(&rc_net->control);
	if (rc_net->nr_built >= RC_RULES_BUILT_MAX) {
		NL_SET_ERR_MSG(extack,
			       "64 rule sets are being built in this network namespace already: commit or abort some, or close the sockets that began them");
		return ERR_PTR(-EBUSY);
	}
	rules = kzalloc(sizeof(*rules), GFP_KERNEL_ACCOUNT);
	if (!rules)
		return ERR_PTR(-ENOMEM);
	rules->ring = ring;
	rules->generation = spec->generation;
	rules->grow_next = jiffies;
	rules->default_action = spec->default_action;
	rules->pattern_action = spec->pattern_action;
	rules->otherwise.action = spec->default_action;
	xa_init_flags(&rules->by_id, XA_FLAGS_ACCOUNT);
	INIT_LIST_HEAD(&rules->list);
	err = rc_exacts_init(&rules->exacts, rc_net) ?: rc_rules_open_targets(rules, spec, extack);
	if (err) {
		rc_rules_destroy(rules);
		return ERR_PTR(err);
	}
	rc_rules_forget_built(rc_net, portid);
	rules->portid = portid;
	list_add_tail(&rules->list, &rc_net->rules_built);
	WRITE_ONCE(rc_net->nr_built, rc_net->nr_built + 1);
	return rules;
}

u32 rc_rules_nr_shapes(const struct rc_rules *rules)
{
	const struct rc_wild *wild = rc_rules_wild(rules);

	return wild ? wild->nr_shapes : 0;
}

u64 rc_rules_memory(struct rc_rules *rules)
{
	const struct rc_wild *wild = rc_rules_wild(rules);
	u64 each = sizeof(struct rc_rule) + num_possible_cpus() * sizeof(struct rc_rule_hits);

	return sizeof(*rules) + rules->nr_targets * sizeof(*rules->targets) + rc_exacts_memory(&rules->exacts) +
	       rules->nr_rules * each + (wild ? wild->memory : 0) + rc_patterns_memory(rules->patterns);
}

/* ---- work ---- */

void rc_rules_arm(const struct rc_rules *rules)
{
	if (!rules->portid && rules->least_idle_s)
		queue_delayed_work(rc_rules_workqueue, &rules->ring->rc_net->rules_work, HZ / 4);
}

void rc_rules_grow_soon(const struct rc_rules *rules)
{
	mod_delayed_work(rc_rules_workqueue, &rules->ring->rc_net->rules_work, 0);
}

void rc_rules_again(struct rc_net *rc_net, unsigned long delay)
{
	queue_delayed_work(rc_rules_workqueue, &rc_net->rules_work, delay);
}

int rc_rules_module_init(void)
{
	int err = rc_exact_module_init();

	if (err)
		return err;
	rc_rules_workqueue = alloc_workqueue("ringcap_rules", WQ_UNBOUND, 0);
	if (rc_rules_workqueue)
		return 0;
	rc_exact_module_exit();
	return -ENOMEM;
}

void rc_rules_module_exit(void)
{
	destroy_workqueue(rc_rules_workqueue);
	rc_exact_module_exit();
}
