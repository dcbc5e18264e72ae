// SPDX-License-Identifier: GPL-2.0-only
/* Rule sets: which rules match, what happens to packets, how sets come and go. */
#define _GNU_SOURCE
#include "fixture.h"
#include "rules.h"

#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct rt_rules rt_drop_rest = { .default_action = RINGCAP_ACTION_DROP };

/* Sends and waits until the ring has seen it. */
static void rt_rules_traffic(const struct rt_fixture *fixture, const struct rt_traffic *traffic, u32 from, u32 count)
{
	u64 seen = rt_ring_seen(fixture->ring);

	rt_send(fixture->sender, traffic, from, count);
	rt_ring_wait(fixture->ring, seen + count);
}

static u64 rt_rules_filtered(const struct rt_fixture *fixture)
{
	struct rt_ring_counts counts;

	rt_ring_counts(fixture->ring, &counts);
	RT_EQUAL(counts.seen, counts.filtered + counts.passed + counts.directed + counts.reflected);
	return counts.filtered;
}

static const struct ringcap_exact_state *rt_rules_find_exact(const struct rt_rules_dump *dump,
							     const struct ringcap_exact *rule)
{
	u32 i;

	for (i = 0; i < dump->nr_exacts; i++)
		if (!memcmp(&dump->exacts[i].rule, rule, sizeof(*rule)))
			return &dump->exacts[i];
	rt_fail(__FILE__, __LINE__, "exact rule in dump", "it is not there");
}

/* One exact rule is for both directions, in whichever direction it is written. It is for its VLAN only, and counts. */
RT_CASE(rules_exact)
{
	struct rt_traffic there = { .flows = 20 }, back = { .flows = 20, .reverse = true };
	struct rt_traffic tagged = { .flows = 20, .tpid = { 0x8100 }, .tci = { 0x6007 } };
	struct ringcap_exact rules[11];
	struct rt_rules_counts counts;
	struct rt_rules_dump dump;
	struct rt_fixture fixture;
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	for (i = 0; i < 10; i++)
		rules[i] = rt_exact(i, RINGCAP_ACTION_DROP, i % 2);
	rules[10] = rt_exact(15, RINGCAP_ACTION_DROP, false);
	rules[10].vlan_id = 7;
	rt_rules_set(fixture.ring, &(struct rt_rules){ .generation = 42 }, rules, 11, NULL, 0);
	rt_rules_counts(fixture.ring, &counts);
	RT_EQUAL(counts.generation, 42);
	RT_EQUAL(counts.nr_exact, 11);
	RT_CHECK(counts.memory > 11 * 80, "%llu bytes", (unsigned long long)counts.memory);

	rt_rules_traffic(&fixture, &there, 0, 100);
	RT_EQUAL(rt_rules_filtered(&fixture), 50);
	rt_rules_traffic(&fixture, &back, 0, 100);
	RT_EQUAL(rt_rules_filtered(&fixture), 100);
	rt_rules_traffic(&fixture, &tagged, 0, 100);
	RT_EQUAL(rt_rules_filtered(&fixture), 105);

	rt_rules_dump(fixture.ring, &dump);
	RT_EQUAL(dump.nr_exacts, 11);
	for (i = 0; i < 11; i++) {
		const struct ringcap_exact_state *state = rt_rules_find_exact(&dump, &rules[i]);

		RT_EQUAL(state->counts.packets, i < 10 ? 10 : 5);
		RT_EQUAL(state->counts.bytes, state->counts.packets * 60);
		RT_CHECK(state->counts.idle_ms < 60000, "%u ms", state->counts.idle_ms);
		RT_EQUAL(state->counts.flags, 0);
	}
	rt_rules_dump_free(&dump);

	/* A set without rules takes them away. */
	rt_rules_set(fixture.ring, &(struct rt_rules){}, NULL, 0, NULL, 0);
	rt_rules_counts(fixture.ring, &counts);
	RT_CHECK(!counts.in_force, "there is a set still");
	rt_rules_traffic(&fixture, &there, 0, 100);
	RT_EQUAL(rt_rules_filtered(&fixture), 105);
}

/* Single rules are added to and removed from the active set; what is refused changes nothing. */
RT_CASE(rules_single)
{
	struct ringcap_rule wild = { .id = 9, .fields = RINGCAP_MATCH_PROTO, .l4_proto = 17 }, other = { .id = 8 };
	struct ringcap_exact exacts[3] = { rt_exact(1, RINGCAP_ACTION_PASS, false), rt_exact(2, RINGCAP_ACTION_PASS, true) };
	struct rt_traffic traffic = { .flows = 10 };
	struct rt_rules_counts counts;
	struct rt_fixture fixture;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_NEW, fixture.ring, exacts, 1, NULL, 0), -ENOENT);
	rt_rules_set(fixture.ring, &rt_drop_rest, NULL, 0, NULL, 0);
	rt_rules_traffic(&fixture, &traffic, 0, 10);
	RT_EQUAL(rt_rules_filtered(&fixture), 10);

	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_NEW, fixture.ring, exacts, 2, NULL, 0), 0);
	rt_rules_traffic(&fixture, &traffic, 0, 10);
	RT_EQUAL(rt_rules_filtered(&fixture), 18);
	exacts[1] = rt_exact(2, RINGCAP_ACTION_DROP, false);	/* the same flow */
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_NEW, fixture.ring, exacts, 2, &wild, 1), 0);
	rt_rules_traffic(&fixture, &traffic, 0, 10);
	RT_EQUAL(rt_rules_filtered(&fixture), 19);
	wild.action = RINGCAP_ACTION_DROP;
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_NEW, fixture.ring, NULL, 0, &wild, 1), 0);
	rt_rules_traffic(&fixture, &traffic, 0, 10);
	RT_EQUAL(rt_rules_filtered(&fixture), 28);
	rt_rules_counts(fixture.ring, &counts);
	RT_EQUAL(counts.nr_exact, 2);
	RT_EQUAL(counts.nr_rules, 1);

	exacts[2] = rt_exact(3, RINGCAP_ACTION_PASS, false);
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_DEL, fixture.ring, exacts, 3, &wild, 1), -ENOENT);
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_DEL, fixture.ring, exacts, 2, &other, 1), -ENOENT);
	RT_CHECK(rt_reason[0], "no reason given");
	exacts[2].action = RINGCAP_ACTION_LEARN;
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_NEW, fixture.ring, exacts, 3, &other, 1), -EINVAL);
	rt_rules_counts(fixture.ring, &counts);
	RT_EQUAL(counts.nr_exact, 2);
	RT_EQUAL(counts.nr_rules, 1);
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_DEL, fixture.ring, exacts, 2, &wild, 1), 0);
	rt_rules_counts(fixture.ring, &counts);
	RT_EQUAL(counts.nr_exact, 0);
	RT_EQUAL(counts.nr_rules, 0);
	rt_rules_traffic(&fixture, &traffic, 0, 10);
	RT_EQUAL(rt_rules_filtered(&fixture), 38);
}

