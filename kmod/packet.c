// SPDX-License-Identifier: GPL-2.0-only

#include "packet.h"

#include <linux/etherdevice.h>
#include <linux/ringcap.h>

#include "scratch.h"

/* Buffer in which the first bytes of the CPU's current packet are made contiguous. With bottom halves off. */
struct rc_packet_row {
	u8 bytes[RC_INNER_MAX];
};

static DEFINE_PER_CPU_ALIGNED(struct rc_packet_row, rc_packet_rows);

void rc_packet_gather(const struct sk_buff *skb, struct rc_frame *frame)
{
	u8 *row = this_cpu_ptr(&rc_packet_rows)->bytes;

	if (!skb_copy_bits(skb, 0, row, frame->avail))
		frame->data = row;
	else
		frame->avail = skb_headlen(skb);
}

const struct rc_way_in *rc_packet_inner(struct rc_packet *pkt)
{
	struct rc_frame frame = {
		.data = pkt->data,
		.avail = min_t(u32, pkt->skb->len, RC_INNER_MAX),
		.vlan_tpid = pkt->vlan_tpid,
		.vlan_tci = pkt->vlan_tci,
	};
	struct rc_inner inner rc_uninitialized;

	if (pkt->parsed == RC_PARSED_OUTER) {
		if (pkt->linear < frame.avail)
			rc_packet_gather(pkt->skb, &frame);
		pkt->parsed = RC_PARSED_NO_INNER;
		if (rc_parse_inner(&frame, &pkt->flow, &inner)) {
			pkt->inner = inner.found;
			pkt->parsed = RC_PARSED_INNER;
		}
	}
	return pkt->parsed == RC_PARSED_INNER ? &pkt->inner : NULL;
}

bool rc_packet_copy_slow(const struct sk_buff *skb, u8 *to, u32 n)
{
	const u32 tag_off = 2 * ETH_ALEN;
	__be16 tag[2];

	if (!skb_vlan_tag_present(skb))
		return !skb_copy_bits(skb, 0, to, n);

	/* The tag is put back between the MAC addresses and the bytes that follow them. */
	if (skb_copy_bits(skb, 0, to, min(n, tag_off)))
		return false;
	if (n <= tag_off)
		return true;
	tag[0] = skb->vlan_proto;
	tag[1] = cpu_to_be16(skb_vlan_tag_get(skb));
	memcpy(to + tag_off, tag, min_t(u32, n - tag_off, VLAN_HLEN));
	if (n <= tag_off + VLAN_HLEN)
		return true;
	return !skb_copy_bits(skb, tag_off, to + tag_off + VLAN_HLEN, n - tag_off - VLAN_HLEN);
}

void rc_packet_device_time(struct rc_packet *pkt)
{
	struct sk_buff *skb = pkt->skb;
	ktime_t when;

	/* A packet that is sent has not reached the device yet: a timestamp in it is from its origin. */
	if (pkt->flags & RINGCAP_SLOT_OUTGOING)
		return;
	if (rc_scratch_is(skb))
		when = rc_scratch_hwtstamp();
	/* Some drivers leave their own form of the timestamp there. */
	else if (skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP_NETDEV)
		when = netdev_get_tstamp(skb->dev, skb_hwtstamps(skb), false);
	else
		when = skb_hwtstamps(skb)->hwtstamp;
	if (!when)
		return;
	pkt->ts_ns = ktime_to_ns(when);
	pkt->flags |= RINGCAP_SLOT_HWTSTAMP;
}
