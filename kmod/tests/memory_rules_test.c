// SPDX-License-Identifier: GPL-2.0-only
/*
 * No memory for rules: each allocation fails in its turn while a set is built and activated, or active rules are
 * changed. A rejected request leaves nothing behind, so the same request then succeeds at once. Packets with failed
 * allocations are counted, and captured if possible. On the debug kernel only.
 */
#define _GNU_SOURCE
#include "faults.h"
#include "fixture.h"
#include "rules.h"

#define RT_FEW 5

/* ---- what a ring's rules are ---- */

static u64 rt_hash(const void *bytes, size_t len)
{
	u64 hash = 0xcbf29ce484222325ULL;

	while (len--)
		hash = (hash ^ ((const u8 *)bytes)[len]) * 0x100000001b3ULL;
	return hash;
}

/* A number that depends on the active rules, however they are kept. */
static u64 rt_rules_digest(const char *ring)
{
	struct rt_rules_counts counts;
	struct rt_rules_dump dump;
	u64 digest = 0;
	u32 i;

	rt_rules_counts(ring, &counts);
	rt_rules_dump(ring, &dump);
	RT_EQUAL(counts.nr_exact, dump.nr_exacts);
	RT_EQUAL(counts.nr_rules, dump.nr_rules);
	for (i = 0; i < dump.nr_exacts; i++)
		digest += rt_hash(&dump.exacts[i].rule, sizeof(dump.exacts[i].rule));
	for (i = 0; i < dump.nr_rules; i++)
		digest += rt_hash(&dump.rules[i].rule, sizeof(dump.rules[i].rule));
	rt_rules_dump_free(&dump);
	return digest + counts.generation * 0x9e3779b97f4a7c15ULL;
}

/*
 * struct rt_few - a few rules of each kind
 * @ring: whose they are to be
 * @cluster: that some of them direct packets to
 */
struct rt_few {
	const char *ring;
	const char *cluster;
	struct ringcap_exact exacts[RT_FEW];
	struct ringcap_rule rules[RT_FEW];
};

/* Other rules for other @round. */
static void rt_few_make(struct rt_few *few, u32 round)
{
	u32 i;

	for (i = 0; i < RT_FEW; i++) {
		few->exacts[i] = rt_exact(round % 7 * RT_FEW + i, RINGCAP_ACTION_PASS, i % 2);
		few->rules[i] = (struct ringcap_rule){ .id = round * 100 + i + 1, .fields = RINGCAP_MATCH_DPORT, .priority = i,
						       .action = i % 2 ? RINGCAP_ACTION_QUEUE : RINGCAP_ACTION_LEARN,
						       /* One mask shape: each more is two more allocations. */
						       .dport = { (u16)(1024 * i), (u16)(1024 * i + 1023) } };
	}
}

/* ---- steps of a request ---- */

static struct rt_message rt_step_message;

static int rt_few_begin(const struct rt_few *few, u32 round)
{
	const struct rt_rules set = { .generation = round, .targets = { { few->cluster, 0, 0 } } };

	return rt_rules_begin(few->ring, &set);
}

static int rt_few_send(const struct rt_few *few, u8 cmd)
{
	return rt_rules_send(cmd, few->ring, few->exacts, RT_FEW, few->rules, RT_FEW);
}

static int rt_few_patterns(const struct rt_few *few, u32 round)
{
	char bytes[32];
	u32 i, nest;

	rt_message_init(&rt_step_message, RINGCAP_CMD_RULES_ADD, 0);
	rt_message_put_name(&rt_step_message, RINGCAP_A_NAME, few->ring);
	for (i = 0; i < RT_FEW; i++) {
		snprintf(bytes, sizeof(bytes), "pattern %u of round %u", i, round);
		nest = rt_message_nest(&rt_step_message, RINGCAP_A_PATTERN);
		rt_message_put(&rt_step_message, RINGCAP_A_PATTERN_BYTES, bytes, (u32)strlen(bytes));
		rt_message_nest_end(&rt_step_message, nest);
	}
	return rt_call(&rt_step_message, NULL, NULL);
}

/* Of a step that failed: nothing has changed, and it succeeds when it is done again. */
#define RT_STEP(few, what, n, step)								\
	do {											\
		u64 rt_before = rt_rules_digest((few)->ring);					\
		int rt_err;									\
												\
		rt_fail_nth(n);									\
		rt_err = (step);								\
		failed |= rt_has_failed();							\
		rt_fail_nth(0);									\
		if (rt_err >= 0)								\
			break;									\
		RT_CHECK(rt_rules_digest((few)->ring) == rt_before, "%s, allocation %u: something changed", what, n);	\
		rt_err = (step);								\
		RT_CHECK(!rt_err, "%s, again after allocation %u: %s (%s)", what, n, strerror(-rt_err), rt_reason);	\
	} while (0)