/* Packets that a rule of either kind sends to a queue arrive there, and the accounts add up. */
RT_CASE(rules_directed)
{
	struct ringcap_rule rule = { .id = 5, .priority = 1, .fields = RINGCAP_MATCH_DPORT, .dport = { 54, 54 },
				     .action = RINGCAP_ACTION_QUEUE, .target = 1 };
	struct rt_traffic traffic = { .flows = 10 };
	struct ringcap_exact exact = rt_exact(4, RINGCAP_ACTION_QUEUE, false);
	struct rt_rules set = { };
	struct rt_queue_counts queues;
	struct rt_ring_counts counts;
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	char other[64];

	rt_fixture_open(&fixture, &(struct rt_cluster){ .queues = 2 });
	snprintf(other, sizeof(other), "%s-other", fixture.cluster);
	RT_EQUAL(rt_cluster_set(&(struct rt_cluster){ .name = other, .queues = 3 }), 0);
	set.targets[0] = (struct rt_target){ .cluster = other, .queue = 0 };
	set.targets[1] = (struct rt_target){ .cluster = other, .queue = 2 };
	rt_rules_set(fixture.ring, &set, &exact, 1, &rule, 1);

	rt_queue_open(&queue, other, 2);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 100);
	rt_rules_traffic(&fixture, &traffic, 0, 100);
	rt_ring_counts(fixture.ring, &counts);
	RT_EQUAL(counts.directed, 60);
	RT_EQUAL(counts.passed, 40);
	RT_EVENTUALLY((rt_queue_read(&queue, rt_receive, &receiver), receiver.count == 50), 5000);
	rt_queue_counts(other, 0, &queues);
	RT_EQUAL(queues.dropped[RINGCAP_DROP_UNATTENDED], 10);
	rt_queue_counts(other, 2, &queues);
	RT_EQUAL(queues.delivered, 50);
	rt_cluster_counts(fixture.cluster, &queues);
	RT_EQUAL(queues.dropped[RINGCAP_DROP_UNATTENDED], 40);
	rt_queue_close(&queue);

	/* A queue that rules name stays. */
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, other), -EBUSY);
	RT_CHECK(strstr(rt_reason, fixture.ring), "%s", rt_reason);
	RT_EQUAL(rt_cluster_set(&(struct rt_cluster){ .name = other, .queues = 2 }), -EBUSY);
	RT_CHECK(strstr(rt_reason, fixture.ring), "%s", rt_reason);
	RT_EQUAL(rt_cluster_set(&(struct rt_cluster){ .name = other, .queues = 4 }), 0);
	rt_rules_set(fixture.ring, &(struct rt_rules){}, NULL, 0, NULL, 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, other), 0);
}

/*
 * Packets that a rule reflects leave by another interface and go nowhere else. When that is gone they are counted as
 * failed.
 */
RT_CASE(rules_reflected)
{
	struct ringcap_rule rule = { .id = 1, .fields = RINGCAP_MATCH_DPORT, .dport = { 54, 54 },
				     .action = RINGCAP_ACTION_REFLECT };
	struct rt_traffic traffic = { .flows = 10 };
	struct rt_rules set = { };
	struct rt_ring_counts counts;
	struct rt_fixture fixture;
	struct rt_ring far = { .name = "far" };

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_veth_create("vc", "vd");
	far.taps[0] = (struct rt_tap){ .ifindex = rt_ifindex("vd"), .direction = RINGCAP_DIRECTION_RX };
	far.outputs[0] = fixture.cluster;
	RT_EQUAL(rt_ring_set(&far), 0);
	set.targets[0].ifindex = rt_ifindex("vc");
	rt_rules_set(fixture.ring, &set, NULL, 0, &rule, 1);
	rt_rules_traffic(&fixture, &traffic, 0, 100);
	rt_ring_wait("far", 50);
	rt_ring_counts(fixture.ring, &counts);
	RT_EQUAL(counts.reflected, 50);
	RT_EQUAL(counts.reflect_failed, 0);
	RT_EQUAL(counts.passed, 50);

	rt_link_delete("vc");
	rt_rules_traffic(&fixture, &traffic, 0, 100);
	rt_ring_counts(fixture.ring, &counts);
	RT_EQUAL(counts.reflected, 100);
	RT_EQUAL(counts.reflect_failed, 50);
	rt_delete(RINGCAP_CMD_RING_DEL, "far");
}

/* Of flows with even numbers; of the set before nothing is left. */
static void rt_rules_learn(const struct rt_fixture *fixture, u32 idle_s)
{
	struct ringcap_rule rule = { .id = 1, .fields = RINGCAP_MATCH_DPORT, .dport = { 54, 54 }, .idle_s = idle_s,
				     .action = RINGCAP_ACTION_LEARN };

	rt_rules_set(fixture->ring, &rt_drop_rest, NULL, 0, &rule, 1);
}

