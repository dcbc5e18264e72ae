// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "rules.h"

#include <linux/netlink.h>

#include "traffic.h"

#define RT_EXACTS_A_MESSAGE	1000
#define RT_RULES_A_MESSAGE	400

static void rt_put_target(struct rt_message *message, const struct rt_target *target)
{
	u32 nest = rt_message_nest(message, RINGCAP_A_TARGET);

	if (target->cluster) {
		rt_message_put_name(message, RINGCAP_A_OUTPUT, target->cluster);
		rt_message_put_u32(message, RINGCAP_A_QUEUE, target->queue);
	} else {
		rt_message_put_u32(message, RINGCAP_A_TAP_IFINDEX, target->ifindex);
	}
	rt_message_nest_end(message, nest);
}

int rt_rules_begin(const char *ring, const struct rt_rules *rules)
{
	static struct rt_message message;
	u32 i;

	rt_message_init(&message, RINGCAP_CMD_RULES_BEGIN, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, ring);
	rt_message_put_u64(&message, RINGCAP_A_GENERATION, rules->generation);
	if (rules->default_action)
		rt_message_put_u32(&message, RINGCAP_A_DEFAULT_ACTION, rules->default_action);
	for (i = 0; i < 8 && (rules->targets[i].cluster || rules->targets[i].ifindex); i++)
		rt_put_target(&message, &rules->targets[i]);
	return rt_call(&message, NULL, NULL);
}

int rt_rules_send(u8 cmd, const char *ring, const struct ringcap_exact *exacts, u32 nr_exacts,
		  const struct ringcap_rule *rules, u32 nr_rules)
{
	static struct rt_message message;

	rt_message_init(&message, cmd, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, ring);
	if (nr_exacts)
		rt_message_put(&message, RINGCAP_A_EXACT, exacts, nr_exacts * (u32)sizeof(*exacts));
	if (nr_rules)
		rt_message_put(&message, RINGCAP_A_RULE, rules, nr_rules * (u32)sizeof(*rules));
	return rt_call(&message, NULL, NULL);
}

int rt_rules_commit(const char *ring)
{
	return rt_rules_send(RINGCAP_CMD_RULES_COMMIT, ring, NULL, 0, NULL, 0);
}

void rt_rules_set(const char *ring, const struct rt_rules *set, const struct ringcap_exact *exacts, u32 nr_exacts,
		  const struct ringcap_rule *rules, u32 nr_rules)
{
	int err = rt_rules_begin(ring, set);
	u32 at, now;

	RT_CHECK(!err, "begin: %s (%s)", strerror(-err), rt_reason);
	for (at = 0; at < nr_exacts; at += now) {
		now = nr_exacts - at < RT_EXACTS_A_MESSAGE ? nr_exacts - at : RT_EXACTS_A_MESSAGE;
		err = rt_rules_send(RINGCAP_CMD_RULES_ADD, ring, exacts + at, now, NULL, 0);
		RT_CHECK(!err, "adding exact rules: %s (%s)", strerror(-err), rt_reason);
	}
	for (at = 0; at < nr_rules; at += now) {
		now = nr_rules - at < RT_RULES_A_MESSAGE ? nr_rules - at : RT_RULES_A_MESSAGE;
		err = rt_rules_send(RINGCAP_CMD_RULES_ADD, ring, NULL, 0, rules + at, now);
		RT_CHECK(!err, "adding rules: %s (%s)", strerror(-err), rt_reason);
	}
	err = rt_rules_commit(ring);
	RT_CHECK(!err, "commit: %s (%s)", strerror(-err), rt_reason);
}