static void rt_few_check(const struct rt_few *few, u32 round, u32 nr)
{
	struct rt_rules_counts counts;
	struct rt_rules_dump dump;
	u32 i;

	rt_rules_counts(few->ring, &counts);
	RT_EQUAL(counts.generation, round);
	rt_rules_dump(few->ring, &dump);
	RT_EQUAL(dump.nr_exacts, nr);
	RT_EQUAL(dump.nr_rules, nr);
	for (i = 0; i < RT_FEW; i++) {
		const struct ringcap_rule_state *state = rt_rules_dump_find(&dump, few->rules[i].id);

		RT_CHECK(!memcmp(&state->rule, &few->rules[i], sizeof(state->rule)), "rule %u is another", few->rules[i].id);
	}
	rt_rules_dump_free(&dump);
}

/* ---- requests ---- */

RT_CASE(allocation_failures_of_rule_sets)
{
	struct rt_fixture fixture;
	struct rt_few few;
	bool failed = true;
	u32 round;

	rt_faults_open();
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	few = (struct rt_few){ .ring = fixture.ring, .cluster = fixture.cluster };
	for (round = 1; failed; round++) {
		failed = false;
		rt_few_make(&few, round);
		RT_STEP(&few, "beginning", round, rt_few_begin(&few, round));
		RT_STEP(&few, "adding rules", round, rt_few_send(&few, RINGCAP_CMD_RULES_ADD));
		RT_STEP(&few, "adding patterns", round, rt_few_patterns(&few, round));
		RT_STEP(&few, "activating", round, rt_rules_commit(few.ring));
		rt_few_check(&few, round, RT_FEW);
		RT_CHECK(round < 500, "there is no end of it");
	}
	RT_CHECK(round > 20, "only %u allocations", round);
}

RT_CASE(allocation_failures_of_single_rules)
{
	struct rt_few first = {}, few = {};
	struct rt_fixture fixture;
	bool failed = true;
	u32 round;

	rt_faults_open();
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	first.ring = few.ring = fixture.ring;
	first.cluster = few.cluster = fixture.cluster;
	rt_few_make(&first, 0);
	RT_EQUAL(rt_few_begin(&first, 9), 0);
	RT_EQUAL(rt_few_send(&first, RINGCAP_CMD_RULES_ADD), 0);
	RT_EQUAL(rt_rules_commit(first.ring), 0);
	for (round = 1; failed; round++) {
		failed = false;
		rt_few_make(&few, 1 + round % 6);
		RT_STEP(&few, "a new rule", round, rt_few_send(&few, RINGCAP_CMD_RULE_NEW));
		rt_few_check(&few, 9, 2 * RT_FEW);
		RT_STEP(&few, "taking a rule out", round, rt_few_send(&few, RINGCAP_CMD_RULE_DEL));
		rt_few_check(&first, 9, RT_FEW);
		RT_CHECK(round < 500, "there is no end of it");
	}
	RT_CHECK(round > 20, "only %u allocations", round);
}

/* ---- packets ---- */

/* If there is no memory to learn a flow, the rule that would have learnt it passes it, and this is counted. */
RT_CASE(allocation_failures_of_learning)
{
	const struct ringcap_rule rule = { .id = 1, .fields = RINGCAP_MATCH_PROTO, .l4_proto = 17,
					   .action = RINGCAP_ACTION_LEARN };
	const struct rt_rules set = { .generation = 1 };
	struct rt_traffic traffic = { .flows = 50 };
	struct rt_rules_counts counts;
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	u64 not_learnt;

	rt_faults_open();
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_rules_set(fixture.ring, &set, NULL, 0, &rule, 1);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 200);
	rt_fail_atomic(100);
	rt_exchange(fixture.sender, &traffic, 0, 50, &queue, 1, &receiver);
	rt_rules_counts(fixture.ring, &counts);
	rt_fail_atomic(0);
	RT_EQUAL(counts.nr_exact, 0);
	RT_EQUAL(counts.not_learnt, 50);
	/* Half of them fail; a flow that the first packet could not add may be learnt from the second. */
	rt_fail_atomic(50);
	rt_exchange(fixture.sender, &traffic, 50, 100, &queue, 1, &receiver);
	rt_fail_atomic(0);
	rt_rules_counts(fixture.ring, &counts);
	not_learnt = counts.not_learnt;
	RT_CHECK(counts.nr_exact > 0 && counts.nr_exact <= 50 && not_learnt > 50, "%u learnt, %llu not", counts.nr_exact,
		 (unsigned long long)not_learnt);
	rt_exchange(fixture.sender, &traffic, 150, 50, &queue, 1, &receiver);
	rt_rules_counts(fixture.ring, &counts);
	RT_EQUAL(counts.nr_exact, 50);
	RT_EQUAL(counts.not_learnt, not_learnt);
	rt_fixture_check(&fixture, 200, 0, 200, 0, 0);
	rt_queue_close(&queue);
}