/* A flow that was learnt passes without the rule that learnt it. */
RT_CASE(rules_learn)
{
	const u32 flows = rt_scaled(4000);
	struct rt_traffic traffic = { .flows = flows }, back = { .flows = flows, .reverse = true };
	struct rt_rules_counts counts;
	struct rt_rules_dump dump;
	struct rt_fixture fixture;
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_rules_learn(&fixture, 100000);
	rt_rules_traffic(&fixture, &traffic, 0, flows);
	RT_EQUAL(rt_rules_filtered(&fixture), flows / 2);
	rt_rules_counts(fixture.ring, &counts);
	RT_EQUAL(counts.nr_exact, flows / 2);
	RT_EQUAL(counts.not_learnt, 0);
	RT_EQUAL(counts.expired, 0);
	rt_rules_dump(fixture.ring, &dump);
	RT_EQUAL(dump.nr_exacts, flows / 2);
	for (i = 0; i < dump.nr_exacts; i++) {
		RT_EQUAL(dump.exacts[i].counts.flags, RINGCAP_COUNTS_LEARNT);
		RT_EQUAL(dump.exacts[i].rule.idle_s, 100000);
		RT_EQUAL(dump.exacts[i].counts.packets, 0);
	}
	rt_rules_dump_free(&dump);
	rt_rules_traffic(&fixture, &back, 0, flows);
	RT_EQUAL(rt_rules_filtered(&fixture), flows);
}

/*
 * Learnt rules expire when they are idle, and the rule that learns stays. Each packet is of one flow only, however slow
 * we are.
 */
RT_CASE(rules_learn_idle)
{
	const u32 flows = rt_scaled(400);
	struct rt_traffic traffic = { .flows = flows }, back = { .flows = flows, .reverse = true };
	struct rt_rules_counts counts;
	struct rt_fixture fixture;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_rules_learn(&fixture, 1);
	rt_rules_traffic(&fixture, &traffic, 0, flows);
	RT_EQUAL(rt_rules_filtered(&fixture), flows / 2);
	RT_EVENTUALLY((usleep(100000), rt_rules_counts(fixture.ring, &counts), !counts.nr_exact), 30000);
	RT_EQUAL(counts.expired, flows / 2);
	RT_EQUAL(counts.not_learnt, 0);
	RT_EQUAL(counts.nr_rules, 1);
	rt_rules_traffic(&fixture, &back, 0, 10);
	RT_EQUAL(rt_rules_filtered(&fixture), flows / 2 + 10);
	rt_rules_traffic(&fixture, &traffic, 0, 10);
	RT_EQUAL(rt_rules_filtered(&fixture), flows / 2 + 15);
	RT_EVENTUALLY((usleep(100000), rt_rules_counts(fixture.ring, &counts), !counts.nr_exact), 30000);
	RT_EQUAL(counts.expired, flows / 2 + 5);
}

/* ---- wildcard rules against a model ---- */

/* A packet as its fields; what it has not is 0 here and flagged. */
struct rt_probe {
	u8 smac[6], dmac[6];
	u16 ethertype, vlan_id, inner_vlan_id;
	u8 family;
	u8 saddr[16], daddr[16];
	u8 proto;
	bool has_ports;
	u16 sport, dport;
	u8 tcp_flags;
};

static u32 rt_put_be16(u8 *at, u32 value)
{
	at[0] = (u8)(value >> 8);
	at[1] = (u8)value;
	return 2;
}

static u32 rt_probe_build(const struct rt_probe *probe, u8 *bytes)
{
	u32 at = 12, l4;

	memset(bytes, 0, 128);
	memcpy(bytes, probe->dmac, 6);
	memcpy(bytes + 6, probe->smac, 6);
	if (probe->vlan_id) {
		at += rt_put_be16(bytes + at, probe->inner_vlan_id ? 0x88a8 : 0x8100);
		at += rt_put_be16(bytes + at, probe->vlan_id | 0xa000);
	}
	if (probe->inner_vlan_id) {
		at += rt_put_be16(bytes + at, 0x8100);
		at += rt_put_be16(bytes + at, probe->inner_vlan_id);
	}
	at += rt_put_be16(bytes + at, probe->ethertype);
	l4 = at + (probe->family == 4 ? 20 : 40);
	if (probe->family == 4) {
		bytes[at] = 0x45;
		rt_put_be16(bytes + at + 2, 60);
		if (!probe->has_ports && probe->proto != 1)
			rt_put_be16(bytes + at + 6, 0x2000);	/* the first of several fragments */
		bytes[at + 8] = 9;
		bytes[at + 9] = probe->proto;
		memcpy(bytes + at + 12, probe->saddr, 4);
		memcpy(bytes + at + 16, probe->daddr, 4);
	} else if (probe->family == 6) {
		bytes[at] = 0x60;
		bytes[at + 6] = probe->proto;
		memcpy(bytes + at + 8, probe->saddr, 16);
		memcpy(bytes + at + 24, probe->daddr, 16);
	}
	if (probe->family && probe->has_ports) {
		rt_put_be16(bytes + l4, probe->sport);
		rt_put_be16(bytes + l4 + 2, probe->dport);
		bytes[l4 + 13] = probe->tcp_flags;
	}
	return 120;
}

/* Values from small sets, so that rules and packets meet. */
static void rt_random_addr(u64 *seed, u8 family, u8 *addr)
{
	memset(addr, 0, 16);
	addr[0] = 10;
	addr[1] = (u8)(rt_random(seed) % 3);
	addr[3] = (u8)(rt_random(seed) % 4 * 64);
	if (family == 6) {
		addr[9] = (u8)(rt_random(seed) % 2);
		addr[15] = (u8)(rt_random(seed) % 4);
	}
}

static void rt_random_probe(u64 *seed, struct rt_probe *probe)
{
	static const u8 protos[] = { 6, 17, 132, 1 };
	u32 kind = rt_random(seed) % 10;

	memset(probe, 0, sizeof(*probe));
	probe->smac[0] = probe->dmac[0] = 2;
	probe->smac[5] = (u8)(rt_random(seed) % 3);
	probe->dmac[5] = (u8)(rt_random(seed) % 3);
	probe->vlan_id = (u16)(rt_random(seed) % 3);
	if (probe->vlan_id)
		probe->inner_vlan_id = (u16)(rt_random(seed) % 3);
	probe->ethertype = kind == 0 ? 0x88b5 : kind < 7 ? 0x0800 : 0x86dd;
	probe->family = kind == 0 ? 0 : kind < 7 ? 4 : 6;
	if (!probe->family)
		return;
	rt_random_addr(seed, probe->family, probe->saddr);
	rt_random_addr(seed, probe->family, probe->daddr);
	probe->proto = protos[rt_random(seed) % 4];
	probe->has_ports = probe->proto != 1 && (probe->family == 6 || rt_random(seed) % 8);
	if (!probe->has_ports)
		return;
	probe->sport = (u16)(rt_random(seed) % 4 * 1000 + rt_random(seed) % 8);
	probe->dport = (u16)(rt_random(seed) % 4 * 1000 + rt_random(seed) % 8);
	if (probe->proto == 6)
		probe->tcp_flags = (u8)rt_random(seed);
}

