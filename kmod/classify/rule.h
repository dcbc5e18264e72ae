/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Header rules, as far as they are the same in every engine: the key that is made of a packet, and the keys that a rule
 * matches. Each engine stores and finds rules in its own way.
 *
 * An exact rule is a struct rc_exact_key, which is the same for both directions of a flow.
 *
 * A wildcard rule is one or more struct rc_match: a packet's struct rc_key matches when (key & mask) == value. A rule
 * can ask only for bits of the key, which also say whether the packet has a field (RC_HAS_*). So one look-up in a hash
 * table finds all rules with the same mask, the same shape. A range of ports is several matches, see rc_port_prefixes.
 */
#ifndef RC_RULE_H
#define RC_RULE_H

#include "classify.h"
#include "inner.h"

#define RC_PORT_PREFIXES_MAX	30	/* 1 .. 65534 takes this many */
#define RC_KEY_WORDS		13
#define RC_EXACT_WORDS_IPV4	2
#define RC_EXACT_WORDS_IPV6	5

/* What a packet has; the low bits of rc_key.w[0]. */
#define RC_HAS_MACS		(1U << 0)
#define RC_HAS_IPV4		(1U << 1)
#define RC_HAS_IPV6		(1U << 2)
#define RC_HAS_IP		(1U << 3)	/* either */
#define RC_HAS_PORTS		(1U << 4)
#define RC_HAS_TCP		(1U << 5)	/* the flags can be read */
#define RC_HAS_TUNNEL_ID	(1U << 6)
#define RC_HAS_INNER_IPV4	(1U << 7)	/* of the innermost packet in tunnels */
#define RC_HAS_INNER_IPV6	(1U << 8)

/**
 * struct rc_exact_key - a flow, either direction; the smaller of address and port comes first
 * @w: IPv6 << 60 | VLAN id << 40 | protocol << 32 | ports, then the addresses: RC_EXACT_WORDS_* words
 */
struct rc_exact_key {
	rc_u64 w[RC_EXACT_WORDS_IPV6];
};

/**
 * struct rc_key - the key that wildcard rules are compared with
 * @w: 0 ethertype << 48 | VLAN id << 32 | second VLAN id << 16 | RC_HAS_*, 1 source port << 48 | destination port << 32
 *	| protocol << 24 | TCP flags << 16, 2 and 3 source address (IPv4: the upper half of 2), 4 and 5 destination
 *	address, 6 source MAC address, 7 destination MAC address, 8 and 9 inner source address, 10 and 11 inner
 *	destination address, 12 tunnel id
 */
struct rc_key {
	rc_u64 w[RC_KEY_WORDS];
};

struct rc_match {
	struct rc_key mask;
	struct rc_key value;
};

/* Ports with (port & mask) == value. */
struct rc_port_prefix {
	rc_u16 value;
	rc_u16 mask;
};

static rc_inline int rc_proto_has_ports(rc_u8 proto)
{
	return proto == RC_IPPROTO_TCP || proto == RC_IPPROTO_UDP || proto == RC_IPPROTO_SCTP;
}

/*
 * Whether @bytes of the transport header are there, in a packet that is not a fragment; @at then points to the header.
 */
static rc_inline int rc_l4_has(const struct rc_frame *frame, const struct rc_flow *flow, rc_u32 bytes,
			       struct rc_cursor *at)
{
	if (!flow->l4_off || flow->flags & RINGCAP_SLOT_FRAGMENT)
		return 0;
	at->data = frame->data;
	at->shift = frame->vlan_tpid ? 4 : 0;
	at->off = flow->l4_off - at->shift;
	at->end = frame->avail < RC_PARSE_MAX - at->shift ? frame->avail : RC_PARSE_MAX - at->shift;
	return rc_has(at, bytes);
}

/* ---- exact ---- */

static rc_inline rc_u64 rc_word(const rc_u32 *addr)
{
	return (rc_u64)rc_be32(addr[0]) << 32 | rc_be32(addr[1]);
}

static rc_inline rc_u64 rc_exact_word(int ipv6, rc_u32 vlan_id, rc_u8 proto, rc_u16 first, rc_u16 second)
{
	return (rc_u64)ipv6 << 60 | (rc_u64)vlan_id << 40 | (rc_u64)proto << 32 | (rc_u64)first << 16 | second;
}

