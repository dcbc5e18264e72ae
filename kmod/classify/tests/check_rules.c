// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rules against a model: the matches of a rule must agree with a linear search that uses no masks. */
#include "check.h"

#include "../rule.h"

#define NR_RULES	2000
#define NR_PACKETS	300

static rc_u32 random_below(rc_u32 n)
{
	return (rc_u32)(next_random() % n);
}

/* ---- ranges of ports ---- */

static void check_range(rc_u16 least, rc_u16 most)
{
	struct rc_port_prefix prefixes[RC_PORT_PREFIXES_MAX];
	rc_u32 nr = rc_port_prefixes(least, most, prefixes), port, i, times;

	CHECK(nr && nr <= RC_PORT_PREFIXES_MAX, "%u - %u: %u prefixes", least, most, nr);
	for (port = 0; port < 0x10000; port++) {
		times = 0;
		for (i = 0; i < nr; i++)
			times += (port & prefixes[i].mask) == prefixes[i].value;
		CHECK(times == (port >= least && port <= most), "%u - %u: port %u is in %u prefixes", least, most, port,
		      times);
	}
}

static void check_ranges(void)
{
	struct rc_port_prefix prefixes[RC_PORT_PREFIXES_MAX];
	rc_u32 i, a, b;

	check_range(0, 0);
	check_range(0, 65535);
	check_range(65535, 65535);
	check_range(1, 65534);
	check_range(1024, 65535);
	CHECK(rc_port_prefixes(1, 65534, prefixes) == RC_PORT_PREFIXES_MAX, "the worst range");
	CHECK(rc_port_prefixes(0, 65535, prefixes) == 1, "all ports");
	CHECK(rc_port_prefixes(9, 8, prefixes) == 0, "an empty range");
	for (i = 0; i < 200; i++) {
		a = random_below(0x10000);
		b = random_below(0x10000);
		check_range((rc_u16)(a < b ? a : b), (rc_u16)(a < b ? b : a));
	}
}

/* ---- exact rules ---- */

/* A packet of few addresses and ports; returns its length. */
static rc_u32 small_packet(rc_u8 *frame, int *ipv6)
{
	static const rc_u8 protos[] = { RC_IPPROTO_TCP, RC_IPPROTO_UDP, RC_IPPROTO_SCTP, 1 };
	rc_u32 tags = random_below(2) * (1 + random_below(2)), at = 12, l4, size, i;

	memset(frame, 0, FRAME_MAX);
	frame[0] = frame[6] = 2;
	frame[5] = (rc_u8)random_below(2);
	frame[11] = (rc_u8)random_below(2);
	for (i = 0; i < tags; i++, at += 4) {
		frame[at] = 0x81;
		frame[at + 3] = (rc_u8)random_below(3);
	}
	*ipv6 = (int)random_below(2);
	frame[at] = *ipv6 ? 0x86 : 0x08;
	frame[at + 1] = *ipv6 ? 0xdd : 0x00;
	at += 2;
	size = *ipv6 ? 16 : 4;
	frame[at] = *ipv6 ? 0x60 : 0x45;
	frame[at + (*ipv6 ? 6 : 9)] = protos[random_below(4)];
	if (!*ipv6 && !random_below(8))
		frame[at + 6] = 0x20;	/* the first of several fragments */
	for (i = 0; i < 2; i++) {
		rc_u8 *addr = frame + at + (*ipv6 ? 8 : 12) + i * size;

		addr[0] = 10;
		addr[1] = (rc_u8)random_below(2);
		addr[size - 1] = (rc_u8)(random_below(3) * 64);
	}
	l4 = at + (*ipv6 ? 40 : 20);
	frame[l4 + 1] = (rc_u8)random_below(12);
	frame[l4 + 3] = (rc_u8)random_below(12);
	frame[l4 + 13] = (rc_u8)next_random();
	/* Some end within their transport header. */
	return random_below(6) ? l4 + 20 : l4 + random_below(16);
}

static void frame_of(const rc_u8 *data, rc_u32 len, struct rc_frame *frame, struct rc_flow *flow)
{
	*frame = (struct rc_frame){ .data = data, .avail = len < RC_PARSE_MAX ? len : RC_PARSE_MAX };
	rc_parse(frame, flow);
}

