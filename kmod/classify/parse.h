/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parsing: Ethernet, VLAN tags, IPv4 and IPv6 up to the ports.
 *
 * Offsets in this file are those in the data. On the wire, everything behind the MAC addresses is rc_cursor.shift bytes
 * further on. The limit of RC_PARSE_MAX bytes applies on the wire: a packet must not be parsed further just because its
 * tag is held elsewhere.
 *
 * The length fields of IP are not checked. A packet shorter than they say is truncated, and a longer one has padding.
 * Padding is taken for ports only if a packet ends before its ports do.
 */
#ifndef RC_PARSE_H
#define RC_PARSE_H

#include <linux/ringcap.h>

#include "flow.h"

#define RC_TAGS_MAX	4	/* VLAN tags that are skipped, including one held elsewhere */
#define RC_EXTHDRS_MAX	6	/* IPv6 extension headers that are skipped */

#define RC_ETH_P_MIN	0x0600	/* below: an IEEE 802.3 length */
#define RC_ETH_P_IPV4	0x0800
#define RC_ETH_P_IPV6	0x86dd
#define RC_ETH_P_8021Q	0x8100
#define RC_ETH_P_8021AD	0x88a8
#define RC_ETH_P_QINQ1	0x9100	/* what switches sent before IEEE 802.1ad */

#define RC_IPPROTO_HOPOPTS	0
#define RC_IPPROTO_TCP		6
#define RC_IPPROTO_UDP		17
#define RC_IPPROTO_ROUTING	43
#define RC_IPPROTO_FRAGMENT	44
#define RC_IPPROTO_AH		51
#define RC_IPPROTO_NONE		59
#define RC_IPPROTO_DSTOPTS	60
#define RC_IPPROTO_SCTP		132

/**
 * struct rc_cursor - the parser's position
 * @data: the packet
 * @off: offset of the next header in @data
 * @end: first offset in @data that must not be read
 * @shift: added to an offset in @data to get the one on the wire: 4 with a tag held elsewhere, else 0
 */
struct rc_cursor {
	const rc_u8 *data;
	rc_u64 off;
	rc_u64 end;
	rc_u32 shift;
};

static rc_inline int rc_has(const struct rc_cursor *at, rc_u32 bytes)
{
	return at->off + bytes <= at->end;
}

/* The header at @at. The caller has checked that it is there. */
static rc_inline const rc_u8 *rc_here(const struct rc_cursor *at)
{
	rc_u64 off = at->off;

#ifdef __bpf__
	/* The caller's check relates two variables, which the verifier does not track. */
	asm volatile("%0 &= %1" : "+r"(off) : "i"(RC_PARSE_MAX - 1));
#endif
	return at->data + off;
}

/*
 * For the verifier, an offset must not be a sum of the lengths before it. It would follow each path through the headers
 * separately (190,000 instructions in Linux 6.1, and the program that contains this code has others). A value that is
 * read back from memory is just a number to the verifier. @place is any field of the flow that is not in use; it is 0
 * afterwards.
 */
static rc_inline void rc_forget(struct rc_cursor *at, rc_u16 *place)
{
#ifdef __bpf__
	*(volatile rc_u16 *)place = (rc_u16)at->off;
	at->off = *(volatile rc_u16 *)place;
	*place = 0;
#else
	(void)at;
	(void)place;
#endif
}

static rc_inline void rc_flow_clear(struct rc_flow *flow)
{
	flow->saddr[0] = flow->saddr[1] = flow->saddr[2] = flow->saddr[3] = 0;
	flow->daddr[0] = flow->daddr[1] = flow->daddr[2] = flow->daddr[3] = 0;
	flow->smac = flow->dmac = 0;
	flow->sport = flow->dport = 0;
	flow->l3_off = flow->l4_off = flow->l3_proto = 0;
	flow->vlan_tci = flow->vlan_tpid = flow->inner_vid = 0;
	flow->l4_proto = flow->flags = 0;
}

static rc_inline void rc_set_tag(struct rc_flow *flow, rc_u32 nr, rc_u16 tpid, rc_u16 tci)
{
	if (nr == 0) {
		flow->vlan_tpid = tpid;
		flow->vlan_tci = tci;
		flow->flags |= RINGCAP_SLOT_VLAN;
	} else if (nr == 1) {
		flow->inner_vid = tci & 0xfff;
	}
}

