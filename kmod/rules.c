// SPDX-License-Identifier: GPL-2.0-only

#include "rules.h"

#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "cluster.h"
#include "compat/compat.h"
#include "net.h"
#include "owner.h"
#include "pattern.h"
#include "ring.h"
#include "steps.h"

#define RC_RULES_BUILT_MAX	64U	/* sets that are being built at a time in a namespace */
#define RC_EXPIRE_HEADS		16384U	/* looked at in a step */

static struct workqueue_struct *rc_rules_workqueue;

#define rc_rules_wild(rules) \
	rcu_dereference_protected((rules)->wild, rc_net_held((rules)->exacts.rc_net))

/* ---- packets ---- */

/* Whether the table of exact rules is to become larger, and has not just failed to. */
static bool rc_rules_may_grow(struct rc_rules *rules)
{
	return rc_exacts_crowded(&rules->exacts) && time_after_eq(jiffies, READ_ONCE(rules->grow_next));
}

static void rc_rules_learn(struct rc_rules *rules, const struct rc_frame *frame, const struct rc_packet *pkt,
			   u32 idle_s)
{
	u32 words;
	struct rc_exact_key key;
	struct mem_cgroup *memcg;
	bool learnt;

	/* A fragment does not say which flow it is of. */
	if (pkt->flow.flags & RINGCAP_SLOT_FRAGMENT)
		return;
	words = rc_exact_key_of_packet(frame, &pkt->flow, &key);
	if (!words)
		return;
	memcg = set_active_memcg(rcu_dereference(rules->ring->config)->memcg);
	learnt = rc_exacts_learn(&rules->exacts, &key, words, idle_s);
	set_active_memcg(memcg);
	if (!learnt) {
		atomic64_inc(&rules->ring->not_learnt);
		return;
	}
	atomic_inc(&rules->ring->rules_changes);
	if (unlikely(rc_rules_may_grow(rules)))
		mod_delayed_work(rc_rules_workqueue, &rules->ring->rc_net->rules_work, 0);
}

static struct rc_exact *rc_rules_find_exact(struct rc_rules *rules, const struct rc_frame *frame,
					    const struct rc_packet *pkt)
{
	struct rc_exact_key key;
	u32 words = rc_exact_key_of_packet(frame, &pkt->flow, &key);

	return words ? rc_exacts_find(&rules->exacts, key.w, words) : NULL;
}

static struct rc_verdict rc_rules_decide_wild(struct rc_rules *rules, const struct rc_wild *wild,
					      const struct rc_frame *frame, struct rc_packet *pkt)
{
	struct rc_verdict verdict = rules->otherwise;
	const struct rc_way_in *inner;
	struct rc_rule *rule;
	struct rc_key key;

	rc_key_of_packet(frame, &pkt->flow, &key);
	inner = wild->inner ? rc_packet_inner(pkt) : NULL;
	if (inner)
		rc_key_add_inner(inner, &key);
	rule = rc_wild_find(wild, &key);
	if (!rule)
		return verdict;
	rc_rule_count(rule, pkt->len);
	pkt->rule = rule->rule.id;
	verdict.action = rule->rule.action;
	verdict.target = rule->rule.target;
	if (verdict.action == RINGCAP_ACTION_LEARN)
		rc_rules_learn(rules, frame, pkt, rule->rule.idle_s);
	return verdict;
}

struct rc_verdict rc_rules_decide(struct rc_rules *rules, struct rc_packet *pkt)
{
	const struct rc_wild *wild = rcu_dereference(rules->wild);
	bool has_exacts = READ_ONCE(rules->exacts.nr);
	struct rc_exact *exact;
	struct rc_frame frame;

	if (!has_exacts && !wild)
		return rules->otherwise;
	if (!pkt->parsed)
		rc_packet_parse(pkt);
	rc_packet_frame(pkt, &frame);
	exact = has_exacts ? rc_rules_find_exact(rules, &frame, pkt) : NULL;
	if (exact) {
		rc_exact_count(exact, pkt->len);
		return rc_exact_verdict(exact);
	}
	return wild ? rc_rules_decide_wild(rules, wild, &frame, pkt) : rules->otherwise;
}

