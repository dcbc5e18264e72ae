/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses the packets in tunnels: MPLS labels, GRE, ERSPAN, VXLAN, Geneve, GTP-U and IP in IP. At most RC_TUNNELS_MAX
 * tunnels may be nested. Called after rc_parse, only if the result is needed.
 *
 * Each packet on the way in is parsed within RC_PARSE_MAX bytes of its own beginning, including the header of its
 * tunnel. So an engine must give the first RC_INNER_MAX bytes of a packet.
 *
 * A packet that is truncated, not understood, or a fragment is not entered: the packet around it is then the innermost.
 * So all fragments of a tunnel's packet stay together. A frame that is damaged inside belongs to the tunnel's own flow.
 *
 * A tunnel's id is not part of the flow: GTP-U and GRE have a different id for each direction.
 */
#ifndef RC_INNER_H
#define RC_INNER_H

#include "flow.h"
#include "parse.h"

#define RC_TUNNELS_MAX	2
#define RC_INNER_MAX	(RC_PARSE_MAX * (1 + RC_TUNNELS_MAX))
#define RC_INNER_BUFFER	(RC_INNER_MAX + 64)	/* for eBPF, as RC_PARSE_BUFFER */

#define RC_LABELS_MAX		8	/* MPLS labels that are skipped */
#define RC_GTP_EXTHDRS_MAX	4	/* GTP-U extension headers that are skipped */

#define RC_IPPROTO_IPIP		4
#define RC_IPPROTO_IPV6		41
#define RC_IPPROTO_GRE		47
#define RC_IPPROTO_MPLS		137

#define RC_ETH_P_TEB		0x6558	/* transparent Ethernet bridging */
#define RC_ETH_P_MPLS_UC	0x8847
#define RC_ETH_P_MPLS_MC	0x8848
#define RC_ETH_P_ERSPAN		0x88be	/* types I and II */
#define RC_ETH_P_ERSPAN3	0x22eb

#define RC_PORT_GTPU	2152
#define RC_PORT_VXLAN	4789
#define RC_PORT_GENEVE	6081

enum rc_tunnel {
	RC_TUNNEL_NONE,
	RC_TUNNEL_MPLS,
	RC_TUNNEL_IPIP,
	RC_TUNNEL_GRE,
	RC_TUNNEL_ERSPAN,
	RC_TUNNEL_VXLAN,
	RC_TUNNEL_GENEVE,
	RC_TUNNEL_GTPU,
};

/**
 * struct rc_way_in - a tunnel and the packet in it
 * @flow: that packet as rc_parse describes it, offsets from the beginning of the outermost one
 * @tunnel_id: VXLAN and Geneve VNI, GRE key (NVGRE's: VSID and flow id), ERSPAN session, GTP-U TEID
 * @tunnel: enum rc_tunnel
 * @has_id: @tunnel_id is valid: 0 is an id too
 */
struct rc_way_in {
	struct rc_flow flow;
	rc_u32 tunnel_id;
	rc_u8 tunnel;
	rc_u8 has_id;
};

/**
 * struct rc_inner - the result of rc_parse_inner; valid if that returned true
 * @found: the innermost packet and its tunnel; @found.tunnel_id is the id of the innermost tunnel that has one
 * @next, @place: for rc_parse_inner itself
 *
 * An eBPF program should have it in a map's value, see struct rc_flow.
 */
struct rc_inner {
	struct rc_way_in found;
	struct rc_way_in next;
	rc_u16 place;
};

/*
 * Parses the packet inside the one at @frame. @flow is the result of rc_parse for that one. Returns whether there is an
 * inner packet. @frame->avail is min(length, RC_INNER_MAX) here; no byte behind it is used.
 */
static rc_inline int rc_parse_inner(const struct rc_frame *frame, const struct rc_flow *flow, struct rc_inner *inner);

/* The kind of data behind a tunnel's header. */
enum rc_inside {
	RC_INSIDE_NOTHING,
	RC_INSIDE_IP,
	RC_INSIDE_ETHERNET,
};

static rc_inline void rc_set_tunnel(struct rc_inner *inner, rc_u8 tunnel)
{
	inner->next.tunnel = tunnel;
}

static rc_inline void rc_set_tunnel_id(struct rc_inner *inner, rc_u32 id)
{
	inner->next.tunnel_id = id;
	inner->next.has_id = 1;
}

