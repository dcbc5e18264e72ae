// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits: on the number of rings and learnt flows, for administrators of a namespace only; on learnt flows and lanes by
 * memory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "rules.h"

static void rt_limit_set(const char *name, const char *value)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/module/ringcap/parameters/%s", name);
	RT_CHECK(rt_write_file(path, value), "%s: %m", path);
}

/* Cases share the module: each begins, and ends, with the defaults. */
static void rt_limit_reset(void)
{
	rt_limit_set("max_rings", "4096");
	rt_limit_set("max_rings_netns", "256");
	rt_limit_set("max_learnt", "16777216");
	rt_limit_set("max_learnt_netns", "1048576");
}

/* Otherwise packets that the stack sends by itself would be counted too. */
static void rt_limit_quiet(void)
{
	RT_CHECK(rt_write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"), "%m");
}

/* Into the machine's own network namespace. */
static void rt_limit_go_home(void)
{
	int home = open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC);

	RT_CHECK(home >= 0 && !setns(home, CLONE_NEWNET), "%m");
	close(home);
	rt_limit_quiet();
	rt_control_open();
}

static int rt_limit_ring(u32 number)
{
	struct rt_ring ring = { .taps = { { .ifindex = 1, .direction = RINGCAP_DIRECTION_RX } } };
	char name[32];

	snprintf(name, sizeof(name), "limit%u", number);
	ring.name = name;
	return rt_ring_set(&ring);
}

static int rt_limit_delete(u32 number)
{
	char name[32];

	snprintf(name, sizeof(name), "limit%u", number);
	return rt_delete(RINGCAP_CMD_RING_DEL, name);
}

/* A user who became administrator of a network namespace can make as many rings as a namespace may have. */
static void rt_limit_user(void *unused)
{
	u32 number;

	(void)unused;
	RT_CHECK(!unshare(CLONE_NEWUSER | CLONE_NEWNET), "%m");
	rt_control_open();
	/* Others' rings may go with their namespaces still. */
	for (number = 0; number < 10; number++)
		RT_EVENTUALLY(!rt_limit_ring(number), 10000);
	RT_EQUAL(rt_limit_ring(10), -EDQUOT);
	RT_CHECK(strstr(rt_reason, "max_rings_netns") && strstr(rt_reason, "delete some"), "%s", rt_reason);
	/* Those that are there can be changed. */
	RT_EQUAL(rt_limit_ring(9), 0);
	RT_EQUAL(rt_limit_delete(9), 0);
	RT_EQUAL(rt_limit_ring(10), 0);
	RT_EQUAL(rt_limit_ring(9), -EDQUOT);
}

/* Many of them together get half of the machine's rings; the other half is reserved for the machine's administrator. */
RT_CASE(limit_rings)
{
	u32 number;

	rt_limit_reset();
	rt_limit_set("max_rings_netns", "10");
	RT_EQUAL(rt_child(rt_limit_user, NULL), 0);
	rt_control_open();
	rt_limit_set("max_rings", "8");
	for (number = 0; number < 4; number++)
		RT_EVENTUALLY(!rt_limit_ring(number), 10000);
	RT_EQUAL(rt_limit_ring(4), -ENOSPC);
	RT_CHECK(strstr(rt_reason, "max_rings "), "%s", rt_reason);
	rt_limit_go_home();
	for (number = 0; number < 4; number++)
		RT_EVENTUALLY(!rt_limit_ring(number), 10000);
	RT_EQUAL(rt_limit_ring(4), -ENOSPC);
	for (number = 0; number < 4; number++)
		RT_EQUAL(rt_limit_delete(number), 0);
	rt_limit_reset();
}

/* ---- what is learnt ---- */

/* A ring over vb that learns, without a cluster: only the machine's administrator may make those. */
static void rt_limit_learn(struct rt_fixture *fixture, u32 idle_s)
{
	/* Excludes packets that the stack itself sends on a new interface. */
	struct ringcap_rule rule = { .id = 1, .fields = RINGCAP_MATCH_PROTO, .l4_proto = 17,
				     .action = RINGCAP_ACTION_LEARN, .idle_s = idle_s };
	struct rt_ring ring = { .name = fixture->ring, .taps = { { fixture->ifindex, RINGCAP_DIRECTION_RX } } };

	RT_CHECK(!rt_ring_set(&ring), "%s", rt_reason);
	rt_rules_set(fixture->ring, &(struct rt_rules){}, NULL, 0, &rule, 1);
}