static rc_inline int rc_is_tag(rc_u16 type)
{
	return type == RC_ETH_P_8021Q || type == RC_ETH_P_8021AD || type == RC_ETH_P_QINQ1;
}

/* Skips tags; @type is the protocol of the first. Returns the ethertype after them, 0 if there is none. */
static rc_inline rc_u16 rc_parse_tags(struct rc_cursor *at, struct rc_flow *flow, rc_u16 type)
{
	rc_u32 nr = at->shift ? 1 : 0;
	const rc_u8 *p;

	for (; nr < RC_TAGS_MAX && rc_is_tag(type); nr++) {
		if (!rc_has(at, 2))
			return 0;
		p = rc_here(at);
		rc_set_tag(flow, nr, type, rc_get16(p));
		if (!rc_has(at, 4))
			return 0;
		type = rc_get16(p + 2);
		at->off += 4;
	}
	rc_forget(at, &flow->l4_off);
	return type;
}

static rc_inline void rc_parse_l4(const struct rc_cursor *at, struct rc_flow *flow, rc_u8 proto)
{
	const rc_u8 *p;

	if (!rc_has(at, 1))
		return;
	flow->l4_off = (rc_u16)(at->off + at->shift);
	if (flow->flags & RINGCAP_SLOT_FRAGMENT)
		return;	/* later fragments have no ports; with ports, the first would be separated from them */
	if (proto != RC_IPPROTO_TCP && proto != RC_IPPROTO_UDP && proto != RC_IPPROTO_SCTP)
		return;
	if (!rc_has(at, 4))
		return;
	p = rc_here(at);
	flow->sport = rc_get16(p);
	flow->dport = rc_get16(p + 2);
}

static rc_inline void rc_parse_ipv4(struct rc_cursor *at, struct rc_flow *flow)
{
	const rc_u8 *p;
	rc_u8 first, proto;
	rc_u16 frag;

	if (!rc_has(at, 20))
		return;
	p = rc_here(at);
	first = p[0];
	if ((rc_u8)(first - 0x45) > 0x4f - 0x45)	/* version 4, header length 5 .. 15 words */
		return;
	proto = p[9];
	flow->l3_off = (rc_u16)(at->off + at->shift);
	flow->l4_proto = proto;
	flow->saddr[0] = rc_load32(p + 12);
	flow->daddr[0] = rc_load32(p + 16);
	frag = rc_load16(p + 6);
	if (frag & rc_be16(0x3fff)) {
		flow->flags |= RINGCAP_SLOT_FRAGMENT;
		if (frag & rc_be16(0x1fff))
			return;
	}
	at->off += (first & 0xf) * 4;
	rc_parse_l4(at, flow, proto);
}

static rc_inline int rc_is_exthdr(rc_u8 proto)
{
	return proto == RC_IPPROTO_HOPOPTS || proto == RC_IPPROTO_ROUTING || proto == RC_IPPROTO_FRAGMENT ||
	       proto == RC_IPPROTO_AH || proto == RC_IPPROTO_DSTOPTS;
}

static rc_inline rc_u32 rc_exthdr_len(rc_u8 proto, rc_u8 len)
{
	if (proto == RC_IPPROTO_FRAGMENT)
		return 8;
	if (proto == RC_IPPROTO_AH)
		return (len + 2) * 4;
	return (len + 1) * 8;
}

/*
 * Skips extension headers, beginning with the one of protocol flow->l4_proto. Returns 0 if no transport header follows:
 * the chain is truncated, is too long, or ends, or this is a later fragment.
 *
 * A fragment header of a whole datagram (RFC 6946) is skipped like any other: there are no other fragments to be
 * separated from.
 */
static rc_inline int rc_parse_exthdrs(struct rc_cursor *at, struct rc_flow *flow)
{
	rc_u8 proto = flow->l4_proto;
	const rc_u8 *p;
	rc_u16 frag;
	rc_u32 nr;

	for (nr = 0; nr < RC_EXTHDRS_MAX && rc_is_exthdr(proto); nr++) {
		if (!rc_has(at, 8))
			return 0;
		p = rc_here(at);
		flow->l4_proto = p[0];
		if (proto == RC_IPPROTO_FRAGMENT) {
			frag = rc_load16(p + 2);
			if (frag & rc_be16(0xfff9))
				flow->flags |= RINGCAP_SLOT_FRAGMENT;
			if (frag & rc_be16(0xfff8))
				return 0;
		}
		at->off += rc_exthdr_len(proto, p[1]);
		rc_forget(at, &flow->l4_off);
		proto = flow->l4_proto;
	}
	return !rc_is_exthdr(proto) && proto != RC_IPPROTO_NONE;
}