static rc_inline int rc_is_mpls(rc_u16 type)
{
	return type == RC_ETH_P_MPLS_UC || type == RC_ETH_P_MPLS_MC;
}

/*
 * Skips labels. Only routers know what a label stands for. So data that begins with an IP version is IP, and other data
 * is not.
 */
static rc_inline rc_u32 rc_open_labels(struct rc_cursor *at, struct rc_inner *inner)
{
	const rc_u8 *p;
	rc_u32 nr;

	for (nr = 0; nr < RC_LABELS_MAX; nr++) {
		if (!rc_has(at, 4))
			return RC_INSIDE_NOTHING;
		p = rc_here(at);
		at->off += 4;
		if (p[2] & 1) {	/* bottom of the stack */
			rc_set_tunnel(inner, RC_TUNNEL_MPLS);
			return RC_INSIDE_IP;
		}
	}
	return RC_INSIDE_NOTHING;
}

/* Labels behind an Ethernet header and its tags; rc_parse has checked that those are there. */
static rc_inline rc_u32 rc_open_mpls(struct rc_cursor *at, struct rc_inner *inner)
{
	rc_u32 nr;

	at->off = 12;
	for (nr = 0; nr < RC_TAGS_MAX && rc_has(at, 2) && rc_is_tag(rc_get16(rc_here(at))); nr++)
		at->off += 4;
	at->off += 2;
	rc_forget(at, &inner->place);
	return rc_open_labels(at, inner);
}

/* Types I, which has no header, and II. */
static rc_inline rc_u32 rc_open_erspan2(struct rc_cursor *at, struct rc_inner *inner, int has_header)
{
	const rc_u8 *p;

	rc_set_tunnel(inner, RC_TUNNEL_ERSPAN);
	if (!has_header)
		return RC_INSIDE_ETHERNET;
	if (!rc_has(at, 8))
		return RC_INSIDE_NOTHING;
	p = rc_here(at);
	if (p[0] >> 4 != 1)
		return RC_INSIDE_NOTHING;
	rc_set_tunnel_id(inner, rc_get16(p + 2) & 0x3ff);
	at->off += 8;
	return RC_INSIDE_ETHERNET;
}

static rc_inline rc_u32 rc_open_erspan3(struct rc_cursor *at, struct rc_inner *inner)
{
	const rc_u8 *p;
	rc_u8 frame_type;

	if (!rc_has(at, 12))
		return RC_INSIDE_NOTHING;
	p = rc_here(at);
	frame_type = p[10] >> 2 & 0x1f;
	if (p[0] >> 4 != 2 || (frame_type && frame_type != 2))
		return RC_INSIDE_NOTHING;
	rc_set_tunnel(inner, RC_TUNNEL_ERSPAN);
	rc_set_tunnel_id(inner, rc_get16(p + 2) & 0x3ff);
	at->off += p[11] & 1 ? 20 : 12;	/* with a platform's own subheader */
	return frame_type ? RC_INSIDE_IP : RC_INSIDE_ETHERNET;
}

static rc_inline rc_u32 rc_open_gre(struct rc_cursor *at, struct rc_inner *inner)
{
	rc_u16 flags, type;
	const rc_u8 *p;

	if (!rc_has(at, 4))
		return RC_INSIDE_NOTHING;
	p = rc_here(at);
	flags = rc_get16(p);
	type = rc_get16(p + 2);
	if (flags & 0x4007)	/* source routes, and PPTP's version */
		return RC_INSIDE_NOTHING;
	at->off += flags & 0x8000 ? 8 : 4;	/* checksum */
	if (flags & 0x2000) {
		if (!rc_has(at, 4))
			return RC_INSIDE_NOTHING;
		rc_set_tunnel_id(inner, rc_get32(rc_here(at)));
		at->off += 4;
	}
	at->off += flags & 0x1000 ? 4 : 0;	/* sequence number */
	rc_forget(at, &inner->place);
	if (type == RC_ETH_P_ERSPAN)
		return rc_open_erspan2(at, inner, flags & 0x1000);
	if (type == RC_ETH_P_ERSPAN3)
		return rc_open_erspan3(at, inner);
	rc_set_tunnel(inner, RC_TUNNEL_GRE);
	if (rc_is_mpls(type))
		return rc_open_labels(at, inner);
	if (type == RC_ETH_P_TEB)
		return RC_INSIDE_ETHERNET;
	return type == RC_ETH_P_IPV4 || type == RC_ETH_P_IPV6 ? RC_INSIDE_IP : RC_INSIDE_NOTHING;
}