/* Packets of @count flows, from number @from on, all of which rings have seen. */
static void rt_limit_traffic(const struct rt_fixture *fixture, u32 from, u32 count)
{
	struct rt_traffic traffic = { .flows = 1000000 };
	u64 before = rt_ring_seen(fixture->ring);

	rt_send(fixture->sender, &traffic, from, count);
	rt_ring_wait(fixture->ring, before + count);
}

/* Checks how many flows were learnt, and how many were not for lack of room. */
static void rt_limit_check(const struct rt_fixture *fixture, u32 learnt, u64 not_learnt)
{
	struct rt_rules_counts counts;

	rt_rules_counts(fixture->ring, &counts);
	RT_EQUAL(counts.nr_exact, learnt);
	RT_EQUAL(counts.not_learnt, not_learnt);
}

static void rt_limit_learner(void *unused)
{
	struct ringcap_exact known = rt_exact(7, RINGCAP_ACTION_PASS, false);
	struct rt_rules_counts counts;
	struct rt_fixture fixture;
	u32 from;

	(void)unused;
	RT_CHECK(!unshare(CLONE_NEWUSER | CLONE_NEWNET), "%m");
	rt_limit_quiet();
	rt_fixture_open_devices(&fixture);
	rt_limit_learn(&fixture, 0);
	rt_limit_traffic(&fixture, 0, 150);
	rt_limit_check(&fixture, 100, 50);
	/* A rule that a request makes does not count as learnt any more. */
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_NEW, fixture.ring, &known, 1, NULL, 0), 0);
	rt_limit_traffic(&fixture, 150, 2);
	rt_limit_check(&fixture, 101, 51);
	/* One that is taken out makes room; another set begins with none. */
	known = rt_exact(8, RINGCAP_ACTION_PASS, false);
	RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_DEL, fixture.ring, &known, 1, NULL, 0), 0);
	rt_limit_traffic(&fixture, 200, 2);
	rt_limit_check(&fixture, 101, 52);
	rt_limit_learn(&fixture, 100000);
	rt_limit_traffic(&fixture, 300, 101);
	rt_limit_check(&fixture, 100, 53);
	/* As do those that are idle. */
	rt_limit_learn(&fixture, 1);
	for (from = 500; from < 800; from += 100) {
		rt_limit_traffic(&fixture, from, 100);
		RT_EVENTUALLY((usleep(100000), rt_rules_counts(fixture.ring, &counts), !counts.nr_exact), 20000);
		RT_EQUAL(counts.not_learnt, 53);
	}
}

/* The flows of a namespace's administrator, and those of the machine's own. */
RT_CASE(limit_learnt)
{
	struct rt_rules_counts counts;
	struct rt_fixture fixture;
	u32 sent = 150;

	rt_limit_reset();
	rt_limit_set("max_learnt_netns", "100");
	RT_EQUAL(rt_child(rt_limit_learner, NULL), 0);
	rt_limit_set("max_learnt", "300");
	rt_limit_go_home();
	rt_fixture_open_devices(&fixture);
	rt_limit_learn(&fixture, 0);
	rt_limit_traffic(&fixture, 0, 150);
	rt_limit_check(&fixture, 150, 0);
	/* All of the limit when the other namespace is gone. */
	do {
		rt_limit_traffic(&fixture, sent, 10);
		sent += 10;
		rt_rules_counts(fixture.ring, &counts);
		RT_EQUAL(counts.nr_exact + counts.not_learnt, sent);
	} while (counts.nr_exact < 300 && sent < 100000);
	rt_limit_traffic(&fixture, sent, 10);
	rt_limit_check(&fixture, 300, sent + 10 - 300);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
	rt_link_delete("va");
	rt_limit_reset();
}

/* ---- memory ---- */

#define RT_GROUPS "/tmp/cgroup"

static u64 rt_group_memory(void)
{
	unsigned long long bytes;
	FILE *file = fopen(RT_GROUPS "/ring/memory.current", "r");

	RT_CHECK(file && fscanf(file, "%llu", &bytes) == 1, "%m");
	fclose(file);
	return bytes;
}

/*
 * If there are memory cgroups, makes one for the objects that this process makes from now on. rt_groups_leave leaves
 * it.
 */
