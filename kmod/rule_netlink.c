// SPDX-License-Identifier: GPL-2.0-only

#include "rule_netlink.h"

#include <linux/netlink.h>
#include <linux/ringcap.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/sock.h>

#include "answer.h"
#include "compat/compat.h"
#include "net.h"
#include "owner.h"
#include "pattern.h"
#include "ring.h"
#include "ring_netlink.h"
#include "rule_request.h"
#include "rules.h"
#include "rules_change.h"
#include "rules_commit.h"

/* The ring that a request names, if this socket may change the ring's rules; else an error pointer. */
static struct rc_ring *rc_rule_netlink_ring(struct genl_info *info)
{
	struct rc_ring *ring = rc_ring_netlink_find(info);
	int err;

	if (IS_ERR(ring))
		return ring;
	err = rc_owner_check_replace(ring->owner, ring->owner ? info->snd_portid : 0, info->extack);
	return err ? ERR_PTR(err) : ring;
}

/* The set that this socket builds. */
static struct rc_rules *rc_rule_netlink_built(struct genl_info *info)
{
	struct rc_ring *ring = rc_rule_netlink_ring(info);
	struct rc_rules *rules;

	if (IS_ERR(ring))
		return ERR_CAST(ring);
	rules = rc_rules_find_built(ring, info->snd_portid);
	if (rules && rules->compiling) {
		NL_SET_ERR_MSG(info->extack, "another request of this socket is committing this rule set");
		return ERR_PTR(-EBUSY);
	}
	if (rules)
		return rules;
	NL_SET_ERR_MSG(info->extack,
		       "this socket builds no rule set for this ring: RINGCAP_CMD_RULES_BEGIN comes first, from the same socket");
	return ERR_PTR(-ENOENT);
}

static int rc_rule_netlink_begin_locked(struct genl_info *info, struct rc_rules_spec *spec)
{
	struct rc_ring *ring = rc_rule_netlink_ring(info);

	if (IS_ERR(ring))
		return PTR_ERR(ring);
	return PTR_ERR_OR_ZERO(rc_rules_begin(ring, info->snd_portid, spec, info->extack));
}

int rc_rule_netlink_begin(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_rules_spec *spec = kzalloc(sizeof(*spec), GFP_KERNEL);
	int err;

	if (!spec)
		return -ENOMEM;
	err = rc_rule_request_set(info, spec);
	if (!err) {
		mutex_lock(&this->control);
		err = rc_rule_netlink_begin_locked(info, spec);
		mutex_unlock(&this->control);
	}
	kfree(spec);
	return err;
}

static int rc_rule_netlink_add_to(struct rc_rules *rules, struct genl_info *info)
{
	struct rc_rules_change change = {};
	u32 nr_patterns;
	int err;

	if (IS_ERR(rules))
		return PTR_ERR(rules);
	nr_patterns = rc_patterns_count(rules->patterns);
	err = rc_rule_request_rules(info, rules, &change) ?: rc_rule_request_patterns(info, rules) ?:
	      rc_rules_add(rules, &change, info->extack);
	rc_rules_change_free(&change);
	if (err)
		rc_rule_request_forget_patterns(rules, nr_patterns);
	return err;
}

int rc_rule_netlink_add(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	int err;

	mutex_lock(&this->control);
	err = rc_rule_netlink_add_to(rc_rule_netlink_built(info), info);
	mutex_unlock(&this->control);
	return err;
}

int rc_rule_netlink_commit(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_rules *rules;
	struct rc_wild *wild;
	int err;

	mutex_lock(&this->control);
	rules = rc_rule_netlink_built(info);
	if (!IS_ERR(rules))
		rc_rules_compile_begin(rules);
	mutex_unlock(&this->control);
	if (IS_ERR(rules))
		return PTR_ERR(rules);
	wild = rc_rules_compile(rules, info->extack);
	mutex_lock(&this->control);
	err = rc_rules_compile_end(rules, wild, info->extack);
	if (!err)
		rc_rules_commit(rules);
	mutex_unlock(&this->control);
	return err;
}

int rc_rule_netlink_abort(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_rules *rules;

	mutex_lock(&this->control);
	rules = rc_rule_netlink_built(info);
	if (!IS_ERR(rules))
		rc_rules_destroy(rules);
	mutex_unlock(&this->control);
	return PTR_ERR_OR_ZERO(rules);
}

/* The active set. */
static struct rc_rules *rc_rule_netlink_in_force(struct genl_info *info)
{
	struct rc_ring *ring = rc_rule_netlink_ring(info);
	struct rc_rules *rules;

	if (IS_ERR(ring))
		return ERR_CAST(ring);
	rules = rc_rules_in_force(ring);
	if (rules)
		return rules;
	NL_SET_ERR_MSG(info->extack,
		       "this ring has no active rule set: make one with RINGCAP_CMD_RULES_BEGIN, _ADD and _COMMIT");
	return ERR_PTR(-ENOENT);
}

int rc_rule_netlink_new(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	int err;

	mutex_lock(&this->control);
	err = rc_rule_netlink_add_to(rc_rule_netlink_in_force(info), info);
	mutex_unlock(&this->control);
	return err;
}

int rc_rule_netlink_del(struct sk_buff *skb, struct genl_info *info)
{
	struct rc_net *this = rc_net(genl_info_net(info));
	struct rc_rules *rules;
	int err;

	mutex_lock(&this->control);
	rules = rc_rule_netlink_in_force(info);
	err = IS_ERR(rules) ? PTR_ERR(rules) : rc_rule_request_delete(info, rules);
	mutex_unlock(&this->control);
	return err;
}