static void check_exact(void)
{
	struct rc_exact_key key, back_key, rule_key;
	struct ringcap_exact rule, again;
	struct rc_flow flow, back;
	struct rc_frame frame;
	rc_u8 data[FRAME_MAX];
	rc_u32 i, words, found = 0;
	int ipv6, swapped;

	for (i = 0; i < NR_RULES; i++) {
		frame_of(data, small_packet(data, &ipv6), &frame, &flow);
		words = rc_exact_key_of_packet(&frame, &flow, &key);
		if (!words)
			continue;
		found++;
		CHECK(words == (ipv6 ? RC_EXACT_WORDS_IPV6 : RC_EXACT_WORDS_IPV4), "%u words", words);
		back = flow;
		memcpy(back.saddr, flow.daddr, sizeof(back.saddr));
		memcpy(back.daddr, flow.saddr, sizeof(back.daddr));
		back.sport = flow.dport;
		back.dport = flow.sport;
		CHECK(rc_exact_key_of_packet(&frame, &back, &back_key) == words, "the other direction");
		CHECK(!memcmp(&key, &back_key, words * 8), "the two directions differ");

		/* Converts a rule to its key and back. */
		memset(&rule, 0, sizeof(rule));
		memcpy(rule.saddr, flow.saddr, ipv6 ? 16 : 4);
		memcpy(rule.daddr, flow.daddr, ipv6 ? 16 : 4);
		rule.sport = flow.sport;
		rule.dport = flow.dport;
		rule.l3_proto = flow.l3_proto;
		rule.vlan_id = flow.vlan_tpid ? flow.vlan_tci & 0xfff : 0;
		rule.l4_proto = flow.l4_proto;
		CHECK(rc_exact_key_of_rule(&rule, &rule_key, &swapped) == words, "the rule's words");
		CHECK(!memcmp(&key, &rule_key, words * 8), "the rule is not the packet's");
		rc_exact_rule_of_key(rule_key.w, swapped, &again);
		CHECK(!memcmp(&rule, &again, sizeof(rule)), "the rule is not the same from its key");
	}
	CHECK(found > NR_RULES / 2, "only %u packets have a flow", found);
}

/* ---- wildcard rules ---- */

static void random_rule(struct ringcap_rule *rule)
{
	static const rc_u8 protos[] = { RC_IPPROTO_TCP, RC_IPPROTO_UDP, RC_IPPROTO_SCTP, 1 };
	rc_u32 a = random_below(12), b = a + random_below(6);

	memset(rule, 0, sizeof(*rule));
	/* Rarely more than three fields, otherwise nothing would match. */
	rule->fields = next_random() & next_random() & ((RINGCAP_MATCH_TUNNEL_ID) - 1);
	rule->family = random_below(2) ? 6 : 4;
	rule->splen = (rc_u8)random_below(rule->family == 6 ? 129 : 33);
	rule->dplen = (rc_u8)random_below(rule->family == 6 ? 129 : 33);
	rule->l4_proto = protos[random_below(4)];
	rule->tcp_mask = (rc_u8)(next_random() & 3);
	rule->tcp_flags = (rc_u8)(next_random() & rule->tcp_mask);
	rule->smac[0] = rule->dmac[0] = 2;
	rule->smac[5] = (rc_u8)random_below(2);
	rule->dmac[5] = (rc_u8)random_below(2);
	rule->ethertype = random_below(2) ? RC_ETH_P_IPV6 : RC_ETH_P_IPV4;
	rule->vlan_id = (rc_u16)random_below(3);
	rule->inner_vlan_id = (rc_u16)random_below(3);
	rule->sport[0] = (rc_u16)a;
	rule->sport[1] = (rc_u16)b;
	rule->dport[0] = (rc_u16)random_below(6);
	rule->dport[1] = (rc_u16)(rule->dport[0] + random_below(6));
	rule->saddr[0] = rule->daddr[0] = 10;
	rule->saddr[1] = (rc_u8)random_below(2);
	rule->daddr[1] = (rc_u8)random_below(2);
	rule->saddr[rule->family == 6 ? 15 : 3] = (rc_u8)(random_below(3) * 64);
	rule->daddr[rule->family == 6 ? 15 : 3] = (rc_u8)(random_below(3) * 64);
}

static int same_bits(const rc_u8 *a, const rc_u32 *words, rc_u32 bits)
{
	const rc_u8 *b = (const rc_u8 *)words;
	rc_u32 i;

	for (i = 0; i < bits; i++)
		if ((a[i / 8] ^ b[i / 8]) & 0x80 >> i % 8)
			return 0;
	return 1;
}