static rc_inline int rc_exact_key_ipv4(struct rc_exact_key *key, rc_u32 saddr, rc_u32 daddr, rc_u16 sport,
				       rc_u16 dport, rc_u32 vlan_id, rc_u8 proto)
{
	rc_u64 a = (rc_u64)rc_be32(saddr) << 16 | sport, b = (rc_u64)rc_be32(daddr) << 16 | dport;
	int swap = a > b;

	key->w[0] = rc_exact_word(0, vlan_id, proto, swap ? dport : sport, swap ? sport : dport);
	key->w[1] = swap ? (b >> 16) << 32 | a >> 16 : (a >> 16) << 32 | b >> 16;
	return swap;
}

static rc_inline int rc_exact_key_ipv6(struct rc_exact_key *key, const rc_u32 *saddr, const rc_u32 *daddr, rc_u16 sport,
				       rc_u16 dport, rc_u32 vlan_id, rc_u8 proto)
{
	rc_u64 a[2] = { rc_word(saddr), rc_word(saddr + 2) }, b[2] = { rc_word(daddr), rc_word(daddr + 2) };
	int swap = a[0] != b[0] ? a[0] > b[0] : a[1] != b[1] ? a[1] > b[1] : sport > dport;

	key->w[0] = rc_exact_word(1, vlan_id, proto, swap ? dport : sport, swap ? sport : dport);
	key->w[1] = swap ? b[0] : a[0];
	key->w[2] = swap ? b[1] : a[1];
	key->w[3] = swap ? a[0] : b[0];
	key->w[4] = swap ? a[1] : b[1];
	return swap;
}

/*
 * The key of a packet's flow. Unused words are not written. Returns the number of words. Returns 0 if no exact rule can
 * match: the packet is not IP, or lacks the ports that its protocol has.
 */
static rc_inline rc_u32 rc_exact_key_of_packet(const struct rc_frame *frame, const struct rc_flow *flow,
					       struct rc_exact_key *key)
{
	rc_u32 vlan_id = flow->vlan_tpid ? flow->vlan_tci & 0xfff : 0;
	struct rc_cursor at;

	if (!flow->l3_off)
		return 0;
	if (!flow->sport && !flow->dport && rc_proto_has_ports(flow->l4_proto) && !rc_l4_has(frame, flow, 4, &at))
		return 0;
	if (flow->l3_proto == RC_ETH_P_IPV4) {
		rc_exact_key_ipv4(key, flow->saddr[0], flow->daddr[0], flow->sport, flow->dport, vlan_id,
				  flow->l4_proto);
		return RC_EXACT_WORDS_IPV4;
	}
	rc_exact_key_ipv6(key, flow->saddr, flow->daddr, flow->sport, flow->dport, vlan_id, flow->l4_proto);
	return RC_EXACT_WORDS_IPV6;
}

static rc_inline void rc_addr_load(const rc_u8 bytes[16], rc_u32 addr[4])
{
	addr[0] = rc_load32(bytes);
	addr[1] = rc_load32(bytes + 4);
	addr[2] = rc_load32(bytes + 8);
	addr[3] = rc_load32(bytes + 12);
}

/* The key of a rule, which is valid. Returns its words; @swapped: its destination comes first. */
static rc_inline rc_u32 rc_exact_key_of_rule(const struct ringcap_exact *rule, struct rc_exact_key *key, int *swapped)
{
	rc_u32 saddr[4], daddr[4];

	rc_addr_load(rule->saddr, saddr);
	rc_addr_load(rule->daddr, daddr);
	if (rule->l3_proto == RC_ETH_P_IPV4) {
		*swapped = rc_exact_key_ipv4(key, saddr[0], daddr[0], rule->sport, rule->dport, rule->vlan_id,
					     rule->l4_proto);
		return RC_EXACT_WORDS_IPV4;
	}
	*swapped = rc_exact_key_ipv6(key, saddr, daddr, rule->sport, rule->dport, rule->vlan_id, rule->l4_proto);
	return RC_EXACT_WORDS_IPV6;
}

static rc_inline void rc_word_store(rc_u64 word, rc_u8 *bytes)
{
	rc_u32 i;

	for (i = 0; i < 8; i++)
		bytes[i] = (rc_u8)(word >> (56 - 8 * i));
}