/* ---- dumps ---- */

/* Position of a dump: cb->args[0]. */
enum rc_rule_dump {
	RC_RULE_DUMP_EXACT,	/* args[1]: head of the table, args[2]: rules of that head that were dumped */
	RC_RULE_DUMP_WILD,	/* args[1]: least id that is still to be dumped */
	RC_RULE_DUMP_PATTERNS,	/* args[1]: number of patterns that were dumped */
	RC_RULE_DUMP_DONE,
};

/*
 * Room for one more structure in an array of attribute @type, which is the last of the message; NULL when the message
 * is full.
 */
static void *rc_rule_dump_more(struct sk_buff *skb, struct nlattr *array, size_t size)
{
	if (array->nla_len + size > U16_MAX || skb_tailroom(skb) < size)
		return NULL;
	array->nla_len += size;
	return memset(skb_put(skb, size), 0, size);
}

/*
 * True when all rules of this kind are in. A dump may miss rules that are added meanwhile, or have them twice; then it
 * is marked.
 */
static bool rc_rule_dump_exacts(struct sk_buff *skb, struct netlink_callback *cb, struct rc_rules *rules,
				struct nlattr *array)
{
	struct rc_exact_table *table = rc_exacts_dereference(&rules->exacts, rules->exacts.table);
	struct ringcap_exact_state *state;
	struct rc_exact *rule;
	long nr;

	for (; cb->args[1] <= table->mask; cb->args[1]++, cb->args[2] = 0) {
		nr = 0;
		for (rule = rc_exacts_dereference(&rules->exacts, table->heads[cb->args[1]]); rule;
		     rule = rc_exacts_dereference(&rules->exacts, rule->next[table->which])) {
			if (nr++ < cb->args[2])
				continue;
			state = rc_rule_dump_more(skb, array, sizeof(*state));
			if (!state)
				return false;
			rc_exact_state(rule, state);
			cb->args[2] = nr;
		}
	}
	return true;
}

static bool rc_rule_dump_wild(struct sk_buff *skb, struct netlink_callback *cb, struct rc_rules *rules,
			      struct nlattr *array)
{
	struct ringcap_rule_state *state;
	unsigned long id = cb->args[1];
	struct rc_rule *rule;

	xa_for_each_start(&rules->by_id, id, rule, cb->args[1]) {
		cb->args[1] = id;
		state = rc_rule_dump_more(skb, array, sizeof(*state));
		if (!state)
			return false;
		rc_rule_state(rule, state);
	}
	return true;
}

/* Fills one message with rules of one kind. */
static void rc_rule_dump_some(struct sk_buff *skb, struct netlink_callback *cb, struct rc_rules *rules)
{
	bool exact = cb->args[0] == RC_RULE_DUMP_EXACT, all;
	void *header = rc_answer_dump_begin(skb, cb);
	struct nlattr *array;

	array = header ? nla_reserve(skb, exact ? RINGCAP_A_EXACT_STATE : RINGCAP_A_RULE_STATE, 0) : NULL;
	if (!array)
		return;
	all = exact ? rc_rule_dump_exacts(skb, cb, rules, array) : rc_rule_dump_wild(skb, cb, rules, array);
	if (array->nla_len == NLA_HDRLEN)
		genlmsg_cancel(skb, header);
	else
		genlmsg_end(skb, header);
	if (!all)
		return;
	cb->args[0]++;
	cb->args[1] = 0;
	cb->args[2] = 0;
}

/* Fills one message with patterns. */
static void rc_rule_dump_patterns(struct sk_buff *skb, struct netlink_callback *cb, const struct rc_patterns *patterns)
{
	u32 nr = rc_patterns_count(patterns);
	long first = cb->args[1];
	void *header;

	if (first < nr) {
		header = rc_answer_dump_begin(skb, cb);
		if (!header)
			return;
		while (cb->args[1] < nr && !rc_patterns_put(skb, patterns, cb->args[1]))
			cb->args[1]++;
		if (cb->args[1] == first)
			genlmsg_cancel(skb, header);
		else
			genlmsg_end(skb, header);
	}
	if (cb->args[1] >= nr)
		cb->args[0]++;
}

static int rc_rule_netlink_dump_locked(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct nlattr *name = rc_compat_dump_attrs(cb)[RINGCAP_A_NAME];
	struct rc_ring *ring = name ? rc_ring_find(rc_net(sock_net(skb->sk)), nla_data(name)) : NULL;
	struct rc_rules *rules;

	if (!ring) {
		NL_SET_ERR_MSG(cb->extack, "RINGCAP_A_NAME: missing, or there is no such ring");
		return name ? -ENOENT : -EINVAL;
	}
	/* Never 0, which would mean that nothing is checked. */
	cb->seq = 2U * atomic_read(&ring->rules_changes) + 1;
	rules = rc_rules_in_force(ring);
	while (rules && cb->args[0] < RC_RULE_DUMP_DONE) {
		long kind = cb->args[0];

		if (kind == RC_RULE_DUMP_PATTERNS)
			rc_rule_dump_patterns(skb, cb, rules->patterns);
		else
			rc_rule_dump_some(skb, cb, rules);
		if (cb->args[0] == kind)
			break;
	}
	return skb->len;
}

int rc_rule_netlink_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rc_net *this = rc_net(sock_net(skb->sk));
	int err;

	mutex_lock(&this->control);
	err = rc_rule_netlink_dump_locked(skb, cb);
	mutex_unlock(&this->control);
	return err;
}