static rc_inline rc_u32 rc_open_vxlan(struct rc_cursor *at, struct rc_inner *inner)
{
	const rc_u8 *p;

	if (!rc_has(at, 8))
		return RC_INSIDE_NOTHING;
	p = rc_here(at);
	if (!(p[0] & 0x08))	/* no VNI */
		return RC_INSIDE_NOTHING;
	rc_set_tunnel(inner, RC_TUNNEL_VXLAN);
	rc_set_tunnel_id(inner, rc_get32(p + 4) >> 8);
	at->off += 8;
	return RC_INSIDE_ETHERNET;
}

static rc_inline rc_u32 rc_open_geneve(struct rc_cursor *at, struct rc_inner *inner)
{
	const rc_u8 *p;
	rc_u16 type;

	if (!rc_has(at, 8))
		return RC_INSIDE_NOTHING;
	p = rc_here(at);
	if (p[0] >> 6)	/* version */
		return RC_INSIDE_NOTHING;
	rc_set_tunnel(inner, RC_TUNNEL_GENEVE);
	rc_set_tunnel_id(inner, rc_get32(p + 4) >> 8);
	type = rc_get16(p + 2);
	at->off += 8 + (p[0] & 0x3f) * 4;
	rc_forget(at, &inner->place);
	if (type == RC_ETH_P_TEB)
		return RC_INSIDE_ETHERNET;
	return type == RC_ETH_P_IPV4 || type == RC_ETH_P_IPV6 ? RC_INSIDE_IP : RC_INSIDE_NOTHING;
}

/* Skips extension headers. Their length is in units of 4 bytes, and their last byte is the type of the next one. */
static rc_inline int rc_skip_gtp_exthdrs(struct rc_cursor *at, struct rc_inner *inner, rc_u8 type)
{
	rc_u32 nr;
	rc_u8 len;

	for (nr = 0; nr < RC_GTP_EXTHDRS_MAX && type; nr++) {
		if (!rc_has(at, 4))
			return 0;
		len = rc_here(at)[0];
		if (!len)
			return 0;
		at->off += len * 4;
		rc_forget(at, &inner->place);
		if (at->off > at->end)
			return 0;
		at->off--;
		type = rc_here(at)[0];
		at->off++;
	}
	return !type;
}

static rc_inline rc_u32 rc_open_gtpu(struct rc_cursor *at, struct rc_inner *inner)
{
	const rc_u8 *p;
	rc_u8 flags, next = 0;

	if (!rc_has(at, 8))
		return RC_INSIDE_NOTHING;
	p = rc_here(at);
	flags = p[0];
	if ((flags & 0xf0) != 0x30 || p[1] != 255)	/* version 1, GTP and not GTP', a user's packet */
		return RC_INSIDE_NOTHING;
	rc_set_tunnel(inner, RC_TUNNEL_GTPU);
	rc_set_tunnel_id(inner, rc_get32(p + 4));
	at->off += 8;
	if (flags & 0x07) {	/* any of sequence number, N-PDU number and extension headers makes room for all */
		if (!rc_has(at, 4))
			return RC_INSIDE_NOTHING;
		next = flags & 0x04 ? rc_here(at)[3] : 0;
		at->off += 4;
	}
	rc_forget(at, &inner->place);
	return rc_skip_gtp_exthdrs(at, inner, next) ? RC_INSIDE_IP : RC_INSIDE_NOTHING;
}

static rc_inline rc_u32 rc_open_udp(struct rc_cursor *at, struct rc_inner *inner, rc_u16 port)
{
	at->off += 8;
	if (port == RC_PORT_VXLAN)
		return rc_open_vxlan(at, inner);
	if (port == RC_PORT_GENEVE)
		return rc_open_geneve(at, inner);
	return port == RC_PORT_GTPU ? rc_open_gtpu(at, inner) : RC_INSIDE_NOTHING;
}

