// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "rings.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent.h"
#include "control.h"
#include "filter.h"
#include "producers.h"
#include "readers.h"
#include "rules.h"

#define RING	"bench-ring"
#define CLUSTER	"bench"
#define MAX_LEARNT	(16U << 20)	/* the module's default */
#define IN_LINE_BYTES	(4U << 20)	/* of a queue in line, the most that it can have */

static struct rt_message message;

/* The harness of kmod/tests needs this function. */
void rt_fail(const char *file, int line, const char *what, const char *format, ...)
{
	printf("%s:%d: %s: %s\n", file, line, what, format);
	exit(1);
}

static void begin(u8 command, const char *name)
{
	rt_message_init(&message, command, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
}

static void call(const char *what)
{
	int err = rt_call(&message, NULL, NULL);

	if (err)
		fail_with(what, rt_reason[0] ? rt_reason : strerror(-err));
}

/* As an agent does: the queue's only lane has all of the memory, and each packet wakes the consumer. */
static void put_in_line(void)
{
	rt_message_put_u32(&message, RINGCAP_A_LANE_SIZE, IN_LINE_BYTES);
	rt_message_put_u32(&message, RINGCAP_A_TIMEOUT_US, 0);
	rt_message_put_u32(&message, RINGCAP_A_INLINE, 1U << RINGCAP_PAST_UNATTENDED);
}

static void put_lanes(void)
{
	/* A lane for each producer, and the shared lane. */
	rt_message_put_u32(&message, RINGCAP_A_LANES, nr_producers + 1);
	rt_message_put_u32(&message, RINGCAP_A_LANE_SIZE, reader_memory / nr_producers);
	rt_message_put_u32(&message, RINGCAP_A_WATERMARK, WAKE_BYTES);
	rt_message_put_u32(&message, RINGCAP_A_TIMEOUT_US, WAKE_MS * 1000);
}

static void make_cluster(const struct ring_shape *shape, unsigned int queues)
{
	begin(RINGCAP_CMD_CLUSTER_SET, CLUSTER);
	rt_message_put_u32(&message, RINGCAP_A_QUEUES, queues);
	if (shape->peer)
		put_in_line();
	else
		put_lanes();
	if (shape->shunt)
		rt_message_put_u32(&message, RINGCAP_A_SHUNT_QUOTA, shape->shunt);
	if (shape->per_rx_queue)
		rt_message_put_u32(&message, RINGCAP_A_BALANCE, RINGCAP_BALANCE_RX_QUEUE);
	call("the cluster");
}

static void put_tap(const char *device, const char *peer)
{
	const u32 nest = rt_message_nest(&message, RINGCAP_A_TAP);

	rt_message_put_u32(&message, RINGCAP_A_TAP_IFINDEX, if_nametoindex(device));
	if (peer)
		rt_message_put_u32(&message, RINGCAP_A_TAP_PEER, if_nametoindex(peer));
	else
		rt_message_put_u32(&message, RINGCAP_A_TAP_DIRECTION, RINGCAP_DIRECTION_RX);
	rt_message_nest_end(&message, nest);
}

static void make_ring(const struct ring_shape *shape)
{
	begin(RINGCAP_CMD_RING_SET, RING);
	put_tap(shape->device, shape->peer);
	if (shape->peer)
		put_tap(shape->peer, shape->device);
	rt_message_put_name(&message, RINGCAP_A_OUTPUT, CLUSTER);
	if (shape->transparent)
		rt_message_put_u32(&message, RINGCAP_A_TRANSPARENT, shape->transparent);
	if (shape->filter)
		rt_message_put(&message, RINGCAP_A_FILTER, tcp_port_80, sizeof(tcp_port_80));
	call("the ring");
}

/* ---- rules ---- */

static void begin_rules(enum ringcap_action otherwise, bool matching_passes)
{
	begin(RINGCAP_CMD_RULES_BEGIN, RING);
	rt_message_put_u32(&message, RINGCAP_A_DEFAULT_ACTION, otherwise);
	rt_message_put_u32(&message, RINGCAP_A_PATTERN_ACTION, matching_passes ? RINGCAP_ACTION_PASS : RINGCAP_ACTION_DROP);
	call("beginning the rules");
}

static void commit_rules(void)
{
	begin(RINGCAP_CMD_RULES_COMMIT, RING);
	call("committing the rules");
}

static void add_wildcards(unsigned int count, bool near)
{
	static struct ringcap_rule rules[200];
	unsigned int done, n;

	for (done = 0; done < count; done += n) {
		for (n = 0; n < 200 && done + n < count; n++)
			rules[n] = near ? rule_near(done + n) : rule_wildcard(done + n);
		begin(RINGCAP_CMD_RULES_ADD, RING);
		rt_message_put(&message, RINGCAP_A_RULE, rules, n * (u32)sizeof(rules[0]));
		call("adding wildcard rules");
	}
}

static void add_learning(void)
{
	const struct ringcap_rule rule = rule_learning();

	begin(RINGCAP_CMD_RULES_ADD, RING);
	rt_message_put(&message, RINGCAP_A_RULE, &rule, sizeof(rule));
	call("adding a rule that learns");
}

static void add_exact(unsigned int count)
{
	static struct ringcap_exact rules[500];
	unsigned int done, n;

	for (done = 0; done < count; done += n) {
		for (n = 0; n < 500 && done + n < count; n++)
			rules[n] = rule_exact(done + n);
		begin(RINGCAP_CMD_RULES_ADD, RING);
		rt_message_put(&message, RINGCAP_A_EXACT, rules, n * (u32)sizeof(rules[0]));
		call("adding exact rules");
	}
}

static void put_pattern(unsigned int n)
{
	u32 nest = rt_message_nest(&message, RINGCAP_A_PATTERN);
	char text[PATTERN_MAX];

	rt_message_put(&message, RINGCAP_A_PATTERN_BYTES, text, (u32)rule_pattern(n, text));
	rt_message_nest_end(&message, nest);
}

static void add_patterns(unsigned int count)
{
	unsigned int n;

	for (n = 0; n < count; n++) {
		if (n % 100 == 0)
			begin(RINGCAP_CMD_RULES_ADD, RING);
		put_pattern(n);
		if (n % 100 == 99 || n == count - 1)
			call("adding payload patterns");
	}
}

/* Sets how many flows may be learnt from now on. */
static void set_max_learnt(unsigned int max)
{
	FILE *file = fopen("/sys/module/ringcap/parameters/max_learnt", "w");

	if (!file || fprintf(file, "%u", max) < 0 || fclose(file))
		fail("max_learnt");
}

void ring_make(const struct ring_shape *shape, unsigned int queues)
{
	if (shape->ebpf) {
		agent_start(shape, queues);
		return;
	}
	make_cluster(shape, queues);
	make_ring(shape);
	if (!ring_passes_by_rule(shape) && !shape->patterns)
		return;
	begin_rules(ring_passes_by_rule(shape) ? RINGCAP_ACTION_DROP : RINGCAP_ACTION_PASS, false);
	add_wildcards(shape->wildcards, shape->near);
	if (shape->full)
		set_max_learnt(0);
	if (shape->learn)
		add_learning();
	add_exact(shape->exact);
	add_patterns(shape->patterns);
	commit_rules();
}

void ring_delete(const struct ring_shape *shape)
{
	if (shape->ebpf) {
		agent_end();
		return;
	}
	begin(RINGCAP_CMD_RING_DEL, RING);
	call("deleting the ring");
	begin(RINGCAP_CMD_CLUSTER_DEL, CLUSTER);
	call("deleting the cluster");
	if (shape->full)
		set_max_learnt(MAX_LEARNT);
}

uint64_t ring_dropped(void)
{
	struct rt_queue_counts sum;
	uint64_t dropped = 0;
	unsigned int reason;

	rt_cluster_counts(CLUSTER, &sum);
	for (reason = 0; reason < RINGCAP_DROP_REASONS; reason++)
		dropped += sum.dropped[reason];
	return dropped;
}