static rc_inline void rc_parse_ipv6(struct rc_cursor *at, struct rc_flow *flow)
{
	const rc_u8 *p;
	int i;

	if (!rc_has(at, 40))
		return;
	p = rc_here(at);
	if ((p[0] & 0xf0) != 0x60)
		return;
	flow->l3_off = (rc_u16)(at->off + at->shift);
	flow->l4_proto = p[6];
	for (i = 0; i < 4; i++) {
		flow->saddr[i] = rc_load32(p + 8 + 4 * i);
		flow->daddr[i] = rc_load32(p + 24 + 4 * i);
	}
	at->off += 40;
	if (rc_parse_exthdrs(at, flow))
		rc_parse_l4(at, flow, flow->l4_proto);
}

static rc_inline void rc_parse_macs(const rc_u8 *p, struct rc_flow *flow)
{
	flow->dmac = (rc_u64)rc_get32(p) << 16 | rc_get16(p + 4);
	flow->smac = (rc_u64)rc_get32(p + 6) << 16 | rc_get16(p + 10);
}

#define RC_PLAIN_LEN (14 + 20 + 4)

/*
 * Parses what most packets are: IPv4 without tags, options or fragments, with TCP or UDP in it. The answer is the same
 * as that of rc_parse. For other packets, returns 0 and does not touch @flow. Reads @frame->avail only to check that
 * RC_PLAIN_LEN bytes are there.
 */
static rc_inline int rc_parse_plain(const struct rc_frame *frame, struct rc_flow *flow)
{
	const rc_u8 *p = frame->data;
	rc_u32 ports;

	if (frame->vlan_tpid || frame->avail < RC_PLAIN_LEN)
		return 0;
	if (rc_load16(p + 12) != rc_be16(RC_ETH_P_IPV4) || p[14] != 0x45 || (rc_load16(p + 20) & rc_be16(0x3fff)))
		return 0;
	if (p[23] != RC_IPPROTO_TCP && p[23] != RC_IPPROTO_UDP)
		return 0;
	rc_flow_clear(flow);
	flow->l3_proto = RC_ETH_P_IPV4;
	flow->l3_off = 14;
	flow->l4_off = 34;
	flow->l4_proto = p[23];
	flow->saddr[0] = rc_load32(p + 26);
	flow->daddr[0] = rc_load32(p + 30);
	ports = rc_get32(p + 34);
	flow->sport = (rc_u16)(ports >> 16);
	flow->dport = (rc_u16)ports;
	return 1;
}

/* Fills @flow from @frame. Never uses a byte outside @frame->data[0 .. avail); parsing ends at a truncated header. */
static rc_inline void rc_parse(const struct rc_frame *frame, struct rc_flow *flow)
{
	struct rc_cursor at = { .data = frame->data, .off = 14, .end = frame->avail };
	rc_u16 type;

#ifndef __bpf__	/* for the verifier it is one more path */
	if (rc_parse_plain(frame, flow))
		return;
#endif
	rc_flow_clear(flow);
	if (frame->vlan_tpid) {
		at.shift = 4;
		rc_set_tag(flow, 0, frame->vlan_tpid, frame->vlan_tci);
	}
	if (at.end > RC_PARSE_MAX - at.shift)
		at.end = RC_PARSE_MAX - at.shift;
	if (at.end < 12)
		return;
	if (at.end >= 14) {
		type = rc_get16(at.data + 12);
		if (type != RC_ETH_P_IPV4 && type != RC_ETH_P_IPV6)
			type = rc_parse_tags(&at, flow, type);
		if (type >= RC_ETH_P_MIN)
			flow->l3_proto = type;
		if (type == RC_ETH_P_IPV4)
			rc_parse_ipv4(&at, flow);
		else if (type == RC_ETH_P_IPV6)
			rc_parse_ipv6(&at, flow);
	}
	if (!flow->l3_off)
		rc_parse_macs(at.data, flow);
}

#endif /* RC_PARSE_H */
