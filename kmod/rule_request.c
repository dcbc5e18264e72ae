// SPDX-License-Identifier: GPL-2.0-only

#include "rule_request.h"

#include <linux/ringcap.h>
#include <linux/slab.h>
#include <net/genetlink.h>

#include "attr.h"
#include "pattern.h"
#include "rules.h"
#include "rules_change.h"

static const struct nla_policy rc_rule_request_target_policy[RINGCAP_A_MAX + 1] = {
	[RINGCAP_A_OUTPUT] = { .type = NLA_NUL_STRING, .len = RINGCAP_NAME_MAX },
	[RINGCAP_A_QUEUE] = { .type = NLA_U32 },
	[RINGCAP_A_TAP_IFINDEX] = { .type = NLA_U32 },
};

/* ---- sets ---- */

static int rc_rule_request_target(const struct genl_info *info, const struct nlattr *attr, struct rc_rules_spec *spec)
{
	struct rc_target_spec *target = &spec->targets[spec->nr_targets];
	struct nlattr *in[RINGCAP_A_MAX + 1];
	int err;

	if (spec->nr_targets == RINGCAP_TARGETS_MAX)
		return rc_attr_refuse(info->extack, attr, -EINVAL,
				      "RINGCAP_A_TARGET: a rule set has at most 256 targets");
	err = nla_parse_nested(in, RINGCAP_A_MAX, attr, rc_rule_request_target_policy, info->extack);
	if (err)
		return err;
	if (!in[RINGCAP_A_OUTPUT] == !in[RINGCAP_A_TAP_IFINDEX] || !in[RINGCAP_A_OUTPUT] != !in[RINGCAP_A_QUEUE])
		return rc_attr_refuse(info->extack, attr, -EINVAL,
				      "RINGCAP_A_TARGET: a target is either RINGCAP_A_OUTPUT and RINGCAP_A_QUEUE, or RINGCAP_A_TAP_IFINDEX");
	target->attr = attr;
	if (in[RINGCAP_A_OUTPUT]) {
		target->cluster = nla_data(in[RINGCAP_A_OUTPUT]);
		target->queue = nla_get_u32(in[RINGCAP_A_QUEUE]);
	} else {
		target->ifindex = nla_get_u32(in[RINGCAP_A_TAP_IFINDEX]);
	}
	spec->nr_targets++;
	return 0;
}

static int rc_rule_request_actions(const struct genl_info *info, struct rc_rules_spec *spec)
{
	const struct nlattr *action = info->attrs[RINGCAP_A_DEFAULT_ACTION];
	const struct nlattr *patterns = info->attrs[RINGCAP_A_PATTERN_ACTION];

	spec->default_action = action ? nla_get_u32(action) : RINGCAP_ACTION_PASS;
	if (spec->default_action != RINGCAP_ACTION_PASS && spec->default_action != RINGCAP_ACTION_DROP &&
	    spec->default_action != RINGCAP_ACTION_REFLECT)
		return rc_attr_refuse(info->extack, action, -EINVAL,
				      "RINGCAP_A_DEFAULT_ACTION: where no rule matches packets can be passed, dropped or reflected");
	if (spec->default_action == RINGCAP_ACTION_REFLECT && (!spec->nr_targets || spec->targets[0].cluster))
		return rc_attr_refuse(info->extack, action, -EINVAL,
				      "RINGCAP_A_DEFAULT_ACTION: packets are reflected to target 0, which is no interface");
	spec->pattern_action = patterns ? nla_get_u32(patterns) : RINGCAP_ACTION_PASS;
	if (spec->pattern_action > RINGCAP_ACTION_DROP)
		return rc_attr_refuse(info->extack, patterns, -EINVAL,
				      "RINGCAP_A_PATTERN_ACTION: what matches a pattern can be passed or dropped");
	return 0;
}