static void rt_take_counts(const struct rt_answer *answer, void *arg)
{
	struct rt_rules_counts *counts = arg;

	counts->in_force = answer->attr[RINGCAP_A_RULES_GENERATION];
	counts->generation = rt_answer_u64(answer, RINGCAP_A_RULES_GENERATION);
	counts->expired = rt_answer_u64(answer, RINGCAP_A_EXPIRED);
	counts->not_learnt = rt_answer_u64(answer, RINGCAP_A_NOT_LEARNT);
	counts->memory = rt_answer_u64(answer, RINGCAP_A_MEMORY);
	counts->nr_exact = rt_answer_u32(answer, RINGCAP_A_NR_EXACT);
	counts->nr_rules = rt_answer_u32(answer, RINGCAP_A_NR_RULES);
	counts->nr_shapes = rt_answer_u32(answer, RINGCAP_A_NR_SHAPES);
}

void rt_rules_counts(const char *ring, struct rt_rules_counts *counts)
{
	static struct rt_message message;

	rt_message_init(&message, RINGCAP_CMD_RING_GET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, ring);
	RT_EQUAL(rt_call(&message, rt_take_counts, counts), 0);
}

static void *rt_append(void *array, u32 *nr, size_t size, const void *more, u32 len)
{
	RT_EQUAL(len % size, 0);
	array = realloc(array, *nr * size + len + 1);
	RT_CHECK(array, "no memory");
	memcpy((u8 *)array + *nr * size, more, len);
	*nr += (u32)(len / size);
	return array;
}

static void rt_take_rules(const struct rt_answer *answer, void *arg)
{
	struct rt_rules_dump *dump = arg;

	if (answer->attr[RINGCAP_A_EXACT_STATE])
		dump->exacts = rt_append(dump->exacts, &dump->nr_exacts, sizeof(*dump->exacts),
					 answer->attr[RINGCAP_A_EXACT_STATE], answer->len[RINGCAP_A_EXACT_STATE]);
	if (answer->attr[RINGCAP_A_RULE_STATE])
		dump->rules = rt_append(dump->rules, &dump->nr_rules, sizeof(*dump->rules),
					answer->attr[RINGCAP_A_RULE_STATE], answer->len[RINGCAP_A_RULE_STATE]);
}

void rt_rules_dump(const char *ring, struct rt_rules_dump *dump)
{
	static struct rt_message message;
	int err;

	memset(dump, 0, sizeof(*dump));
	rt_message_init(&message, RINGCAP_CMD_RULES_GET, NLM_F_DUMP);
	rt_message_put_name(&message, RINGCAP_A_NAME, ring);
	do {
		dump->nr_exacts = 0;
		dump->nr_rules = 0;
		err = rt_call(&message, rt_take_rules, dump);
		RT_CHECK(!err, "dump: %s (%s)", strerror(-err), rt_reason);
	} while (rt_interrupted);
}

void rt_rules_dump_free(struct rt_rules_dump *dump)
{
	free(dump->exacts);
	free(dump->rules);
	memset(dump, 0, sizeof(*dump));
}

const struct ringcap_rule_state *rt_rules_dump_find(const struct rt_rules_dump *dump, u32 id)
{
	u32 i;

	for (i = 0; i < dump->nr_rules; i++)
		if (dump->rules[i].rule.id == id)
			return &dump->rules[i];
	rt_fail(__FILE__, __LINE__, "rule in dump", "there is none of id %u", id);
}

struct ringcap_exact rt_exact(u32 flow, u8 action, bool back)
{
	struct rt_traffic traffic = { .flows = flow + 1 };
	struct ringcap_exact rule = { .l3_proto = 0x0800, .l4_proto = 17, .action = action };
	u8 bytes[RT_PACKET_MAX];

	rt_packet_build(&traffic, flow, bytes);
	memcpy(back ? rule.daddr : rule.saddr, bytes + 26, 4);
	memcpy(back ? rule.saddr : rule.daddr, bytes + 30, 4);
	rule.sport = (u16)(bytes[back ? 36 : 34] << 8 | bytes[back ? 37 : 35]);
	rule.dport = (u16)(bytes[back ? 34 : 36] << 8 | bytes[back ? 35 : 37]);
	return rule;
}
