/* SPDX-License-Identifier: GPL-2.0-only */
/* A packet on its way from a tap to the queues. */
#ifndef RC_PACKET_H
#define RC_PACKET_H

#include <linux/if_vlan.h>
#include <linux/skbuff.h>

#include "classify/classify.h"

/* How far a packet has been parsed. */
enum rc_parsed {
	RC_PARSED_NOTHING,
	RC_PARSED_OUTER,	/* but not for inner packets */
	RC_PARSED_NO_INNER,	/* there is no inner packet */
	RC_PARSED_INNER,
};

/**
 * struct rc_packet - what is known of a packet, collected as it is needed
 * @skb: data points to the MAC header while the packet is processed, except on the fast path (receive.h)
 * @data: the packet from its MAC header on, without a tag that was stripped; the first @linear bytes are contiguous
 * @ts_ns: time of capture, 0 until it is first needed
 * @len: bytes on the wire, including the VLAN tag that the stack stripped
 * @snaplen: how many of them the ring wants at most
 * @ifindex: tapped interface
 * @hash: for the current cluster, 0 where it needs none
 * @rule: id of the wildcard rule that decided on it, 0 = none
 * @rx_queue: the device's receive queue; 0 for a packet that is sent
 * @vlan_tpid, @vlan_tci: the tag that was stripped, host order; both 0 = none
 * @flags: RINGCAP_SLOT_*, except the flags that the parser sets, and RINGCAP_SLOT_HASHED where several clusters may get
 *	the packet
 * @parsed: enum rc_parsed: whether @flow and @inner are valid
 * @hashed: RINGCAP_SLOT_HASHED where @hash is valid for the current cluster and @flags does not say so, else 0
 * @hdr_len: header length of the slot that the cluster wants; @flow is valid unless that is the short one
 */
struct rc_packet {
	struct sk_buff *skb;
	const u8 *data;
	u64 ts_ns;
	u32 linear;
	u32 len;
	u32 snaplen;
	u32 hash;
	u32 ifindex;
	u32 rule;
	u16 rx_queue;
	u16 vlan_tpid;
	u16 vlan_tci;
	u8 flags;
	u8 parsed;
	u8 hashed;
	u8 hdr_len;
	struct rc_flow flow;
	struct rc_way_in inner;
};

/*
 * For variables that are filled only as needed. A kernel that zeroes all variables on the stack would spend half as
 * much time on that as on copying a small packet.
 */
#if __has_attribute(__uninitialized__)
#define rc_uninitialized __attribute__((__uninitialized__))
#else
#define rc_uninitialized
#endif

/*
 * The receive queue, where the driver has recorded it. In an skb that is sent the same field holds the transmit
 * queue.
 */
static __always_inline u16 rc_skb_rx_queue(const struct sk_buff *skb)
{
	return skb_rx_queue_recorded(skb) ? skb_get_rx_queue(skb) : 0;
}

/*
 * Flags that follow from the skb's payload. A linear skb with its checksum done was not merged; a scratch skb is such
 * an skb.
 */
static __always_inline u8 rc_skb_flags(const struct sk_buff *skb)
{
	u8 flags = 0;

	if (likely(skb->ip_summed != CHECKSUM_PARTIAL && !skb_is_nonlinear(skb)))
		return 0;
	if (skb->ip_summed == CHECKSUM_PARTIAL)
		flags |= RINGCAP_SLOT_CSUM_PARTIAL;
	if (skb_is_gso(skb))
		flags |= RINGCAP_SLOT_MERGED;
	return flags;
}

/*
 * A received packet with all its @len bytes at @data, and no tag outside of them. Does not set the interface's number.
 */
static __always_inline void rc_packet_init_plain(struct rc_packet *pkt, struct sk_buff *skb, const u8 *data, u32 len,
						 u32 snaplen, u16 rx_queue)
{
	pkt->skb = skb;
	pkt->data = data;
	pkt->ts_ns = 0;
	pkt->linear = len;
	pkt->len = len;
	pkt->snaplen = snaplen;
	pkt->rule = 0;
	pkt->rx_queue = rx_queue;
	pkt->vlan_tpid = 0;
	pkt->vlan_tci = 0;
	pkt->flags = 0;
	pkt->parsed = RC_PARSED_NOTHING;
}

/*
 * The same for an skb as it comes from the stack or a driver: its data does not start at the MAC header yet. Returns
 * false if it is not such a packet.
 */
static __always_inline bool rc_packet_init_received(struct rc_packet *pkt, struct sk_buff *skb, u32 snaplen,
						    u16 rx_queue)
{
	const u8 *data = skb_mac_header(skb);
	u32 pulled = skb->data - data;

	/* Without a MAC header, @pulled is an invalid large number. */
	if (unlikely(skb_vlan_tag_present(skb) || skb_is_nonlinear(skb) || pulled > ETH_HLEN))
		return false;
	rc_packet_init_plain(pkt, skb, data, skb->len + pulled, snaplen, rx_queue);
	pkt->flags = rc_skb_flags(skb);
	return true;
}