static void rt_random_range(u64 *seed, u16 range[2])
{
	u32 a = rt_random(seed) % 4100, b = a + rt_random(seed) % 1200;

	range[0] = (u16)a;
	range[1] = (u16)(rt_random(seed) % 3 ? a : b);
	if (rt_random(seed) % 3)
		range[0] = (u16)(a / 1000 * 1000), range[1] = (u16)(range[0] + rt_random(seed) % 8);
}

static void rt_random_rule(u64 *seed, u32 id, struct ringcap_rule *rule)
{
	/* Few sets of fields, as real rules have. */
	static const u32 shapes[] = {
		RINGCAP_MATCH_PROTO | RINGCAP_MATCH_DPORT,
		RINGCAP_MATCH_SADDR | RINGCAP_MATCH_DADDR,
		RINGCAP_MATCH_SADDR | RINGCAP_MATCH_PROTO | RINGCAP_MATCH_SPORT | RINGCAP_MATCH_DPORT,
		RINGCAP_MATCH_VLAN | RINGCAP_MATCH_INNER_VLAN,
		RINGCAP_MATCH_VLAN | RINGCAP_MATCH_DADDR,
		RINGCAP_MATCH_SMAC | RINGCAP_MATCH_ETHERTYPE,
		RINGCAP_MATCH_DMAC | RINGCAP_MATCH_SMAC | RINGCAP_MATCH_VLAN,
		RINGCAP_MATCH_TCP_FLAGS | RINGCAP_MATCH_DADDR,
		RINGCAP_MATCH_PROTO | RINGCAP_MATCH_VLAN,
	};
	static const u8 lens4[] = { 0, 16, 32 }, lens6[] = { 8, 72, 128 };
	static const u8 protos[] = { 6, 17, 132 };

	memset(rule, 0, sizeof(*rule));
	rule->id = id;
	rule->priority = rt_random(seed) % 4;	/* many ties */
	rule->fields = shapes[rt_random(seed) % (sizeof(shapes) / sizeof(shapes[0]))];
	rule->flags = rt_random(seed) % 3 ? 0 : RINGCAP_RULE_BOTH;
	rule->action = rt_random(seed) % 2 ? RINGCAP_ACTION_PASS : RINGCAP_ACTION_DROP;
	rule->family = rt_random(seed) % 3 ? 4 : 6;
	rule->splen = rule->family == 4 ? lens4[rt_random(seed) % 3] : lens6[rt_random(seed) % 3];
	rule->dplen = rule->family == 4 ? lens4[rt_random(seed) % 3] : lens6[rt_random(seed) % 3];
	rule->l4_proto = rule->fields & RINGCAP_MATCH_TCP_FLAGS ? 6 : protos[rt_random(seed) % 3];
	rule->tcp_mask = (u8)(rt_random(seed) & 0x12);
	rule->tcp_flags = (u8)(rt_random(seed) & rule->tcp_mask);
	rule->smac[0] = rule->dmac[0] = 2;
	rule->smac[5] = (u8)(rt_random(seed) % 3);
	rule->dmac[5] = (u8)(rt_random(seed) % 3);
	rule->ethertype = rt_random(seed) % 2 ? 0x88b5 : 0x86dd;
	rule->vlan_id = (u16)(rt_random(seed) % 3);
	rule->inner_vlan_id = (u16)(rt_random(seed) % 3);
	rt_random_range(seed, rule->sport);
	rt_random_range(seed, rule->dport);
	rt_random_addr(seed, rule->family, rule->saddr);
	rt_random_addr(seed, rule->family, rule->daddr);
}

static bool rt_same_prefix(const u8 *a, const u8 *b, u32 bits)
{
	u32 i;

	for (i = 0; i < bits; i++)
		if ((a[i / 8] ^ b[i / 8]) & 0x80 >> i % 8)
			return false;
	return true;
}

static bool rt_in_range(bool has, u16 port, const u16 range[2])
{
	return has && port >= range[0] && port <= range[1];
}

static bool rt_model_one_way(const struct ringcap_rule *rule, const struct rt_probe *probe)
{
	u32 fields = rule->fields;

	if ((fields & RINGCAP_MATCH_SMAC && memcmp(rule->smac, probe->smac, 6)) ||
	    (fields & RINGCAP_MATCH_DMAC && memcmp(rule->dmac, probe->dmac, 6)) ||
	    (fields & RINGCAP_MATCH_ETHERTYPE && rule->ethertype != probe->ethertype) ||
	    (fields & RINGCAP_MATCH_VLAN && rule->vlan_id != probe->vlan_id) ||
	    (fields & RINGCAP_MATCH_INNER_VLAN && rule->inner_vlan_id != probe->inner_vlan_id) ||
	    (fields & RINGCAP_MATCH_PROTO && (!probe->family || rule->l4_proto != probe->proto)))
		return false;
	if (fields & (RINGCAP_MATCH_SADDR | RINGCAP_MATCH_DADDR) && rule->family != probe->family)
		return false;
	return !(fields & RINGCAP_MATCH_SADDR && !rt_same_prefix(rule->saddr, probe->saddr, rule->splen)) &&
	       !(fields & RINGCAP_MATCH_DADDR && !rt_same_prefix(rule->daddr, probe->daddr, rule->dplen)) &&
	       !(fields & RINGCAP_MATCH_SPORT && !rt_in_range(probe->has_ports, probe->sport, rule->sport)) &&
	       !(fields & RINGCAP_MATCH_DPORT && !rt_in_range(probe->has_ports, probe->dport, rule->dport)) &&
	       !(fields & RINGCAP_MATCH_TCP_FLAGS && (probe->proto != 6 || !probe->has_ports ||
						     (probe->tcp_flags & rule->tcp_mask) != rule->tcp_flags));
}