/* Whether the rule matches, read from the packet itself; check_vectors has shown that the flow is right. */
static int plainly(const struct ringcap_rule *rule, const rc_u8 *data, rc_u32 len, const struct rc_flow *flow)
{
	rc_u32 f = rule->fields, family = !flow->l3_off ? 0 : flow->l3_proto == RC_ETH_P_IPV6 ? 6 : 4;
	int whole = flow->l4_off && !(flow->flags & RINGCAP_SLOT_FRAGMENT);
	int ports = whole && flow->l4_proto != 1 && len >= flow->l4_off + 4u;
	int tcp = whole && flow->l4_proto == RC_IPPROTO_TCP && len >= flow->l4_off + 14u;

	return !((f & RINGCAP_MATCH_SMAC && memcmp(rule->smac, data + 6, 6)) ||
		 (f & RINGCAP_MATCH_DMAC && memcmp(rule->dmac, data, 6)) ||
		 (f & RINGCAP_MATCH_ETHERTYPE && rule->ethertype != flow->l3_proto) ||
		 (f & RINGCAP_MATCH_VLAN && rule->vlan_id != (flow->vlan_tpid ? flow->vlan_tci & 0xfff : 0)) ||
		 (f & RINGCAP_MATCH_INNER_VLAN && rule->inner_vlan_id != flow->inner_vid) ||
		 (f & RINGCAP_MATCH_PROTO && (!family || rule->l4_proto != flow->l4_proto)) ||
		 (f & RINGCAP_MATCH_SADDR && (family != rule->family || !same_bits(rule->saddr, flow->saddr, rule->splen))) ||
		 (f & RINGCAP_MATCH_DADDR && (family != rule->family || !same_bits(rule->daddr, flow->daddr, rule->dplen))) ||
		 (f & RINGCAP_MATCH_SPORT &&
		  (!ports || flow->sport < rule->sport[0] || flow->sport > rule->sport[1])) ||
		 (f & RINGCAP_MATCH_DPORT &&
		  (!ports || flow->dport < rule->dport[0] || flow->dport > rule->dport[1])) ||
		 (f & RINGCAP_MATCH_TCP_FLAGS && (!tcp || (data[flow->l4_off + 13] & rule->tcp_mask) != rule->tcp_flags)));
}

/* How many of the rule's matches fit the packet. */
static rc_u32 by_matches(const struct ringcap_rule *rule, const struct rc_key *key, int reverse)
{
	struct rc_port_prefix s[RC_PORT_PREFIXES_MAX] = {{ 0 }}, d[RC_PORT_PREFIXES_MAX] = {{ 0 }};
	rc_u32 nr_s = 1, nr_d = 1, i, j, count = 0;
	struct rc_match match;

	if (rule->fields & RINGCAP_MATCH_SPORT)
		nr_s = rc_port_prefixes(rule->sport[0], rule->sport[1], s);
	if (rule->fields & RINGCAP_MATCH_DPORT)
		nr_d = rc_port_prefixes(rule->dport[0], rule->dport[1], d);
	for (i = 0; i < nr_s; i++) {
		for (j = 0; j < nr_d; j++) {
			rc_match_of_rule(rule, &s[i], &d[j], reverse, &match);
			count += (rc_u32)rc_match_is(&match, key);
		}
	}
	return count;
}

static void turn_rule(const struct ringcap_rule *rule, struct ringcap_rule *turned)
{
	*turned = *rule;
	memcpy(turned->smac, rule->dmac, 6);
	memcpy(turned->dmac, rule->smac, 6);
	memcpy(turned->saddr, rule->daddr, 16);
	memcpy(turned->daddr, rule->saddr, 16);
	memcpy(turned->sport, rule->dport, 4);
	memcpy(turned->dport, rule->sport, 4);
	turned->splen = rule->dplen;
	turned->dplen = rule->splen;
	turned->fields &= ~(rc_u32)(RINGCAP_MATCH_SMAC | RINGCAP_MATCH_DMAC | RINGCAP_MATCH_SADDR | RINGCAP_MATCH_DADDR |
				   RINGCAP_MATCH_SPORT | RINGCAP_MATCH_DPORT);
	if (rule->fields & RINGCAP_MATCH_SMAC)
		turned->fields |= RINGCAP_MATCH_DMAC;
	if (rule->fields & RINGCAP_MATCH_DMAC)
		turned->fields |= RINGCAP_MATCH_SMAC;
	if (rule->fields & RINGCAP_MATCH_SADDR)
		turned->fields |= RINGCAP_MATCH_DADDR;
	if (rule->fields & RINGCAP_MATCH_DADDR)
		turned->fields |= RINGCAP_MATCH_SADDR;
	if (rule->fields & RINGCAP_MATCH_SPORT)
		turned->fields |= RINGCAP_MATCH_DPORT;
	if (rule->fields & RINGCAP_MATCH_DPORT)
		turned->fields |= RINGCAP_MATCH_SPORT;
}