static __always_inline void rc_packet_init(struct rc_packet *pkt, struct sk_buff *skb, u32 wire_len, u32 snaplen,
					   u32 ifindex)
{
	bool outgoing = skb->pkt_type == PACKET_OUTGOING;

	rc_packet_init_plain(pkt, skb, skb->data, wire_len, snaplen, outgoing ? 0 : rc_skb_rx_queue(skb));
	pkt->ifindex = ifindex;
	pkt->linear = skb_headlen(skb);
	pkt->flags = rc_skb_flags(skb);
	if (outgoing)
		pkt->flags |= RINGCAP_SLOT_OUTGOING;
	if (unlikely(skb_vlan_tag_present(skb))) {
		pkt->vlan_tpid = ntohs(skb->vlan_proto);
		pkt->vlan_tci = skb_vlan_tag_get(skb);
		pkt->flags |= RINGCAP_SLOT_VLAN;
	}
}

/*
 * Copies what a queue needs of a packet. The compiler keeps a packet in registers if its address is passed to no
 * function. Then this copy is the only place where the packet is written to memory.
 */
static __always_inline void rc_packet_copy_known(struct rc_packet *to, const struct rc_packet *from)
{
	to->skb = from->skb;
	to->data = from->data;
	to->ts_ns = from->ts_ns;
	to->linear = from->linear;
	to->len = from->len;
	to->snaplen = from->snaplen;
	to->hash = from->hash;
	to->ifindex = from->ifindex;
	to->rx_queue = from->rx_queue;
	to->vlan_tpid = from->vlan_tpid;
	to->vlan_tci = from->vlan_tci;
	to->flags = from->flags;
	to->hashed = from->hashed;
	to->hdr_len = from->hdr_len;
	if (from->hdr_len == RINGCAP_SLOT_SHORT)
		return;
	to->rule = from->rule;
	to->flow = from->flow;
}

/* For packets in pieces: the first @frame->avail contiguous bytes, or as many of them as can be read. */
void rc_packet_gather(const struct sk_buff *skb, struct rc_frame *frame);

/* Copies @n bytes of the packet into @to, with the VLAN tag where it was; false if they could not be read. */
bool rc_packet_copy_slow(const struct sk_buff *skb, u8 *to, u32 n);

/*
 * The part of the packet that is parsed. Bytes that cannot be read are treated as absent. Valid until the next call
 * on this CPU.
 */
static __always_inline void rc_packet_frame(const struct rc_packet *pkt, struct rc_frame *frame)
{
	const struct sk_buff *skb = pkt->skb;

	frame->data = pkt->data;
	frame->avail = min_t(u32, skb->len, RC_PARSE_MAX);
	frame->vlan_tpid = pkt->vlan_tpid;
	frame->vlan_tci = pkt->vlan_tci;
	if (unlikely(pkt->linear < frame->avail)) {
		/* So that only this copy has to be in memory. */
		struct rc_frame pieces = *frame;

		rc_packet_gather(skb, &pieces);
		*frame = pieces;
	}
}

/* Fills @pkt->flow. */
static __always_inline void rc_packet_parse(struct rc_packet *pkt)
{
	struct rc_frame frame;

	rc_packet_frame(pkt, &frame);
	rc_parse(&frame, &pkt->flow);
	pkt->parsed = RC_PARSED_OUTER;
}

/* The same for plain packets, if the parsed part is in one piece; returns false for others. */
static __always_inline bool rc_packet_parse_plain(struct rc_packet *pkt)
{
	struct rc_frame frame = { .data = pkt->data, .avail = pkt->linear, .vlan_tpid = pkt->vlan_tpid };

	if (!rc_parse_plain(&frame, &pkt->flow))
		return false;
	pkt->parsed = RC_PARSED_OUTER;
	return true;
}

/* The innermost packet in @pkt, which is parsed, and its tunnel; NULL if it is no tunnel's. Parses this only once. */
const struct rc_way_in *rc_packet_inner(struct rc_packet *pkt);

static __always_inline void rc_packet_move32(u8 *to, const u8 *from)
{
	u64 a = get_unaligned((const u64 *)from), b = get_unaligned((const u64 *)(from + 8));
	u64 c = get_unaligned((const u64 *)(from + 16)), d = get_unaligned((const u64 *)(from + 24));

	put_unaligned(a, (u64 *)to);
	put_unaligned(b, (u64 *)(to + 8));
	put_unaligned(c, (u64 *)(to + 16));
	put_unaligned(d, (u64 *)(to + 24));
}

/* Most packets are small: this avoids a call, and the choice of a copy method, for so few bytes. */
static __always_inline void rc_packet_move(u8 *to, const u8 *from, size_t n)
{
	if (n - 32 <= 32) {
		rc_packet_move32(to, from);
		rc_packet_move32(to + n - 32, from + n - 32);
	} else {
		memcpy(to, from, n);
	}
}

/* Copies the first @n bytes of the packet as it was on the wire; false if they could not be read. */
static __always_inline bool rc_packet_copy(const struct rc_packet *pkt, u8 *to, size_t n)
{
	if (likely(!pkt->vlan_tpid && n <= pkt->linear)) {
		rc_packet_move(to, pkt->data, n);
		return true;
	}
	return rc_packet_copy_slow(pkt->skb, to, n);
}

/* Uses the device's timestamp, if there is one. */
void rc_packet_device_time(struct rc_packet *pkt);

static __always_inline u64 rc_packet_time(struct rc_packet *pkt)
{
	/* The stack took a timestamp if any socket in the system wants one. Then all consumers see the same time. */
	if (!pkt->ts_ns) {
		if (unlikely(pkt->skb->tstamp))
			pkt->ts_ns = ktime_to_ns(skb_tstamp(pkt->skb));
		if (likely(!pkt->ts_ns))
			pkt->ts_ns = ktime_get_real_ns();
	}
	return pkt->ts_ns;
}

#endif /* RC_PACKET_H */