static bool rt_model_matches(const struct ringcap_rule *rule, const struct rt_probe *probe)
{
	struct rt_probe back = *probe;

	if (rt_model_one_way(rule, probe))
		return true;
	memcpy(back.smac, probe->dmac, 6);
	memcpy(back.dmac, probe->smac, 6);
	memcpy(back.saddr, probe->daddr, 16);
	memcpy(back.daddr, probe->saddr, 16);
	back.sport = probe->dport;
	back.dport = probe->sport;
	return rule->flags & RINGCAP_RULE_BOTH && rt_model_one_way(rule, &back);
}

/* The number of the rule that decides, or @nr. */
static u32 rt_model_find(const struct ringcap_rule *rules, u32 nr, const struct rt_probe *probe)
{
	u32 i, best = nr;

	for (i = 0; i < nr; i++)
		if (rt_model_matches(&rules[i], probe) &&
		    (best == nr || rules[i].priority > rules[best].priority ||
		     (rules[i].priority == rules[best].priority && rules[i].id < rules[best].id)))
			best = i;
	return best;
}

#define RT_MODEL_RULES 300

/* Sends random packets. Each rule must have decided on those that a linear search assigns to it. */
static void rt_model_try(const struct rt_fixture *fixture, const struct ringcap_rule *rules, u32 nr, u32 packets, u64 *seed)
{
	u64 want[RT_MODEL_RULES + 1] = {}, before, dropped = 0, seen = rt_ring_seen(fixture->ring);
	struct rt_rules_dump dump;
	struct rt_probe probe;
	u32 i, found;
	u8 bytes[128];

	before = rt_rules_filtered(fixture);
	for (i = 0; i < packets; i++) {
		rt_random_probe(seed, &probe);
		found = rt_model_find(rules, nr, &probe);
		want[found]++;
		dropped += found == nr || rules[found].action == RINGCAP_ACTION_DROP;
		while (send(fixture->sender, bytes, rt_probe_build(&probe, bytes), 0) < 0)
			RT_CHECK(errno == ENOBUFS, "%m");
	}
	rt_ring_wait(fixture->ring, seen + packets);
	rt_rules_dump(fixture->ring, &dump);
	for (i = 0; i < nr; i++) {
		const struct ringcap_rule_state *state = rt_rules_dump_find(&dump, rules[i].id);

		RT_CHECK(!memcmp(&state->rule, &rules[i], sizeof(rules[i])), "rule %u is another", rules[i].id);
		RT_CHECK(state->counts.packets == want[i], "rule %u: fields %#x, priority %u, %llu packets, %llu expected",
			 rules[i].id, rules[i].fields, rules[i].priority, (unsigned long long)state->counts.packets,
			 (unsigned long long)want[i]);
		RT_EQUAL(state->counts.bytes, 120 * want[i]);
	}
	RT_EQUAL(rt_rules_filtered(fixture), before + dropped);
	rt_rules_dump_free(&dump);
}

RT_CASE(rules_model)
{
	static struct ringcap_rule rules[RT_MODEL_RULES];
	static const u32 sizes[] = { 1, 5, 20, 60, RT_MODEL_RULES };
	const u32 packets = rt_scaled(4000);
	struct rt_rules_counts counts;
	struct rt_fixture fixture;
	u32 round, i, nr, tries = 0;
	u64 seed = 1;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	for (round = 0; round < 10; round++) {
		nr = sizes[round % 5];
		for (i = 0; i < nr; i++)
			rt_random_rule(&seed, 1 + (i * 7919) % 1000, &rules[i]);
		RT_EQUAL(rt_rules_begin(fixture.ring, &rt_drop_rest), 0);
		RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULES_ADD, fixture.ring, NULL, 0, rules, nr), 0);
		if (rt_rules_commit(fixture.ring)) {
			/* Ranges of ports in both fields are many shapes. */
			RT_CHECK(strstr(rt_reason, "shapes"), "%s", rt_reason);
			RT_EQUAL(nr, RT_MODEL_RULES);
			continue;
		}
		tries++;
		rt_model_try(&fixture, rules, nr, packets, &seed);
		rt_rules_counts(fixture.ring, &counts);
		RT_EQUAL(counts.nr_rules, nr);
		RT_CHECK(counts.nr_shapes > 0 && counts.nr_shapes <= RINGCAP_SHAPES_MAX, "%u shapes", counts.nr_shapes);
	}
	RT_CHECK(tries >= 8, "%u sets tried", tries);
}

/* ---- sets under traffic ---- */

struct rt_stream {
	const struct rt_fixture *fixture;
	const struct rt_traffic *traffic;
	u32 cpu;
	u64 sent;
	bool stop;
};

static void *rt_stream_run(void *arg)
{
	struct rt_stream *stream = arg;

	rt_pin(stream->cpu);
	while (!__atomic_load_n(&stream->stop, __ATOMIC_RELAXED)) {
		rt_send(stream->fixture->sender, stream->traffic, 0, 50);
		stream->sent += 50;
		sched_yield();
	}
	return NULL;
}

/*
 * Two sets send everything to a queue, each to its own. They do this by an exact rule, a wildcard rule, and two that
 * depend on each other. No packet sees a mixture, which would drop it or send it to the third queue.
 */