/* ---- targets ---- */

static void rc_target_close(struct rc_target *target)
{
	if (target->cluster)
		target->cluster->nr_targets--;
	rc_outlet_close(&target->outlet);
}

static int rc_target_open_queue(struct rc_target *target, const struct rc_ring *ring, const struct rc_target_spec *spec,
				struct netlink_ext_ack *extack)
{
	struct rc_cluster *cluster = rc_cluster_find(ring->rc_net, spec->cluster);
	int err;

	if (!cluster || spec->queue >= cluster->shape.nr_queues) {
		NL_SET_ERR_MSG_ATTR(extack, spec->attr,
				    "RINGCAP_A_TARGET: there is no cluster of this name, or it has no queue of this number");
		return -ENOENT;
	}
	err = rc_owner_check_feed(ring->owner, cluster->owner, extack);
	if (err) {
		NL_SET_BAD_ATTR(extack, spec->attr);
		return err;
	}
	cluster->nr_targets++;
	target->cluster = cluster;
	target->queue = spec->queue;
	return 0;
}

static int rc_target_open(struct rc_target *target, const struct rc_ring *ring, const struct rc_target_spec *spec,
			  struct netlink_ext_ack *extack)
{
	int err;

	if (spec->cluster)
		return rc_target_open_queue(target, ring, spec, extack);
	rtnl_lock();
	err = rc_outlet_open(&target->outlet, ring->rc_net->net, spec->ifindex, spec->attr, extack);
	rtnl_unlock();
	return err;
}

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

bool rc_rules_name(const struct rc_ring *ring, const struct rc_cluster *cluster)
{
	const struct rc_rules *rules = rc_rules_in_force(ring);
	u32 i;

	for (i = 0; rules && i < rules->nr_targets; i++)
		if (rules->targets[i].cluster == cluster)
			return true;
	return false;
}

static const struct rc_rules *rc_rules_find_user(const struct list_head *sets, const struct rc_cluster *cluster,
						 u32 from)
{
	const struct rc_rules *rules;
	u32 i;

	list_for_each_entry(rules, sets, list)
		for (i = 0; i < rules->nr_targets; i++)
			if (rules->targets[i].cluster == cluster && rules->targets[i].queue >= from)
				return rules;
	return NULL;
}

int rc_rules_check_queues(const struct rc_cluster *cluster, u32 from, struct netlink_ext_ack *extack)
{
	char reason[80];	/* a longer name is cut off */
	const struct rc_rules *rules;

	lockdep_assert_held(&cluster->rc_net->control);
	if (!cluster->nr_targets)
		return 0;
	rules = rc_rules_find_user(&cluster->rc_net->rules_live, cluster, from) ?:
		rc_rules_find_user(&cluster->rc_net->rules_built, cluster, from);
	if (!rules)
		return 0;
	snprintf(reason, sizeof(reason), "%s name it: change those of ring %.31s",
		 rules->portid ? "rules being built" : "rules", rules->ring->name);
	rc_compat_set_err_msg(extack, reason);
	return -EBUSY;
}

/* ---- life ---- */

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

static void rc_rules_unlist(struct rc_rules *rules)
{
	struct rc_net *rc_net = rules->ring->rc_net;

	list_del_init(&rules->list);
	if (rules->portid)
		WRITE_ONCE(rc_net->nr_built, rc_net->nr_built - 1);
	rules->portid = 0;
}

/* Of a set that is nobody's any more. */
static void rc_rules_free(struct rc_rules *rules)
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
	/* Who compiles it frees it. */
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
	/* What this socket began, it has begun: no lock for the many that build nothing. */
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

/* ---- adding ---- */

void rc_rules_change_free(struct rc_rules_change *change)
{
	rc_exact_free_list(change->exacts);
	rc_rule_free_list(change->rules);
	*change = (struct rc_rules_change){};
}