/* Moves @at from the beginning of the packet of @flow to the data inside that packet. */
static rc_inline rc_u32 rc_open_tunnel(struct rc_cursor *at, const struct rc_flow *flow, struct rc_inner *inner)
{
	rc_u8 proto = flow->l4_proto;

	if (!flow->l3_off)
		return rc_is_mpls(flow->l3_proto) ? rc_open_mpls(at, inner) : RC_INSIDE_NOTHING;
	if (!flow->l4_off || (flow->flags & RINGCAP_SLOT_FRAGMENT))
		return RC_INSIDE_NOTHING;
	at->off = flow->l4_off - at->shift;
	if (proto == RC_IPPROTO_UDP)
		return rc_open_udp(at, inner, flow->dport);
	if (proto == RC_IPPROTO_GRE)
		return rc_open_gre(at, inner);
	if (proto == RC_IPPROTO_MPLS)
		return rc_open_labels(at, inner);
	if (proto != RC_IPPROTO_IPIP && proto != RC_IPPROTO_IPV6)
		return RC_INSIDE_NOTHING;
	rc_set_tunnel(inner, RC_TUNNEL_IPIP);
	return RC_INSIDE_IP;
}

/* A packet without an Ethernet header, which begins at @at. */
static rc_inline void rc_parse_ip(struct rc_cursor *at, struct rc_flow *flow)
{
	rc_u8 version;

	rc_flow_clear(flow);
	if (!rc_has(at, 1))
		return;
	version = rc_here(at)[0] >> 4;
	if (version == 4) {
		flow->l3_proto = RC_ETH_P_IPV4;
		rc_parse_ipv4(at, flow);
	} else if (version == 6) {
		flow->l3_proto = RC_ETH_P_IPV6;
		rc_parse_ipv6(at, flow);
	}
}

static rc_inline void rc_parse_ethernet(const struct rc_cursor *at, struct rc_flow *flow)
{
	struct rc_frame frame = { .data = at->data, .avail = (rc_u32)at->end };

	rc_parse(&frame, flow);
	if (flow->l3_off)
		flow->l3_off = (rc_u16)(flow->l3_off + at->shift);
	if (flow->l4_off)
		flow->l4_off = (rc_u16)(flow->l4_off + at->shift);
}

/* Whether the flow was understood up to its addresses: IP addresses, or MAC addresses if the packet is not IP. */
static rc_inline int rc_flow_is_whole(const struct rc_flow *flow)
{
	return flow->l3_off ||
	       (flow->l3_proto && flow->l3_proto != RC_ETH_P_IPV4 && flow->l3_proto != RC_ETH_P_IPV6);
}

/*
 * Moves @at, and @avail with it, from the packet of @flow to the one inside it, and fills inner->next from that one.
 * Returns false if there is none.
 */
static rc_inline int rc_step_in(struct rc_cursor *at, rc_u64 *avail, const struct rc_flow *flow, struct rc_inner *inner)
{
	rc_u32 inside = rc_open_tunnel(at, flow, inner);
	rc_u64 off;

	rc_forget(at, &inner->place);
	if (inside == RC_INSIDE_NOTHING || at->off >= at->end)
		return 0;
	off = at->off;
#ifdef __bpf__
	asm volatile("%0 &= %1" : "+r"(off) : "i"(RC_PARSE_MAX - 1));
#endif
	at->data += off;
	at->shift += (rc_u32)off;
	at->off = 0;
	*avail -= off;
	at->end = *avail < RC_PARSE_MAX ? *avail : RC_PARSE_MAX;
	if (inside == RC_INSIDE_IP)
		rc_parse_ip(at, &inner->next.flow);
	else
		rc_parse_ethernet(at, &inner->next.flow);
	return rc_flow_is_whole(&inner->next.flow);
}

static rc_inline int rc_parse_inner(const struct rc_frame *frame, const struct rc_flow *flow, struct rc_inner *inner)
{
	struct rc_cursor at = { .data = frame->data, .shift = frame->vlan_tpid ? 4 : 0 };
	rc_u64 avail = frame->avail;
	rc_u32 nr;

	at.end = avail < RC_PARSE_MAX - at.shift ? avail : RC_PARSE_MAX - at.shift;
	inner->next.tunnel = RC_TUNNEL_NONE;
	inner->next.tunnel_id = 0;
	inner->next.has_id = 0;
	inner->place = 0;
	for (nr = 0; nr < RC_TUNNELS_MAX && rc_step_in(&at, &avail, nr ? &inner->found.flow : flow, inner); nr++)
		inner->found = inner->next;
	return nr > 0;
}

#endif /* RC_INNER_H */