RT_CASE(rules_swap)
{
	const u32 swaps = rt_rounds(10000, 1000);
	struct rt_traffic traffic = { .flows = 10 };
	struct rt_stream stream = { .traffic = &traffic, .cpu = 1 };
	struct rt_queue_counts queue[3];
	struct ringcap_exact exacts[2];
	struct ringcap_rule rules[4];
	struct rt_fixture fixture;
	struct rt_ring_counts counts;
	struct rt_rules set = rt_drop_rest;
	pthread_t thread;
	u32 i, q;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .queues = 3 });
	stream.fixture = &fixture;
	for (q = 0; q < 3; q++)
		set.targets[q] = (struct rt_target){ .cluster = fixture.cluster, .queue = q };
	for (i = 0; i < 2; i++) {
		exacts[i] = rt_exact(3, RINGCAP_ACTION_QUEUE, i);
		exacts[i].target = (u16)i;
		rules[2 * i] = (struct ringcap_rule){ .id = 1, .priority = 1, .fields = RINGCAP_MATCH_DPORT,
			.dport = { (u16)(53 + i), (u16)(53 + i) }, .action = RINGCAP_ACTION_QUEUE, .target = (u16)i };
		rules[2 * i + 1] = (struct ringcap_rule){ .id = 2, .fields = RINGCAP_MATCH_DPORT, .dport = { 53, 54 },
			.action = RINGCAP_ACTION_QUEUE, .target = (u16)i };
	}
	rt_rules_set(fixture.ring, &set, exacts, 1, rules, 2);
	RT_CHECK(!pthread_create(&thread, NULL, rt_stream_run, &stream), "no thread");
	for (i = 1; i <= swaps; i++) {
		set.generation = i;
		rt_rules_set(fixture.ring, &set, &exacts[i % 2], 1, &rules[i % 2 * 2], 2);
	}
	__atomic_store_n(&stream.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	rt_ring_wait(fixture.ring, stream.sent);
	rt_ring_counts(fixture.ring, &counts);
	for (q = 0; q < 3; q++)
		rt_queue_counts(fixture.cluster, q, &queue[q]);
	RT_EQUAL(counts.seen, stream.sent);
	RT_EQUAL(counts.directed, stream.sent);
	RT_EQUAL(queue[0].dropped[RINGCAP_DROP_UNATTENDED] + queue[1].dropped[RINGCAP_DROP_UNATTENDED], stream.sent);
	RT_CHECK(queue[0].dropped[RINGCAP_DROP_UNATTENDED] && queue[1].dropped[RINGCAP_DROP_UNATTENDED], "one set only");
	RT_EQUAL(queue[2].dropped[RINGCAP_DROP_UNATTENDED], 0);
	printf("# %u swaps, %llu packets\n", swaps, (unsigned long long)stream.sent);
}

/* Counters are exact though two CPUs count the same flows. */
RT_CASE(rules_smp)
{
	struct ringcap_rule rule = { .id = 1, .fields = RINGCAP_MATCH_PROTO, .l4_proto = 17 };
	struct rt_traffic traffic = { .flows = 10 };
	struct rt_stream streams[2];
	struct ringcap_exact exacts[5];
	struct rt_rules_dump dump;
	struct rt_fixture fixture;
	pthread_t threads[2];
	u64 sent;
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	for (i = 0; i < 5; i++)
		exacts[i] = rt_exact(i, RINGCAP_ACTION_DROP, i % 2);
	rt_rules_set(fixture.ring, &rt_drop_rest, exacts, 5, &rule, 1);
	for (i = 0; i < 2; i++) {
		streams[i] = (struct rt_stream){ .fixture = &fixture, .traffic = &traffic, .cpu = i };
		RT_CHECK(!pthread_create(&threads[i], NULL, rt_stream_run, &streams[i]), "no thread");
	}
	sleep(2);
	for (i = 0; i < 2; i++) {
		RT_EVENTUALLY(__atomic_load_n(&streams[i].sent, __ATOMIC_RELAXED), 10000);
		__atomic_store_n(&streams[i].stop, true, __ATOMIC_RELAXED);
		pthread_join(threads[i], NULL);
	}
	sent = streams[0].sent + streams[1].sent;
	rt_ring_wait(fixture.ring, sent);
	rt_rules_dump(fixture.ring, &dump);
	for (i = 0; i < 5; i++)
		RT_EQUAL(rt_rules_find_exact(&dump, &exacts[i])->counts.packets, sent / 10);
	RT_EQUAL(rt_rules_dump_find(&dump, 1)->counts.packets, sent / 2);
	RT_EQUAL(rt_rules_dump_find(&dump, 1)->counts.bytes, sent / 2 * 60);
	RT_EQUAL(rt_rules_filtered(&fixture), sent / 2);
	rt_rules_dump_free(&dump);
}

/* ---- size ---- */

static void rt_many_exacts(struct ringcap_exact *rules, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		rules[i] = rt_exact(0, RINGCAP_ACTION_DROP, i % 2);
		/* Addresses that the traffic has not, but of the last rule. */
		if (i < nr - 1) {
			rules[i].saddr[0] = 11;
			memcpy(rules[i].saddr + 1, &i, 3);
		}
	}
}

/* As many exact rules as there may be, and not one more; all of them in the dump. */
RT_CASE(rules_million)
{
	const bool small = rt_scaled(4) < 4;
	const u32 nr = small ? 50000 : RINGCAP_EXACT_MAX;
	struct rt_traffic traffic = { .flows = 2 };
	struct ringcap_exact *rules = malloc(nr * sizeof(*rules)), extra = rt_exact(1, RINGCAP_ACTION_DROP, false);
	struct rt_rules_counts counts;
	struct rt_rules_dump dump;
	struct rt_fixture fixture;
	u64 start, hash = 0;
	u32 i;

	RT_CHECK(rules, "no memory");
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_many_exacts(rules, nr);
	start = rt_now();
	rt_rules_set(fixture.ring, &(struct rt_rules){}, rules, nr, NULL, 0);
	rt_rules_counts(fixture.ring, &counts);
	RT_EQUAL(counts.nr_exact, nr);
	printf("# %u rules in %llu ms, %llu bytes a rule\n", nr, (unsigned long long)((rt_now() - start) / 1000000),
	       (unsigned long long)(counts.memory / nr));
	rt_rules_traffic(&fixture, &traffic, 0, 100);
	RT_EQUAL(rt_rules_filtered(&fixture), 50);
	if (!small) {
		RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_NEW, fixture.ring, &extra, 1, NULL, 0), -E2BIG);
		RT_CHECK(strstr(rt_reason, "1048576"), "%s", rt_reason);
	}
	start = rt_now();
	rt_rules_dump(fixture.ring, &dump);
	RT_EQUAL(dump.nr_exacts, nr);
	for (i = 0; i < nr; i++) {
		hash += dump.exacts[i].rule.saddr[1] + 256U * dump.exacts[i].rule.saddr[2] + 65536U * dump.exacts[i].rule.saddr[3];
		hash -= rules[i].saddr[1] + 256U * rules[i].saddr[2] + 65536U * rules[i].saddr[3];
	}
	RT_EQUAL(hash, 0);
	printf("# dumped in %llu ms\n", (unsigned long long)((rt_now() - start) / 1000000));
	rt_rules_dump_free(&dump);
	free(rules);
}

