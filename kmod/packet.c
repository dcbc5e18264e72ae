// SPDX-License-Identifier: GPL-2.0-only

#include "packet.h"

#include <linux/etherdevice.h>

#include "publish.h"

void rc_packet_parse(struct rc_packet *pkt)
{
	const struct sk_buff *skb = pkt->skb;
	struct rc_frame frame = {
		.data = skb->data,
		.avail = min_t(u32, skb->len, RC_PARSE_MAX),
		.vlan_tpid = pkt->vlan_tpid,
		.vlan_tci = pkt->vlan_tci,
	};

	pkt->parsed = true;
	if (unlikely(skb_headlen(skb) < frame.avail)) {
		u8 *scratch = rc_publish_scratch();

		if (!skb_copy_bits(skb, 0, scratch, frame.avail))
			frame.data = scratch;
		else
			frame.avail = skb_headlen(skb);
	}
	rc_parse(&frame, &pkt->flow);
}

/* The tag goes back between the MAC addresses and what follows them. */
bool rc_packet_copy_slow(const struct rc_packet *pkt, u8 *to, u32 n)
{
	const u32 tag_off = 2 * ETH_ALEN;
	__be16 tag[2];

	if (!pkt->vlan_tpid)
		return !skb_copy_bits(pkt->skb, 0, to, n);

	if (skb_copy_bits(pkt->skb, 0, to, min(n, tag_off)))
		return false;
	if (n <= tag_off)
		return true;

	tag[0] = cpu_to_be16(pkt->vlan_tpid);
	tag[1] = cpu_to_be16(pkt->vlan_tci);
	memcpy(to + tag_off, tag, min_t(u32, n - tag_off, VLAN_HLEN));
	if (n <= tag_off + VLAN_HLEN)
		return true;
	return !skb_copy_bits(pkt->skb, tag_off, to + tag_off + VLAN_HLEN, n - tag_off - VLAN_HLEN);
}