static void rt_groups_enter(void)
{
	char text[32];

	RT_CHECK((!mkdir("/tmp", 0755) || errno == EEXIST) && (!mkdir(RT_GROUPS, 0755) || errno == EEXIST), "%m");
	if (mount("cgroup2", RT_GROUPS, "cgroup2", 0, NULL) || !rt_write_file(RT_GROUPS "/cgroup.subtree_control", "+memory"))
		rt_skip("this kernel has no memory cgroups: %m");
	RT_CHECK(!mkdir(RT_GROUPS "/ring", 0755) || errno == EEXIST, "%m");
	snprintf(text, sizeof(text), "%d", getpid());
	RT_CHECK(rt_write_file(RT_GROUPS "/ring/cgroup.procs", text), "%m");
}

static void rt_groups_leave(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%d", getpid());
	RT_CHECK(rt_write_file(RT_GROUPS "/cgroup.procs", text), "%m");
}

/* Allows the group this many more @bytes. */
static void rt_group_limit(u64 bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)(rt_group_memory() + bytes));
	RT_CHECK(rt_write_file(RT_GROUPS "/ring/memory.max", text), "%m");
}

/* How often the group reached its limit. */
static u64 rt_group_met_limit(void)
{
	return rt_proc_number(RT_GROUPS "/ring/memory.events", "max ");
}

/* The flows that a ring learns from others' packets are charged to the ring's maker, and stop at its memory limit. */
RT_CASE(limit_memory)
{
	const u32 count = rt_scaled(20000);
	struct rt_rules_counts counts;
	struct rt_fixture fixture;
	u64 before;

	rt_limit_reset();
	rt_fixture_open_devices(&fixture);
	rt_groups_enter();
	rt_limit_learn(&fixture, 0);
	rt_groups_leave();
	before = rt_group_memory();
	rt_limit_traffic(&fixture, 0, count);
	rt_limit_check(&fixture, count, 0);
	RT_CHECK(rt_group_memory() >= before + count * 80ULL, "%llu bytes for %u flows",
		 (unsigned long long)(rt_group_memory() - before), count);
	/* Room for a part of the flows, whatever of up to 64 pages a CPU was charged ahead. */
	rt_group_limit(count * 20ULL);
	rt_limit_traffic(&fixture, count, count);
	rt_rules_counts(fixture.ring, &counts);
	RT_CHECK(counts.not_learnt && counts.nr_exact > count, "%u learnt, %llu not", counts.nr_exact,
		 (unsigned long long)counts.not_learnt);
	RT_EQUAL(counts.nr_exact + counts.not_learnt, 2 * count);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
	RT_CHECK(!rmdir(RT_GROUPS "/ring") && !umount(RT_GROUPS), "%m");
}

/*
 * A queue that gets no memory for another lane continues with its lanes, and does not fill its group again and again.
 */
RT_CASE(limit_memory_of_lanes)
{
	struct rt_traffic traffic = { .flows = 5 };
	u64 deadline = rt_now() + RT_PATIENCE_NS, met, since;
	struct rt_receiver receiver;
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	struct rt_queue queue;
	u32 from;

	rt_groups_enter();
	rt_limit_set("lane_idle_ms", "1");
	rt_fixture_open(&fixture, &(struct rt_cluster){ .lanes = 2 });
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_groups_leave();
	rt_group_limit(RT_LANE_SIZE / 2);
	met = rt_group_met_limit();
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 1 << 20);
	for (from = 0; rt_group_met_limit() == met; from += 8) {
		rt_exchange(fixture.sender, &traffic, from, 8, &queue, 1, &receiver);
		RT_CHECK(rt_now() < deadline, "nothing wants another lane");
	}
	usleep(100000);
	since = rt_now();
	met = rt_group_met_limit();
	rt_exchange(fixture.sender, &traffic, from, 4096, &queue, 1, &receiver);
	RT_CHECK(rt_group_met_limit() == met || rt_now() - since > 5000000000ULL, "the limit was met %llu times more",
		 (unsigned long long)(rt_group_met_limit() - met));
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.lanes, 1);
	rt_fixture_check(&fixture, from + 4096, 0, from + 4096, 0, 0);
	rt_queue_close(&queue);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, fixture.cluster), 0);
	RT_CHECK(!rmdir(RT_GROUPS "/ring") && !umount(RT_GROUPS), "%m");
	rt_limit_set("lane_idle_ms", "1000");
}