/* 10,000 rules of 8 shapes. */
RT_CASE(rules_ten_thousand)
{
	const u32 nr = rt_scaled(10000);
	struct ringcap_rule *rules = calloc(nr, sizeof(*rules));
	struct rt_traffic traffic = { .flows = 2 };
	struct rt_rules_counts counts;
	struct rt_rules_dump dump;
	struct rt_fixture fixture;
	u64 start;
	u32 i;

	RT_CHECK(rules, "no memory");
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	for (i = 0; i < nr; i++) {
		rules[i] = (struct ringcap_rule){ .id = i + 1, .priority = i, .family = 4, .splen = (u8)(25 + i % 8),
			.fields = RINGCAP_MATCH_SADDR | RINGCAP_MATCH_DPORT, .dport = { (u16)i, (u16)i },
			.action = RINGCAP_ACTION_DROP };
		memcpy(rules[i].saddr, &i, 4);
		rules[i].saddr[3] = 11;
	}
	start = rt_now();
	rt_rules_set(fixture.ring, &(struct rt_rules){}, NULL, 0, rules, nr);
	rt_rules_counts(fixture.ring, &counts);
	printf("# %u rules in %llu ms, %llu bytes a rule\n", nr, (unsigned long long)((rt_now() - start) / 1000000),
	       (unsigned long long)(counts.memory / nr));
	RT_EQUAL(counts.nr_rules, nr);
	RT_EQUAL(counts.nr_shapes, 8);
	rt_rules_traffic(&fixture, &traffic, 0, 100);
	RT_EQUAL(rt_rules_filtered(&fixture), 0);
	rt_rules_dump(fixture.ring, &dump);
	RT_EQUAL(dump.nr_rules, nr);
	rt_rules_dump_free(&dump);
	free(rules);
}

/* ---- what is refused, and what is forgotten ---- */

static void rt_expect_refused(const struct rt_fixture *fixture, const struct ringcap_exact *exact,
			      const struct ringcap_rule *rule, const char *why)
{
	int err = rt_rules_send(RINGCAP_CMD_RULES_ADD, fixture->ring, exact, !!exact, rule, !!rule);

	RT_CHECK(err == -EINVAL, "%d, not refused: %s", err, why);
	RT_CHECK(strstr(rt_reason, why), "the reason is '%s', not '%s'", rt_reason, why);
}

RT_CASE(rules_refused)
{
	const struct ringcap_exact good = rt_exact(1, RINGCAP_ACTION_PASS, false);
	const struct ringcap_rule fine = { .id = 1, .fields = RINGCAP_MATCH_PROTO, .l4_proto = 6 };
	struct ringcap_rule twice[2] = { fine, fine };
	struct rt_rules set = {};
	struct rt_fixture fixture;
	struct rt_message message;
	struct ringcap_exact e;
	struct ringcap_rule r;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .queues = 2 });
	RT_EQUAL(rt_rules_commit(fixture.ring), -ENOENT);
	RT_CHECK(strstr(rt_reason, "RULES_BEGIN"), "%s", rt_reason);
	RT_EQUAL(rt_rules_begin("nobody", &set), -ENOENT);
	set.targets[0] = (struct rt_target){ .cluster = fixture.cluster, .queue = 2 };
	RT_EQUAL(rt_rules_begin(fixture.ring, &set), -ENOENT);
	set.targets[0] = (struct rt_target){ .ifindex = 12345 };
	RT_CHECK(rt_rules_begin(fixture.ring, &set) < 0, "no such interface");
	set.targets[0] = (struct rt_target){ .cluster = fixture.cluster, .queue = 1 };
	set.default_action = RINGCAP_ACTION_REFLECT;
	RT_EQUAL(rt_rules_begin(fixture.ring, &set), -EINVAL);
	set.default_action = RINGCAP_ACTION_LEARN;
	RT_EQUAL(rt_rules_begin(fixture.ring, &set), -EINVAL);
	set.default_action = RINGCAP_ACTION_PASS;
	set.targets[1] = (struct rt_target){ .ifindex = fixture.ifindex };
	RT_EQUAL(rt_rules_begin(fixture.ring, &set), 0);