int rc_rule_request_set(const struct genl_info *info, struct rc_rules_spec *spec)
{
	const struct nlattr *attr;
	int rest, err;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rest) {
		if (nla_type(attr) != RINGCAP_A_TARGET)
			continue;
		err = rc_rule_request_target(info, attr, spec);
		if (err)
			return err;
	}
	spec->generation = info->attrs[RINGCAP_A_GENERATION] ? nla_get_u64(info->attrs[RINGCAP_A_GENERATION]) : 0;
	return rc_rule_request_actions(info, spec);
}

/* ---- common to rules of both kinds ---- */

/* The reason why the action is not possible, or NULL. */
static const char *rc_rule_request_action(const struct rc_rules *rules, u8 action, u16 target, u32 idle_s)
{
	if (action >= __RINGCAP_ACTION_MAX)
		return "a rule's action is unknown";
	if (idle_s > RC_IDLE_MAX)
		return "a rule's idle time is at most 1000000 seconds; 0 is for ever";
	if (action != RINGCAP_ACTION_QUEUE && action != RINGCAP_ACTION_REFLECT)
		return target ? "only RINGCAP_ACTION_QUEUE and _REFLECT have a target: it has to be 0" : NULL;
	if (target >= rules->nr_targets)
		return "a rule names a target that the set does not have: RINGCAP_CMD_RULES_BEGIN lists them";
	if (action == RINGCAP_ACTION_QUEUE)
		return rules->targets[target].cluster ? NULL : "RINGCAP_ACTION_QUEUE wants a target that is a queue";
	return rules->targets[target].cluster ? "RINGCAP_ACTION_REFLECT wants a target that is an interface" : NULL;
}

/* Whether @attr is one or more structures of @size; if not, reports why. */
static int rc_rule_request_array(const struct genl_info *info, const struct nlattr *attr, size_t size)
{
	if (nla_len(attr) && !(nla_len(attr) % size))
		return 0;
	if (nla_type(attr) == RINGCAP_A_EXACT)
		return rc_attr_refuse(info->extack, attr, -EINVAL,
				      "RINGCAP_A_EXACT: one or more whole struct ringcap_exact");
	return rc_attr_refuse(info->extack, attr, -EINVAL, "RINGCAP_A_RULE: one or more whole struct ringcap_rule");
}

static int rc_rule_request_refuse(const struct genl_info *info, const struct nlattr *attr, const char *reason)
{
	info->extack->_msg = reason;
	NL_SET_BAD_ATTR(info->extack, attr);
	return -EINVAL;
}

/* ---- exact rules ---- */

static int rc_rule_request_exact(const struct genl_info *info, const struct nlattr *attr, const struct rc_rules *rules,
				 const struct ringcap_exact *from, struct rc_rules_change *change)
{
	const char *reason = rc_exact_refusal(from) ?:
			     rc_rule_request_action(rules, from->action, from->target, from->idle_s);
	struct rc_verdict verdict = { .action = from->action, .target = from->target, .idle_s = from->idle_s };
	struct rc_exact_key key;
	struct rc_exact *rule;
	int swapped;
	u32 words;

	if (!reason && from->action == RINGCAP_ACTION_LEARN)
		reason = "RINGCAP_A_EXACT: there is nothing to learn from an exact rule";
	if (reason)
		return rc_rule_request_refuse(info, attr, reason);
	words = rc_exact_key_of_rule(from, &key, &swapped);
	verdict.flags = swapped ? RC_EXACT_SWAPPED : 0;
	rule = rc_exact_alloc(&key, words, verdict, GFP_KERNEL_ACCOUNT);
	if (!rule)
		return -ENOMEM;
	RCU_INIT_POINTER(rule->next[0], change->exacts);
	change->exacts = rule;
	change->nr_exacts++;
	if (from->idle_s)
		change->least_idle_s = min_not_zero(change->least_idle_s, from->idle_s);
	return 0;
}

/* ---- wildcard rules ---- */

static bool rc_rule_request_prefix_ok(u8 family, u8 splen, u8 dplen)
{
	u8 most = family == 4 ? 32 : 128;

	return (family == 4 || family == 6) && splen <= most && dplen <= most;
}