/* All rules but those that are to go; NULL for none, an error pointer. */
static struct rc_wild *rc_rules_compile_wild(struct rc_rules *rules, struct netlink_ext_ack *extack)
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
		if (!rule->goes)
			array[nr++] = rule;
		cond_resched();
	}
	if (nr)
		return rc_wild_create(array, nr, extack);
	kvfree(array);
	return NULL;
}

/* Compiles a set that packets see and shows them the outcome; what it was before is freed. */
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

/* Takes the first @nr rules of @change out of the set again, and puts those that they had replaced back. */
static void rc_rules_unstore(struct rc_rules *rules, struct rc_rules_change *change, u32 nr)
{
	struct rc_rule *rule;
	void *old;

	for (rule = change->rules; nr; nr--, rule = rule->next) {
		old = rule->replaced;
		rule->replaced = NULL;
		/* Nothing is allocated to change or clear what is there. */
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

		/* The same id twice in a request, or in a set that is built. */
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

/* All that can fail is done: the set has the wildcard rules, now it gets the exact ones. */
static void rc_rules_settle(struct rc_rules *rules, struct rc_rules_change *change)
{
	struct rc_exact *exact, *next_exact;
	struct rc_rule *rule, *next_rule;

	for (exact = change->exacts; exact; exact = next_exact) {
		next_exact = rcu_dereference_protected(exact->next[0], true);
		rc_exacts_put(&rules->exacts, exact);
	}
	/* No packet knows those that were replaced. */
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

static void rc_rules_arm(const struct rc_rules *rules)
{
	if (!rules->portid && rules->least_idle_s)
		queue_delayed_work(rc_rules_workqueue, &rules->ring->rc_net->rules_work, HZ / 4);
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
	/* One that is built is compiled when it is whole. */
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

/* ---- taking out ---- */

/* Takes out the rules that are marked, which is done in one step for all; they stay if that fails. */
static int rc_rules_purge(struct rc_rules *rules, struct netlink_ext_ack *extack)
{
	struct rc_rule *rule, *gone = NULL;
	unsigned long id;
	int err;

	err = rc_rules_recompile(rules, extack);
	xa_for_each(&rules->by_id, id, rule) {
		cond_resched();
		if (!rule->goes)
			continue;
		rule->goes = false;
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
		rule->goes = true;
	}
	return 0;
}

static void rc_rules_take_exacts(struct rc_rules *rules, const struct ringcap_exact *exacts, u32 nr_exacts)
{
	struct rc_exact *exact, *gone = NULL;
	u32 i;

	for (i = 0; i < nr_exacts; i++) {
		exact = rc_rules_find_exact_rule(rules, &exacts[i]);
		/* It may be named twice. */
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

/* ---- putting in force ---- */

/* A set that lets everything pass is none. */
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
	err = rc_patterns_compile(rules->patterns);
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
		/* Behind those that were looked after: its time begins now. */
		new->round = ring->rc_net->rules_round;
		list_add_tail(&new->list, &ring->rc_net->rules_live);
	}
	rcu_assign_pointer(ring->rules, new);
	rc_steps_update(ring);
	atomic_inc(&ring->rules_changes);
	rc_ring_update_clusters(ring->rc_net);
	if (new)
		rc_rules_arm(new);
	else
		rc_rules_destroy(rules);
	/* No packet is on its way that knows of the old ones, or of none, after this. */
	if (old || new)
		synchronize_net();
	rc_rules_destroy(old);
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

/* ---- idle rules ---- */

static void rc_rules_expire_wild(struct rc_rules *rules)
{
	struct rc_rule *rule;
	unsigned long id;
	u32 count = 0;

	xa_for_each(&rules->by_id, id, rule) {
		rule->goes = rc_rule_is_idle(rule);
		count += rule->goes;
		cond_resched();
	}
	/* Without memory they stay until the next round. */
	if (count && !rc_rules_purge(rules, NULL)) {
		atomic64_add(count, &rules->ring->expired);
		atomic_inc(&rules->ring->rules_changes);
	}
}

static void rc_rules_expire_exact(struct rc_rules *rules)
{
	struct rc_exact *gone = NULL;
	u32 count = rc_exacts_expire(&rules->exacts, &rules->expire_at, RC_EXPIRE_HEADS, &gone);

	if (!count)
		return;
	synchronize_net();
	rc_exacts_free_gone(&rules->exacts, gone);
	atomic64_add(count, &rules->ring->expired);
	atomic_inc(&rules->ring->rules_changes);
}

/* A quarter of the shortest idle time, within half a second and ten. */
static unsigned long rc_rules_round(const struct rc_rules *rules)
{
	return clamp(rules->least_idle_s * (HZ / 4UL), HZ / 2UL, 10UL * HZ);
}

/* Returns jiffies until there is more to do. */
static unsigned long rc_rules_expire_step(struct rc_rules *rules)
{
	if (!rules->expire_at) {
		if (time_before(jiffies, rules->expire_next))
			return rules->expire_next - jiffies;
		rules->expire_next = jiffies + rc_rules_round(rules);
		rc_rules_expire_wild(rules);
	}
	rc_rules_expire_exact(rules);
	return rules->expire_at ? 1 : rc_rules_round(rules);
}

/*
 * Charged to the process that set the ring, as what was learnt is. Without memory the table stays crowded for a second at
 * least: others must not pay for packets that make it try.
 */
static void rc_rules_grow(struct rc_rules *rules)
{
	struct mem_cgroup *memcg = set_active_memcg(rc_ring_config(rules->ring)->memcg);

	/* A dump that is under way would go on at other rules. */
	if (!rc_exacts_grow(&rules->exacts, 2 * READ_ONCE(rules->exacts.nr), true))
		atomic_inc(&rules->ring->rules_changes);
	else
		WRITE_ONCE(rules->grow_next, jiffies + HZ);
	set_active_memcg(memcg);
}

/* Room for what was learnt, and the end of what was idle; returns as rc_rules_expire_step does. */
static unsigned long rc_rules_step(struct rc_rules *rules)
{
	if (rc_rules_may_grow(rules))
		rc_rules_grow(rules);
	return rules->least_idle_s ? rc_rules_expire_step(rules) : MAX_JIFFY_OFFSET;
}

/* A step of the set that was not looked after for longest; false when all were in this round. */
static bool rc_rules_step_next(struct rc_net *rc_net, unsigned long *delay)
{
	struct rc_rules *rules;

	lockdep_assert_held(&rc_net->control);
	rules = list_first_entry_or_null(&rc_net->rules_live, struct rc_rules, list);
	if (!rules || rules->round == rc_net->rules_round || READ_ONCE(rc_net->dying))
		return false;
	rules->round = rc_net->rules_round;
	list_move_tail(&rules->list, &rc_net->rules_live);
	*delay = min(*delay, rc_rules_step(rules));
	return true;
}

/*
 * A step of each set. Each waits for grace periods where something goes, and a namespace may have many: requests, and the
 * end of the namespace, get in between. What comes meanwhile has armed the work itself.
 */
static void rc_rules_work_step(struct work_struct *work)
{
	struct rc_net *rc_net = container_of(work, struct rc_net, rules_work.work);
	unsigned long delay = MAX_JIFFY_OFFSET;
	bool more;

	mutex_lock(&rc_net->control);
	rc_net->rules_round++;
	mutex_unlock(&rc_net->control);
	do {
		mutex_lock(&rc_net->control);
		more = rc_rules_step_next(rc_net, &delay);
		mutex_unlock(&rc_net->control);
	} while (more);
	if (delay != MAX_JIFFY_OFFSET)
		queue_delayed_work(rc_rules_workqueue, &rc_net->rules_work, delay);
}

void rc_rules_net_init(struct rc_net *rc_net)
{
	INIT_LIST_HEAD(&rc_net->rules_live);
	INIT_LIST_HEAD(&rc_net->rules_built);
	INIT_DELAYED_WORK(&rc_net->rules_work, rc_rules_work_step);
}

void rc_rules_net_exit(struct rc_net *rc_net)
{
	cancel_delayed_work_sync(&rc_net->rules_work);
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
