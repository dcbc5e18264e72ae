// SPDX-License-Identifier: GPL-2.0-only

#include "rules_expire.h"

#include <linux/netdevice.h>
#include <linux/sched/mm.h>

#include "net.h"
#include "ring.h"
#include "rules.h"
#include "rules_change.h"

#define RC_EXPIRE_HEADS		16384U	/* checked in one step */

static void rc_rules_expire_wild(struct rc_rules *rules)
{
	struct rc_rule *rule;
	unsigned long id;
	u32 count = 0;

	xa_for_each(&rules->by_id, id, rule) {
		rule->marked = rc_rule_is_idle(rule);
		count += rule->marked;
		cond_resched();
	}
	/* If there is no memory, they stay until the next round. */
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

/* A quarter of the shortest idle time, but at least half a second and at most ten. */
static unsigned long rc_rules_round(const struct rc_rules *rules)
{
	return clamp(rules->least_idle_s * (HZ / 4UL), HZ / 2UL, 10UL * HZ);
}

/* Returns jiffies until there is more to do. */
static unsigned long rc_rules_expire_step(struct rc_rules *rules)
{
	if (!rules->expire_at) {
		long left = (long)(rules->expire_next - jiffies);

		if (left > 0)
			return left;
		rules->expire_next = jiffies + rc_rules_round(rules);
		rc_rules_expire_wild(rules);
	}
	rc_rules_expire_exact(rules);
	return rules->expire_at ? 1 : rc_rules_round(rules);
}

/*
 * The memory is charged to the process that set the ring, like that of learnt rules. Without memory the table stays
 * crowded for at least a second: others must not pay for packets that trigger further attempts.
 */
static void rc_rules_grow(struct rc_rules *rules)
{
	struct mem_cgroup *memcg = set_active_memcg(rc_ring_config(rules->ring)->memcg);

	/* A dump in progress would continue at other rules. */
	if (!rc_exacts_grow(&rules->exacts, 2 * READ_ONCE(rules->exacts.nr), true))
		atomic_inc(&rules->ring->rules_changes);
	else
		WRITE_ONCE(rules->grow_next, jiffies + HZ);
	set_active_memcg(memcg);
}

/* Makes room for learnt rules, and removes idle ones; returns as rc_rules_expire_step does. */
static unsigned long rc_rules_step(struct rc_rules *rules)
{
	if (rc_rules_may_grow(rules))
		rc_rules_grow(rules);
	return rules->least_idle_s ? rc_rules_expire_step(rules) : MAX_JIFFY_OFFSET;
}

/* Does a step for the set that was not checked for longest; false when all sets had theirs in this round. */
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
 * Does a step for each set. A step that removes rules waits for grace periods, and a namespace may have many sets. So
 * the lock is released in between: requests, and the end of the namespace, do not wait for all of them. A set that is
 * added meanwhile has armed the work itself.
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
		rc_rules_again(rc_net, delay);
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