static const char *rc_rule_request_link(const struct ringcap_rule *rule)
{
	if (rule->fields & RINGCAP_MATCH_ETHERTYPE && rule->ethertype < RC_ETH_P_MIN)
		return "RINGCAP_A_RULE: an ethertype is 0x0600 to 0xffff";
	if (rule->fields & RINGCAP_MATCH_VLAN && rule->vlan_id > 0xfff)
		return "RINGCAP_A_RULE: a VLAN id is 0 (untagged) to 4095";
	if (rule->fields & RINGCAP_MATCH_INNER_VLAN && rule->inner_vlan_id > 0xfff)
		return "RINGCAP_A_RULE: a second VLAN id is 0 (no second tag) to 4095";
	return NULL;
}

static const char *rc_rule_request_network(const struct ringcap_rule *rule)
{
	u32 fields = rule->fields;

	if (fields & (RINGCAP_MATCH_SADDR | RINGCAP_MATCH_DADDR) &&
	    !rc_rule_request_prefix_ok(rule->family, fields & RINGCAP_MATCH_SADDR ? rule->splen : 0,
				       fields & RINGCAP_MATCH_DADDR ? rule->dplen : 0))
		return "RINGCAP_A_RULE: family is 4 or 6, a prefix length at most 32 or 128";
	if (fields & (RINGCAP_MATCH_INNER_SADDR | RINGCAP_MATCH_INNER_DADDR) &&
	    !rc_rule_request_prefix_ok(rule->inner_family, fields & RINGCAP_MATCH_INNER_SADDR ? rule->inner_splen : 0,
				       fields & RINGCAP_MATCH_INNER_DADDR ? rule->inner_dplen : 0))
		return "RINGCAP_A_RULE: inner_family is 4 or 6, a prefix length at most 32 or 128";
	return NULL;
}

static const char *rc_rule_request_transport(const struct ringcap_rule *rule)
{
	u32 fields = rule->fields;

	if ((fields & RINGCAP_MATCH_SPORT && rule->sport[0] > rule->sport[1]) ||
	    (fields & RINGCAP_MATCH_DPORT && rule->dport[0] > rule->dport[1]))
		return "RINGCAP_A_RULE: a range of ports begins with the least";
	if (fields & RINGCAP_MATCH_TCP_FLAGS && rule->tcp_flags & ~rule->tcp_mask)
		return "RINGCAP_A_RULE: tcp_flags has a flag that tcp_mask has not: that never matches";
	if (!(fields & RINGCAP_MATCH_PROTO))
		return NULL;
	if (fields & (RINGCAP_MATCH_SPORT | RINGCAP_MATCH_DPORT) && !rc_proto_has_ports(rule->l4_proto))
		return "RINGCAP_A_RULE: only TCP, UDP and SCTP have ports: that never matches";
	if (fields & RINGCAP_MATCH_TCP_FLAGS && rule->l4_proto != RC_IPPROTO_TCP)
		return "RINGCAP_A_RULE: only TCP has flags: that never matches";
	return NULL;
}

static const char *rc_rule_request_reserved(const struct ringcap_rule *rule)
{
	if (!rule->id)
		return "RINGCAP_A_RULE: a rule's id is not 0";
	if (rule->fields & ~RINGCAP_MATCH_ALL)
		return "RINGCAP_A_RULE: fields has bits that this version does not know";
	if (rule->flags & ~RINGCAP_RULE_BOTH)
		return "RINGCAP_A_RULE: flags has bits that this version does not know";
	if (rule->resv[0] || rule->resv[1] || rule->resv[2] || rule->resv2 || rule->resv3[0] || rule->resv3[1])
		return "RINGCAP_A_RULE: reserved fields have to be 0";
	return NULL;
}