/* The rule of a key, without its action. */
static rc_inline void rc_exact_rule_of_key(const rc_u64 *w, int swapped, struct ringcap_exact *rule)
{
	rc_u8 *first = swapped ? rule->daddr : rule->saddr, *second = swapped ? rule->saddr : rule->daddr;
	rc_u16 low = (rc_u16)(w[0] >> 16), high = (rc_u16)w[0];

	__builtin_memset(rule, 0, sizeof(*rule));
	rule->l3_proto = w[0] >> 60 ? RC_ETH_P_IPV6 : RC_ETH_P_IPV4;
	rule->vlan_id = (w[0] >> 40) & 0xfff;
	rule->l4_proto = (rc_u8)(w[0] >> 32);
	rule->sport = swapped ? high : low;
	rule->dport = swapped ? low : high;
	if (rule->l3_proto == RC_ETH_P_IPV6) {
		rc_word_store(w[1], first);
		rc_word_store(w[2], first + 8);
		rc_word_store(w[3], second);
		rc_word_store(w[4], second + 8);
	} else {
		rc_word_store(w[1] & 0xffffffff00000000ULL, first);
		rc_word_store(w[1] << 32, second);
	}
}

/* ---- wildcard ---- */

static rc_inline void rc_key_put_macs(struct rc_key *key, const rc_u8 *p)
{
	key->w[0] |= RC_HAS_MACS;
	key->w[7] = (rc_u64)rc_get32(p) << 16 | rc_get16(p + 4);
	key->w[6] = (rc_u64)rc_get32(p + 6) << 16 | rc_get16(p + 10);
}

static rc_inline void rc_key_put_l4(struct rc_key *key, const struct rc_frame *frame, const struct rc_flow *flow)
{
	struct rc_cursor at;

	if (!rc_proto_has_ports(flow->l4_proto) || !rc_l4_has(frame, flow, 4, &at))
		return;
	key->w[0] |= RC_HAS_PORTS;
	key->w[1] |= (rc_u64)flow->sport << 48 | (rc_u64)flow->dport << 32;
	if (flow->l4_proto != RC_IPPROTO_TCP || !rc_has(&at, 14))
		return;
	key->w[0] |= RC_HAS_TCP;
	key->w[1] |= (rc_u64)rc_here(&at)[13] << 16;
}

static rc_inline void rc_key_put_ip(struct rc_key *key, const struct rc_frame *frame, const struct rc_flow *flow)
{
	int ipv6 = flow->l3_proto == RC_ETH_P_IPV6;

	key->w[0] |= RC_HAS_IP | (ipv6 ? RC_HAS_IPV6 : RC_HAS_IPV4);
	key->w[1] = (rc_u64)flow->l4_proto << 24;
	/* Beyond its first word an IPv4 address is zero. */
	key->w[2] = rc_word(flow->saddr);
	key->w[3] = rc_word(flow->saddr + 2);
	key->w[4] = rc_word(flow->daddr);
	key->w[5] = rc_word(flow->daddr + 2);
	rc_key_put_l4(key, frame, flow);
}

/* The key of a packet, without packets in tunnels. */
static rc_inline void rc_key_of_packet(const struct rc_frame *frame, const struct rc_flow *flow, struct rc_key *key)
{
	rc_u64 vlan_id = flow->vlan_tpid ? flow->vlan_tci & 0xfff : 0;
	rc_u32 i;

	key->w[0] = (rc_u64)flow->l3_proto << 48 | vlan_id << 32 | (rc_u64)flow->inner_vid << 16;
	for (i = 1; i < RC_KEY_WORDS; i++)
		key->w[i] = 0;
	if (frame->avail >= 12)
		rc_key_put_macs(key, frame->data);
	if (flow->l3_off)
		rc_key_put_ip(key, frame, flow);
}

/*
 * The same for a packet that rc_parse_plain accepts; @avail bytes of it are at @p. @macs: some rule asks for MAC
 * addresses. Words for fields that such a packet does not have are not written. A match that asks for them also asks
 * for a RC_HAS_* bit that is not set.
 */