#define RT_EXACT_REFUSED(change, why) do { e = good; change; rt_expect_refused(&fixture, &e, NULL, why); } while (0)
#define RT_RULE_REFUSED(change, why) do { r = fine; change; rt_expect_refused(&fixture, NULL, &r, why); } while (0)
	RT_EXACT_REFUSED(e.l3_proto = 0x0806, "l3_proto");
	RT_EXACT_REFUSED(e.saddr[4] = 1, "IPv4 address");
	RT_EXACT_REFUSED(e.vlan_id = 4096, "VLAN");
	RT_EXACT_REFUSED(e.l4_proto = 1, "ports");
	RT_EXACT_REFUSED(e.action = RINGCAP_ACTION_LEARN, "learn");
	RT_EXACT_REFUSED(e.action = 77, "action");
	RT_EXACT_REFUSED(e.target = 1, "target");
	RT_EXACT_REFUSED((e.action = RINGCAP_ACTION_QUEUE, e.target = 2), "target");
	RT_EXACT_REFUSED((e.action = RINGCAP_ACTION_QUEUE, e.target = 1), "a queue");
	RT_EXACT_REFUSED(e.action = RINGCAP_ACTION_REFLECT, "interface");
	RT_EXACT_REFUSED(e.idle_s = 1000001, "1000000");
	RT_RULE_REFUSED(r.id = 0, "id");
	RT_RULE_REFUSED(r.fields |= 1U << 20, "fields");
	RT_RULE_REFUSED(r.flags = 2, "flags");
	RT_RULE_REFUSED(r.resv3[1] = 1, "reserved");
	RT_RULE_REFUSED(r.fields |= RINGCAP_MATCH_SADDR, "family");
	RT_RULE_REFUSED((r.fields |= RINGCAP_MATCH_DADDR, r.family = 4, r.dplen = 33), "prefix");
	RT_RULE_REFUSED((r.fields |= RINGCAP_MATCH_INNER_SADDR, r.inner_family = 6, r.inner_splen = 129), "prefix");
	RT_RULE_REFUSED((r.fields |= RINGCAP_MATCH_SPORT, r.sport[0] = 9, r.sport[1] = 8), "range");
	RT_RULE_REFUSED((r.fields |= RINGCAP_MATCH_DPORT, r.l4_proto = 1), "never");
	RT_RULE_REFUSED((r.fields |= RINGCAP_MATCH_TCP_FLAGS, r.tcp_flags = 1), "never");
	RT_RULE_REFUSED((r.fields |= RINGCAP_MATCH_TCP_FLAGS, r.l4_proto = 17), "never");
	RT_RULE_REFUSED(r.fields |= RINGCAP_MATCH_ETHERTYPE, "ethertype");
	RT_RULE_REFUSED((r.fields |= RINGCAP_MATCH_VLAN, r.vlan_id = 4096), "VLAN");
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULES_ADD, fixture.ring, &good, 1, twice, 2), -EEXIST);

	rt_message_init(&message, RINGCAP_CMD_RULES_ADD, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, fixture.ring);
	rt_message_put(&message, RINGCAP_A_EXACT, &good, sizeof(good) - 1);
	RT_EQUAL(rt_call(&message, NULL, NULL), -EINVAL);

	/* Nothing of all this is in the set, which lives on. */
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULES_ADD, fixture.ring, &good, 1, &fine, 1), 0);
	RT_EQUAL(rt_rules_commit(fixture.ring), 0);
	{
		struct rt_rules_counts counts;

		rt_rules_counts(fixture.ring, &counts);
		RT_EQUAL(counts.nr_exact, 1);
		RT_EQUAL(counts.nr_rules, 1);
	}
}

/* More shapes than there may be are refused with the reason, and the active set stays. */
RT_CASE(rules_shapes)
{
	static struct ringcap_rule rules[300];
	struct rt_rules_counts counts;
	struct rt_fixture fixture;
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	for (i = 0; i < 300; i++)
		rules[i] = (struct ringcap_rule){ .id = i + 1, .family = 6, .splen = (u8)(i % 128), .dplen = (u8)(i / 128),
			.fields = RINGCAP_MATCH_SADDR | RINGCAP_MATCH_DADDR };
	rt_rules_set(fixture.ring, &(struct rt_rules){ .generation = 1 }, NULL, 0, rules, 256);
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_NEW, fixture.ring, NULL, 0, rules + 256, 1), -E2BIG);
	RT_CHECK(strstr(rt_reason, "shapes"), "%s", rt_reason);
	rt_rules_counts(fixture.ring, &counts);
	RT_EQUAL(counts.nr_rules, 256);
	RT_EQUAL(counts.nr_shapes, 256);
	RT_EQUAL(rt_rules_begin(fixture.ring, &(struct rt_rules){ .generation = 2 }), 0);
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULES_ADD, fixture.ring, NULL, 0, rules, 300), 0);
	RT_EQUAL(rt_rules_commit(fixture.ring), -E2BIG);
	rt_rules_counts(fixture.ring, &counts);
	RT_EQUAL(counts.generation, 1);
}

static void rt_build_and_leave(void *arg)
{
	const struct rt_fixture *fixture = arg;
	struct ringcap_exact rule = rt_exact(1, RINGCAP_ACTION_DROP, false);
	struct rt_rules set = { .targets = { { .cluster = fixture->cluster, .queue = 0 } } };

	rt_control_open();
	RT_EQUAL(rt_rules_begin(fixture->ring, &set), 0);
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULES_ADD, fixture->ring, &rule, 1, NULL, 0), 0);
}

/*
 * A set under construction belongs to its socket. Others don't see it. ABORT, another BEGIN, and the end of the socket
 * or the ring discard it.
 */
RT_CASE(rules_built)
{
	struct rt_rules set = { .generation = 5 };
	struct rt_rules_counts counts;
	struct rt_fixture fixture;
	char other[64];
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	snprintf(other, sizeof(other), "%s-other", fixture.cluster);
	RT_EQUAL(rt_cluster_set(&(struct rt_cluster){ .name = other }), 0);
	set.targets[0] = (struct rt_target){ .cluster = other };
	RT_EQUAL(rt_rules_begin(fixture.ring, &set), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, other), -EBUSY);
	RT_CHECK(strstr(rt_reason, "being built"), "%s", rt_reason);
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULES_ABORT, fixture.ring, NULL, 0, NULL, 0), 0);
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULES_ABORT, fixture.ring, NULL, 0, NULL, 0), -ENOENT);
	for (i = 0; i < 100; i++)
		RT_EQUAL(rt_rules_begin(fixture.ring, &set), 0);
	/* Another socket, in another process too. */
	rt_control_open();
	RT_EQUAL(rt_rules_commit(fixture.ring), -ENOENT);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, other), 0);
	for (i = 0; i < 3; i++)
		RT_EQUAL(rt_child(rt_build_and_leave, &fixture), 0);
	RT_EQUAL(rt_rules_begin(fixture.ring, &(struct rt_rules){}), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
	RT_EQUAL(rt_rules_commit(fixture.ring), -ENOENT);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
	RT_EQUAL(rt_rules_commit(fixture.ring), -ENOENT);
	rt_rules_counts(fixture.ring, &counts);
	RT_CHECK(!counts.in_force, "a set is active");
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, fixture.cluster), 0);
}
