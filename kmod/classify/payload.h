/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a packet's payload begins:
 *
 *	TCP, UDP, UDP-Lite, SCTP, ICMP, ICMPv6	behind that header; SCTP's chunks are payload
 *	another protocol over IP		behind the IP header and the extension headers
 *	later fragments				behind the IP header; for IPv6 the fixed one, without extension headers
 *	not IP					behind the ethertype or length, that is behind all VLAN tags
 *
 * It ends where the packet ends by IP's length: padding of short frames is not payload. It ends with the packet if the
 * packet is shorter, or if IP's length makes no sense (segments that the stack has merged). Packets in tunnels are
 * payload of the outer packet.
 */
#ifndef RC_PAYLOAD_H
#define RC_PAYLOAD_H

#include "classify.h"

#define RC_IPPROTO_ICMP		1
#define RC_IPPROTO_ICMPV6	58
#define RC_IPPROTO_UDPLITE	136

/* Offsets on the wire; @from <= @to. */
struct rc_payload {
	rc_u32 from;
	rc_u32 to;
};

/* The byte at @off on the wire, or @absent where it cannot be read. */
static rc_inline rc_u8 rc_payload_byte(const struct rc_frame *frame, rc_u32 off, rc_u8 absent)
{
	off -= frame->vlan_tpid ? 4 : 0;
	return off < frame->avail ? frame->data[off] : absent;
}

static rc_inline rc_u32 rc_payload_word(const struct rc_frame *frame, rc_u32 off)
{
	return (rc_u32)rc_payload_byte(frame, off, 0) << 8 | rc_payload_byte(frame, off + 1, 0);
}

/* Length of the transport header of @flow, which has one; 20 for a TCP header that is invalid or cannot be read. */
static rc_inline rc_u32 rc_payload_l4_len(const struct rc_frame *frame, const struct rc_flow *flow)
{
	rc_u32 words;

	switch (flow->l4_proto) {
	case RC_IPPROTO_TCP:
		words = rc_payload_byte(frame, flow->l4_off + 12u, 0x50) >> 4;
		return words < 5 ? 20 : words * 4;
	case RC_IPPROTO_UDP:
	case RC_IPPROTO_UDPLITE:
	case RC_IPPROTO_ICMP:
	case RC_IPPROTO_ICMPV6:
		return 8;
	case RC_IPPROTO_SCTP:
		return 12;
	}
	return 0;
}

static rc_inline rc_u32 rc_payload_from(const struct rc_frame *frame, const struct rc_flow *flow)
{
	rc_u32 off = 12, tags;

	if (flow->l4_off)
		return flow->l4_off + rc_payload_l4_len(frame, flow);
	if (flow->l3_off && flow->l3_proto == RC_ETH_P_IPV4)
		return flow->l3_off + (rc_payload_byte(frame, flow->l3_off, 0x45) & 0xfu) * 4;
	if (flow->l3_off)
		return flow->l3_off + 40u;
	if (frame->vlan_tpid)
		off += 4;
	for (tags = frame->vlan_tpid ? 1 : 0; tags < RC_TAGS_MAX; tags++) {
		if (!rc_is_tag((rc_u16)rc_payload_word(frame, off)))
			break;
		off += 4;
	}
	return off + 2;
}

static rc_inline rc_u32 rc_payload_to(const struct rc_frame *frame, const struct rc_flow *flow, rc_u32 len)
{
	rc_u32 header = flow->l3_proto == RC_ETH_P_IPV4 ? 20 : 40, said;

	if (!flow->l3_off)
		return len;
	if (flow->l3_proto == RC_ETH_P_IPV4)
		said = rc_payload_word(frame, flow->l3_off + 2u);
	else
		said = rc_payload_word(frame, flow->l3_off + 4u) + 40;
	/* 0 in IPv4, or 0 behind the header of IPv6: the packet is longer than the field can hold. */
	if (said < header || (header == 40 && said == 40 && flow->l4_proto != RC_IPPROTO_NONE))
		return len;
	return flow->l3_off + said < len ? flow->l3_off + said : len;
}

/* The payload of a packet of @len bytes on the wire, from the parsed part of it. */
static rc_inline struct rc_payload rc_payload_find(const struct rc_frame *frame, const struct rc_flow *flow, rc_u32 len)
{
	struct rc_payload payload;

	payload.to = rc_payload_to(frame, flow, len);
	payload.from = rc_payload_from(frame, flow);
	if (payload.from > payload.to)
		payload.from = payload.to;
	return payload;
}

#endif /* RC_PAYLOAD_H */