static int rc_rule_request_rule(const struct genl_info *info, const struct nlattr *attr, const struct rc_rules *rules,
				const struct ringcap_rule *from, struct rc_rules_change *change)
{
	const char *reason = rc_rule_request_reserved(from) ?: rc_rule_request_link(from) ?:
			     rc_rule_request_network(from) ?: rc_rule_request_transport(from) ?:
			     rc_rule_request_action(rules, from->action, from->target, from->idle_s);
	struct rc_rule *rule;

	if (reason)
		return rc_rule_request_refuse(info, attr, reason);
	rule = rc_rule_alloc(from);
	if (!rule)
		return -ENOMEM;
	rule->next = change->rules;
	change->rules = rule;
	change->nr_rules++;
	if (from->idle_s)
		change->least_idle_s = min_not_zero(change->least_idle_s, from->idle_s);
	return 0;
}

/* ---- messages ---- */

static int rc_rule_request_attr(const struct genl_info *info, const struct nlattr *attr, const struct rc_rules *rules,
				struct rc_rules_change *change)
{
	size_t size = nla_type(attr) == RINGCAP_A_EXACT ? sizeof(struct ringcap_exact) : sizeof(struct ringcap_rule);
	const void *at = nla_data(attr), *end = at + nla_len(attr);
	int err = rc_rule_request_array(info, attr, size);

	for (; at < end && !err; at += size) {
		if (nla_type(attr) == RINGCAP_A_EXACT)
			err = rc_rule_request_exact(info, attr, rules, at, change);
		else
			err = rc_rule_request_rule(info, attr, rules, at, change);
	}
	return err;
}

static bool rc_rule_request_has_rules(const struct nlattr *attr)
{
	return nla_type(attr) == RINGCAP_A_EXACT || nla_type(attr) == RINGCAP_A_RULE;
}

int rc_rule_request_rules(const struct genl_info *info, const struct rc_rules *rules, struct rc_rules_change *change)
{
	const struct nlattr *attr;
	int rest, err = 0;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rest) {
		if (!err && rc_rule_request_has_rules(attr))
			err = rc_rule_request_attr(info, attr, rules, change);
	}
	if (err)
		rc_rules_change_free(change);
	return err;
}

int rc_rule_request_patterns(const struct genl_info *info, struct rc_rules *rules)
{
	const struct nlattr *attr;
	int rest, err = 0;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rest) {
		if (err || nla_type(attr) != RINGCAP_A_PATTERN)
			continue;
		if (!rules->portid)
			return rc_attr_refuse(info->extack, attr, -EINVAL,
					      "RINGCAP_A_PATTERN: patterns come and go with a whole set: RINGCAP_CMD_RULES_BEGIN");
		if (!rules->patterns)
			rules->patterns = rc_patterns_create(rules->pattern_action);
		err = rules->patterns ? rc_patterns_add(rules->patterns, attr, info->extack) : -ENOMEM;
	}
	return err;
}

void rc_rule_request_forget_patterns(struct rc_rules *rules, u32 nr)
{
	/* Active patterns don't change. */
	if (!rules->patterns || !rules->portid)
		return;
	rc_patterns_truncate(rules->patterns, nr);
	if (nr)
		return;
	rc_patterns_free(rules->patterns);
	rules->patterns = NULL;
}

int rc_rule_request_delete(const struct genl_info *info, struct rc_rules *rules)
{
	const struct nlattr *exacts = info->attrs[RINGCAP_A_EXACT], *ids = info->attrs[RINGCAP_A_RULE];
	u32 nr_exacts = exacts ? nla_len(exacts) / sizeof(struct ringcap_exact) : 0, i;
	u32 nr_ids = ids ? nla_len(ids) / sizeof(struct ringcap_rule) : 0;
	int err = 0;

	if (exacts)
		err = rc_rule_request_array(info, exacts, sizeof(struct ringcap_exact));
	if (!err && ids)
		err = rc_rule_request_array(info, ids, sizeof(struct ringcap_rule));
	for (i = 0; i < nr_exacts && !err; i++) {
		const char *reason = rc_exact_refusal((const struct ringcap_exact *)nla_data(exacts) + i);

		if (reason)
			err = rc_rule_request_refuse(info, exacts, reason);
	}
	return err ?: rc_rules_delete(rules, exacts ? nla_data(exacts) : NULL, nr_exacts, ids ? nla_data(ids) : NULL,
				      nr_ids, info->extack);
}