static void check_wildcard(void)
{
	static struct ringcap_rule rules[NR_RULES], turned[NR_RULES];
	rc_u32 i, k, len, matched = 0, nr_plain = 0;
	rc_u8 data[FRAME_MAX];
	struct rc_frame frame;
	struct rc_flow flow;
	struct rc_key key, plain;
	int ipv6, is_plain;

	for (k = 0; k < NR_RULES; k++) {
		random_rule(&rules[k]);
		turn_rule(&rules[k], &turned[k]);
	}
	for (i = 0; i < NR_PACKETS; i++) {
		len = small_packet(data, &ipv6);
		frame_of(data, len, &frame, &flow);
		rc_key_of_packet(&frame, &flow, &key);
		is_plain = rc_parse_plain(&frame, &flow);
		nr_plain += (rc_u32)is_plain;
		/* Words that the function does not write must not matter. */
		memset(&plain, 0xa5, sizeof(plain));
		if (is_plain)
			rc_key_of_plain(data, frame.avail, 1, &plain);
		for (k = 0; k < NR_RULES; k++) {
			rc_u32 there = (rc_u32)plainly(&rules[k], data, len, &flow);
			rc_u32 back = (rc_u32)plainly(&turned[k], data, len, &flow);

			CHECK(by_matches(&rules[k], &key, 0) == there, "fields %#x: not %u", rules[k].fields, there);
			CHECK(by_matches(&rules[k], &key, 1) == back, "fields %#x, reverse: not %u", rules[k].fields, back);
			CHECK(!is_plain || by_matches(&rules[k], &plain, 0) == there, "fields %#x, plain: not %u",
			      rules[k].fields, there);
			matched += there;
		}
	}
	CHECK(matched > NR_PACKETS * 20, "only %u matches: that tests little", matched);
	CHECK(nr_plain > NR_PACKETS / 20, "only %u plain packets: that tests little", nr_plain);
}

static void check_inner(void)
{
	struct rc_way_in in = { .flow = { .l3_off = 60, .l3_proto = RC_ETH_P_IPV4 }, .tunnel_id = 0, .has_id = 1 };
	struct ringcap_rule rule = { .fields = RINGCAP_MATCH_TUNNEL_ID | RINGCAP_MATCH_INNER_SADDR, .inner_family = 4,
				     .inner_splen = 24, .inner_saddr = { 10, 1, 2, 3 } };
	const rc_u8 near[4] = { 10, 1, 2, 99 }, far[4] = { 10, 1, 3, 3 };
	struct rc_key outer = { { 0 } }, key = { { 0 } };

	in.flow.saddr[0] = rc_load32(near);
	in.flow.daddr[0] = rc_load32(far);
	CHECK(!by_matches(&rule, &outer, 0), "a packet without a tunnel matches");
	rc_key_add_inner(&in, &key);
	CHECK(by_matches(&rule, &key, 0), "tunnel 0 does not match");
	CHECK(!by_matches(&rule, &key, 1), "the destination matches as source");
	rule.tunnel_id = 1;
	CHECK(!by_matches(&rule, &key, 0), "another tunnel matches");
	rule.fields = RINGCAP_MATCH_INNER_DADDR;
	rule.inner_family = 6;
	CHECK(!by_matches(&rule, &key, 0), "another family matches");
}

void check_rules(void)
{
	check_ranges();
	check_exact();
	check_wildcard();
	check_inner();
	printf("rules: %d wildcard rules by %d packets, %d exact ones, ranges of ports\n", NR_RULES, NR_PACKETS, NR_RULES);
}
