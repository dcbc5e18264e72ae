/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The classifier: what a packet is, which flow it belongs to and which queue that flow goes to. Plain C without kernel
 * or libc dependencies, compiled unchanged into the module, the eBPF program, the unit tests and the fuzzer, so that a
 * packet gets the same answer in all of them. It is this header alone; includers add kmod/include/uapi to their path.
 *
 * It looks at no more than the first RC_PARSE_MAX bytes of a packet, counted on the wire; an engine must give it that
 * many, or the whole packet where it is shorter, or answers would depend on how an engine happens to hold a packet.
 */
#ifndef RC_CLASSIFY_H
#define RC_CLASSIFY_H

#include <linux/ringcap.h>

#include "types.h"

#define RC_PARSE_MAX 256

/*
 * The size of the buffer that an eBPF program must parse from. No byte at or beyond rc_frame.avail is used, but the
 * verifier, which knows of an offset only that it is below RC_PARSE_MAX, must see that the header there is in bounds.
 */
#define RC_PARSE_BUFFER (RC_PARSE_MAX + 64)

/**
 * struct rc_frame - a packet to parse
 * @data: from the first byte of the destination MAC address; in eBPF, RC_PARSE_BUFFER bytes that the verifier can see
 * @avail: readable bytes at @data: min(length, RC_PARSE_MAX)
 * @vlan_tpid: a tag that is not in @data because the device took it off, host order; 0 = none
 * @vlan_tci: that tag's control information, host order
 */
struct rc_frame {
	const rc_u8 *data;
	rc_u32 avail;
	rc_u16 vlan_tpid;
	rc_u16 vlan_tci;
};

/**
 * struct rc_flow - what rc_parse found; offsets are those on the wire, that is with the tag that was taken off put back
 * @saddr, @daddr: IPv4 in the first word, IPv6 in all four, network order; else zero
 * @smac, @dmac: MAC addresses in the low 48 bits, where @l3_off is 0: what is not IP is hashed by them; else zero
 * @sport, @dport: TCP, UDP or SCTP ports, host order; 0 for a fragment (first or later) and for other protocols
 * @l3_off, @l4_off: offsets of the IP and transport headers, 0 = none
 * @l3_proto: ethertype after all tags, host order; 0 = none: cut short before it, or an IEEE 802.3 length in its place
 * @vlan_tci, @vlan_tpid: the outermost tag, host order; tpid 0 = none
 * @inner_vid: VLAN id of a second tag, 0 = none
 * @l4_proto: IP protocol after IPv6 extension headers; of a later IPv6 fragment, what its fragment header names
 * @flags: RINGCAP_SLOT_VLAN, RINGCAP_SLOT_FRAGMENT
 *
 * An eBPF program should have it in a map's value: what is there the verifier does not follow, and looks at what comes
 * after rc_parse once rather than for every way through it.
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

/*
 * Fills @flow from @frame. Never uses a byte outside @frame->data[0 .. avail); a truncated header ends the parse there.
 */
static rc_inline void rc_parse(const struct rc_frame *frame, struct rc_flow *flow);

/*
 * The flow hash of @flow under @balance (enum ringcap_balance) and a 128-bit @key from rc_key_load. Balance types
 * that choose no queue by hash (ROUND_ROBIN), and unknown ones, give the hash of FLOW.
 */
static rc_inline rc_u32 rc_flow_hash(const struct rc_flow *flow, rc_u32 balance, const rc_u64 key[2]);

/* The two words of a key of RINGCAP_KEY_LEN bytes: little endian, so a plain copy on most machines. */
static rc_inline void rc_key_load(const rc_u8 *bytes, rc_u64 key[2])
{
	__builtin_memcpy(key, bytes, RINGCAP_KEY_LEN);
	key[0] = rc_le64(key[0]);
	key[1] = rc_le64(key[1]);
}

/*
 * For balance types that hash each packet in a way that it itself chooses: the one of rc_flow_hash that fits @flow.
 * Others stay what they are.
 */
static rc_inline rc_u32 rc_flow_balance(const struct rc_flow *flow, rc_u32 balance);

/* For BOTH_ENDS: the hashes of the source and of the destination address of @flow, each by itself. */
static rc_inline void rc_end_hashes(const struct rc_flow *flow, const rc_u64 key[2], rc_u32 hashes[2]);

/* The queue, 0 .. @nr_queues - 1, of a flow hash. */
static rc_inline rc_u32 rc_queue(rc_u32 hash, rc_u32 nr_queues)
{
	return (rc_u32)(((rc_u64)hash * nr_queues) >> 32);
}

#include "parse.h"
#include "hash.h"
#include "inner.h"

#endif /* RC_CLASSIFY_H */