static rc_inline void rc_key_of_plain(const rc_u8 *p, rc_u32 avail, int macs, struct rc_key *key)
{
	rc_u8 proto = p[23];

	key->w[0] = (rc_u64)RC_ETH_P_IPV4 << 48 | RC_HAS_IP | RC_HAS_IPV4 | RC_HAS_PORTS;
	key->w[1] = (rc_u64)rc_get32(p + 34) << 32 | (rc_u64)proto << 24;
	key->w[2] = (rc_u64)rc_get32(p + 26) << 32;
	key->w[4] = (rc_u64)rc_get32(p + 30) << 32;
	if (proto == RC_IPPROTO_TCP && avail >= 34 + 14) {
		key->w[0] |= RC_HAS_TCP;
		key->w[1] |= (rc_u64)p[34 + 13] << 16;
	}
	if (macs)
		rc_key_put_macs(key, p);
}

/* Adds the innermost packet and its tunnel to the key, for rules that ask for them. */
static rc_inline void rc_key_add_inner(const struct rc_way_in *in, struct rc_key *key)
{
	if (in->has_id) {
		key->w[0] |= RC_HAS_TUNNEL_ID;
		key->w[12] = in->tunnel_id;
	}
	if (!in->flow.l3_off)
		return;
	key->w[0] |= in->flow.l3_proto == RC_ETH_P_IPV6 ? RC_HAS_INNER_IPV6 : RC_HAS_INNER_IPV4;
	key->w[8] = rc_word(in->flow.saddr);
	key->w[9] = rc_word(in->flow.saddr + 2);
	key->w[10] = rc_word(in->flow.daddr);
	key->w[11] = rc_word(in->flow.daddr + 2);
}

/*
 * Splits @least .. @most into the fewest prefixes; returns their number, 0 for an empty range. Each prefix is the
 * largest aligned block that begins where the last one ended and stays in the range.
 */
static rc_inline rc_u32 rc_port_prefixes(rc_u16 least, rc_u16 most,
					 struct rc_port_prefix prefixes[RC_PORT_PREFIXES_MAX])
{
	rc_u32 at = least, end = (rc_u32)most + 1, nr = 0, size;

	while (at < end && nr < RC_PORT_PREFIXES_MAX) {
		for (size = 1; !(at & size) && size < 0x10000 && at + 2 * size <= end; size *= 2)
			;
		prefixes[nr].value = (rc_u16)at;
		prefixes[nr].mask = (rc_u16)~(size - 1);
		nr++;
		at += size;
	}
	return nr;
}

static rc_inline void rc_match_put(struct rc_match *match, rc_u32 word, rc_u64 mask, rc_u64 value)
{
	match->mask.w[word] |= mask;
	match->value.w[word] |= value & mask;
}

static rc_inline void rc_match_has(struct rc_match *match, rc_u32 has)
{
	rc_match_put(match, 0, has, has);
}

static rc_inline rc_u64 rc_prefix_mask(rc_u32 bits)
{
	return bits == 0 ? 0 : bits >= 64 ? ~0ULL : ~0ULL << (64 - bits);
}

/* The first @bits of an address, into two words from @word on. */
static rc_inline void rc_match_put_addr(struct rc_match *match, rc_u32 word, const rc_u8 *bytes, rc_u32 bits)
{
	rc_u32 addr[4];

	rc_addr_load(bytes, addr);
	rc_match_put(match, word, rc_prefix_mask(bits), rc_word(addr));
	rc_match_put(match, word + 1, rc_prefix_mask(bits > 64 ? bits - 64 : 0), rc_word(addr + 2));
}

static rc_inline void rc_match_put_mac(struct rc_match *match, rc_u32 word, const rc_u8 *bytes)
{
	rc_match_has(match, RC_HAS_MACS);
	rc_match_put(match, word, 0xffffffffffffULL, (rc_u64)rc_get32(bytes) << 16 | rc_get16(bytes + 4));
}

