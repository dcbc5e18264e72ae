// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "rings.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent.h"
#include "control.h"
#include "filter.h"
#include "readers.h"
#include "traffic.h"

#define RING	"bench-ring"
#define CLUSTER	"bench"

static struct rt_message message;

/* The harness of kmod/tests wants one. */
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

static void make_cluster(const struct ring_shape *shape, unsigned int queues)
{
	begin(RINGCAP_CMD_CLUSTER_SET, CLUSTER);
	rt_message_put_u32(&message, RINGCAP_A_QUEUES, queues);
	rt_message_put_u32(&message, RINGCAP_A_LANES, 1);
	rt_message_put_u32(&message, RINGCAP_A_LANE_SIZE, reader_memory);
	rt_message_put_u32(&message, RINGCAP_A_WATERMARK, WAKE_BYTES);
	rt_message_put_u32(&message, RINGCAP_A_TIMEOUT_US, WAKE_MS * 1000);
	if (shape->per_rx_queue)
		rt_message_put_u32(&message, RINGCAP_A_BALANCE, RINGCAP_BALANCE_RX_QUEUE);
	call("the cluster");
}

static void make_ring(const struct ring_shape *shape)
{
	u32 nest;

	begin(RINGCAP_CMD_RING_SET, RING);
	nest = rt_message_nest(&message, RINGCAP_A_TAP);
	rt_message_put_u32(&message, RINGCAP_A_TAP_IFINDEX, if_nametoindex(shape->device));
	rt_message_put_u32(&message, RINGCAP_A_TAP_DIRECTION, RINGCAP_DIRECTION_RX);
	rt_message_nest_end(&message, nest);
	rt_message_put_name(&message, RINGCAP_A_OUTPUT, CLUSTER);
	if (shape->transparent)
		rt_message_put_u32(&message, RINGCAP_A_TRANSPARENT, shape->transparent);
	if (shape->quick)
		rt_message_put_u32(&message, RINGCAP_A_QUICK, 1);
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

static void match_source(struct ringcap_rule *rule, u8 prefix, const u8 *address)
{
	rule->fields |= RINGCAP_MATCH_SADDR;
	rule->family = 4;
	rule->splen = prefix;
	memcpy(rule->saddr, address, prefix / 8);
}

static void match_destination(struct ringcap_rule *rule, u8 prefix, const u8 *address)
{
	rule->fields |= RINGCAP_MATCH_DADDR;
	rule->family = 4;
	rule->dplen = prefix;
	memcpy(rule->daddr, address, prefix / 8);
}

static void match_ports(struct ringcap_rule *rule, u16 source, u16 destination)
{
	rule->fields |= RINGCAP_MATCH_PROTO;
	rule->l4_proto = 17;
	if (source) {
		rule->fields |= RINGCAP_MATCH_SPORT;
		rule->sport[0] = rule->sport[1] = source;
	}
	if (destination) {
		rule->fields |= RINGCAP_MATCH_DPORT;
		rule->dport[0] = rule->dport[1] = destination;
	}
}

/* Rule n of a set of 8 shapes. Rule 0 is the traffic's: UDP to port 53; no other matches it. */
static struct ringcap_rule wildcard(unsigned int n)
{
	struct ringcap_rule rule = { .id = n + 1, .priority = n, .action = RINGCAP_ACTION_PASS };
	const u8 one[] = { 172, 16, (u8)(n >> 11), (u8)(n >> 3) }, other[] = { 192, 168, one[2], one[3] };
	const u16 port = (u16)(1000 + (n >> 3));

	switch (n % 8) {
	case 0:
		match_ports(&rule, 0, n ? port : 53);
		break;
	case 1:
		match_source(&rule, 32, one);
		break;
	case 2:
		match_destination(&rule, 32, other);
		break;
	case 3:
		match_source(&rule, 32, one);
		match_destination(&rule, 32, other);
		break;
	case 4:
		match_source(&rule, 24, one);
		match_ports(&rule, 0, port);
		break;
	case 5:
		match_destination(&rule, 24, other);
		match_ports(&rule, port, 0);
		break;
	case 6:
		match_ports(&rule, port, 0);
		break;
	case 7:
		match_source(&rule, 16, one);
		match_destination(&rule, 32, other);
		match_ports(&rule, 0, port);
		break;
	}
	return rule;
}

static void add_wildcards(unsigned int count)
{
	static struct ringcap_rule rules[200];
	unsigned int done, n;

	for (done = 0; done < count; done += n) {
		for (n = 0; n < 200 && done + n < count; n++)
			rules[n] = wildcard(done + n);
		begin(RINGCAP_CMD_RULES_ADD, RING);
		rt_message_put(&message, RINGCAP_A_RULE, rules, n * (u32)sizeof(rules[0]));
		call("adding wildcard rules");
	}
}

/* The first FLOWS are the traffic's. */
static struct ringcap_exact exact(unsigned int n)
{
	struct ringcap_exact rule = { .sport = (u16)FLOW_PORT(n), .dport = 53, .l3_proto = 0x0800, .l4_proto = 17,
				      .action = RINGCAP_ACTION_PASS };

	memcpy(rule.saddr, (u8[]){ 10, 0, 0, (u8)(n < FLOWS ? 1 + n / 8 : 100) }, 4);
	memcpy(rule.daddr, (u8[]){ 10, 0, 1, 1 }, 4);
	return rule;
}

static void add_exact(unsigned int count)
{
	static struct ringcap_exact rules[500];
	unsigned int done, n;

	for (done = 0; done < count; done += n) {
		for (n = 0; n < 500 && done + n < count; n++)
			rules[n] = exact(done + n);
		begin(RINGCAP_CMD_RULES_ADD, RING);
		rt_message_put(&message, RINGCAP_A_EXACT, rules, n * (u32)sizeof(rules[0]));
		call("adding exact rules");
	}
}

/* The traffic's payload is the letter U over and over; every tenth pattern begins with some, and none ends with one. */
int ring_pattern(unsigned int n, char *text)
{
	return snprintf(text, RING_PATTERN_MAX, "%.*sneedle-%05u", (int)(n % 10 ? 0 : 1 + n / 10 % 5), "UUUUU", n * 7919);
}

static void put_pattern(unsigned int n)
{
	u32 nest = rt_message_nest(&message, RINGCAP_A_PATTERN);
	char text[RING_PATTERN_MAX];

	rt_message_put(&message, RINGCAP_A_PATTERN_BYTES, text, (u32)ring_pattern(n, text));
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

void ring_make(const struct ring_shape *shape, unsigned int queues)
{
	if (shape->ebpf) {
		agent_start(shape->device, queues, shape->patterns);
		return;
	}
	make_cluster(shape, queues);
	make_ring(shape);
	if (!shape->wildcards && !shape->exact && !shape->patterns)
		return;
	begin_rules(shape->wildcards || shape->exact ? RINGCAP_ACTION_DROP : RINGCAP_ACTION_PASS, false);
	add_wildcards(shape->wildcards);
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
