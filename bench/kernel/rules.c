// SPDX-License-Identifier: Apache-2.0
#include "rules.h"

#include <stdio.h>
#include <string.h>

#include "traffic.h"

static void match_source(struct ringcap_rule *rule, __u8 prefix, const __u8 *address)
{
	rule->fields |= RINGCAP_MATCH_SADDR;
	rule->family = 4;
	rule->splen = prefix;
	memcpy(rule->saddr, address, prefix / 8);
}

static void match_destination(struct ringcap_rule *rule, __u8 prefix, const __u8 *address)
{
	rule->fields |= RINGCAP_MATCH_DADDR;
	rule->family = 4;
	rule->dplen = prefix;
	memcpy(rule->daddr, address, prefix / 8);
}

static void match_ports(struct ringcap_rule *rule, __u16 source, __u16 destination)
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

static struct ringcap_rule rule_between(unsigned int n, const __u8 *one, const __u8 *other)
{
	struct ringcap_rule rule = { .id = n + 1, .priority = n, .action = RINGCAP_ACTION_PASS };
	const __u16 port = (__u16)(1000 + (n >> 3));

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

struct ringcap_rule rule_wildcard(unsigned int n)
{
	const __u8 one[] = { 172, 16, (__u8)(n >> 11), (__u8)(n >> 3) }, other[] = { 192, 168, one[2], one[3] };

	return rule_between(n, one, other);
}

struct ringcap_rule rule_near(unsigned int n)
{
	const __u8 one[] = { 10, 0, 0, (__u8)(100 + (n >> 3)) }, other[] = { 10, 0, 1, one[3] };

	return rule_between(n, one, other);
}

struct ringcap_rule rule_learning(void)
{
	struct ringcap_rule rule = { .id = 1, .action = RINGCAP_ACTION_LEARN };

	match_ports(&rule, 0, 53);
	return rule;
}

struct ringcap_exact rule_exact(unsigned int n)
{
	struct ringcap_exact rule = { .sport = (__u16)FLOW_PORT(n), .dport = 53, .l3_proto = 0x0800, .l4_proto = 17,
				      .action = RINGCAP_ACTION_PASS };

	memcpy(rule.saddr, (__u8[]){ 10, 0, 0, (__u8)(n < FLOWS ? 1 + n / 8 : 100) }, 4);
	memcpy(rule.daddr, (__u8[]){ 10, 0, 1, 1 }, 4);
	return rule;
}

int rule_pattern(unsigned int n, char *text)
{
	return snprintf(text, PATTERN_MAX, "%.*sneedle-%05u", (int)(n % 10 ? 0 : 1 + n / 10 % 5), "UUUUU", n * 7919);
}