static rc_inline void rc_match_put_link(const struct ringcap_rule *rule, int reverse, struct rc_match *match)
{
	if (rule->fields & RINGCAP_MATCH_SMAC)
		rc_match_put_mac(match, reverse ? 7 : 6, rule->smac);
	if (rule->fields & RINGCAP_MATCH_DMAC)
		rc_match_put_mac(match, reverse ? 6 : 7, rule->dmac);
	if (rule->fields & RINGCAP_MATCH_ETHERTYPE)
		rc_match_put(match, 0, 0xffffULL << 48, (rc_u64)rule->ethertype << 48);
	if (rule->fields & RINGCAP_MATCH_VLAN)
		rc_match_put(match, 0, 0xfffULL << 32, (rc_u64)rule->vlan_id << 32);
	if (rule->fields & RINGCAP_MATCH_INNER_VLAN)
		rc_match_put(match, 0, 0xfffULL << 16, (rc_u64)rule->inner_vlan_id << 16);
}

static rc_inline void rc_match_put_network(const struct ringcap_rule *rule, int reverse, struct rc_match *match)
{
	if (rule->fields & (RINGCAP_MATCH_SADDR | RINGCAP_MATCH_DADDR))
		rc_match_has(match, rule->family == 6 ? RC_HAS_IPV6 : RC_HAS_IPV4);
	if (rule->fields & RINGCAP_MATCH_SADDR)
		rc_match_put_addr(match, reverse ? 4 : 2, rule->saddr, rule->splen);
	if (rule->fields & RINGCAP_MATCH_DADDR)
		rc_match_put_addr(match, reverse ? 2 : 4, rule->daddr, rule->dplen);
	if (rule->fields & RINGCAP_MATCH_PROTO) {
		rc_match_has(match, RC_HAS_IP);
		rc_match_put(match, 1, 0xffULL << 24, (rc_u64)rule->l4_proto << 24);
	}
}

static rc_inline void rc_match_put_inner(const struct ringcap_rule *rule, int reverse, struct rc_match *match)
{
	if (rule->fields & RINGCAP_MATCH_TUNNEL_ID) {
		rc_match_has(match, RC_HAS_TUNNEL_ID);
		rc_match_put(match, 12, 0xffffffffU, rule->tunnel_id);
	}
	if (rule->fields & (RINGCAP_MATCH_INNER_SADDR | RINGCAP_MATCH_INNER_DADDR))
		rc_match_has(match, rule->inner_family == 6 ? RC_HAS_INNER_IPV6 : RC_HAS_INNER_IPV4);
	if (rule->fields & RINGCAP_MATCH_INNER_SADDR)
		rc_match_put_addr(match, reverse ? 10 : 8, rule->inner_saddr, rule->inner_splen);
	if (rule->fields & RINGCAP_MATCH_INNER_DADDR)
		rc_match_put_addr(match, reverse ? 8 : 10, rule->inner_daddr, rule->inner_dplen);
}

static rc_inline void rc_match_put_port(struct rc_match *match, const struct rc_port_prefix *prefix, rc_u32 shift)
{
	rc_match_has(match, RC_HAS_PORTS);
	rc_match_put(match, 1, (rc_u64)prefix->mask << shift, (rc_u64)prefix->value << shift);
}

/*
 * The match of @rule, which is valid, for packets with ports that have these prefixes. If the rule has no range for a
 * port, that port's prefix is ignored. @reverse: with source and destination exchanged.
 */
static rc_inline void rc_match_of_rule(const struct ringcap_rule *rule, const struct rc_port_prefix *sport,
				       const struct rc_port_prefix *dport, int reverse, struct rc_match *match)
{
	__builtin_memset(match, 0, sizeof(*match));
	rc_match_put_link(rule, reverse, match);
	rc_match_put_network(rule, reverse, match);
	rc_match_put_inner(rule, reverse, match);
	if (rule->fields & RINGCAP_MATCH_SPORT)
		rc_match_put_port(match, sport, reverse ? 32 : 48);
	if (rule->fields & RINGCAP_MATCH_DPORT)
		rc_match_put_port(match, dport, reverse ? 48 : 32);
	if (rule->fields & RINGCAP_MATCH_TCP_FLAGS) {
		rc_match_has(match, RC_HAS_TCP);
		rc_match_put(match, 1, (rc_u64)rule->tcp_mask << 16, (rc_u64)rule->tcp_flags << 16);
	}
}

static rc_inline int rc_match_is(const struct rc_match *match, const struct rc_key *key)
{
	rc_u32 i;

	for (i = 0; i < RC_KEY_WORDS; i++)
		if ((key->w[i] & match->mask.w[i]) != match->value.w[i])
			return 0;
	return 1;
}

#endif /* RC_RULE_H */
