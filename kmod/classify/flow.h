/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parser's input, a frame, and its result, a flow. */
#ifndef RC_FLOW_H
#define RC_FLOW_H

#include "types.h"

#define RC_PARSE_MAX 256

/*
 * The size of the buffer that an eBPF program must parse from. No byte at or beyond rc_frame.avail is used. But the
 * verifier knows of an offset only that it is below RC_PARSE_MAX, and must see that a header there is in bounds.
 */
#define RC_PARSE_BUFFER (RC_PARSE_MAX + 64)

/**
 * struct rc_frame - a packet to parse
 * @data: from the first byte of the destination MAC address; in eBPF, RC_PARSE_BUFFER bytes that the verifier can see
 * @avail: readable bytes at @data: min(length, RC_PARSE_MAX)
 * @vlan_tpid: a tag that is not in @data because the device stripped it, host order; 0 = none
 * @vlan_tci: that tag's control information, host order
 */
struct rc_frame {
	const rc_u8 *data;
	rc_u32 avail;
	rc_u16 vlan_tpid;
	rc_u16 vlan_tci;
};

/**
 * struct rc_flow - the result of rc_parse; offsets are those on the wire, that is with a stripped tag put back
 * @saddr, @daddr: IPv4 in the first word, IPv6 in all four, network order; else zero
 * @smac, @dmac: MAC addresses in the low 48 bits if @l3_off is 0, because a packet that is not IP is hashed by them;
 *	else zero
 * @sport, @dport: TCP, UDP or SCTP ports, host order; 0 for a fragment (first or later) and for other protocols
 * @l3_off, @l4_off: offsets of the IP and transport headers, 0 = none
 * @l3_proto: ethertype after all tags, host order; 0 = none: the packet ends before it, or has an IEEE 802.3 length
 *	there
 * @vlan_tci, @vlan_tpid: the outermost tag, host order; tpid 0 = none
 * @inner_vid: VLAN id of a second tag, 0 = none
 * @l4_proto: IP protocol after IPv6 extension headers; for a later IPv6 fragment, the one that its fragment header
 *	names
 * @flags: RINGCAP_SLOT_VLAN, RINGCAP_SLOT_FRAGMENT
 *
 * An eBPF program should have it in a map's value, because the verifier does not track the contents of map values. So
 * it verifies the code after rc_parse once, and not for every path through rc_parse.
 */
struct rc_flow {
	rc_u32 saddr[4];
	rc_u32 daddr[4];
	rc_u64 smac;
	rc_u64 dmac;
	rc_u16 sport;
	rc_u16 dport;
	rc_u16 l3_off;
	rc_u16 l4_off;
	rc_u16 l3_proto;
	rc_u16 vlan_tci;
	rc_u16 vlan_tpid;
	rc_u16 inner_vid;
	rc_u8 l4_proto;
	rc_u8 flags;
};

#endif /* RC_FLOW_H */
