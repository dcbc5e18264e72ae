// SPDX-License-Identifier: GPL-2.0-only

#include "view.h"

#include <linux/export.h>

#include "classify/payload.h"
#include "packet.h"

void rc_view_init(struct ringcap_packet *view, struct rc_packet *pkt)
{
	struct rc_frame frame = {
		.data = pkt->data,
		.avail = min_t(u32, pkt->skb->len, RC_PARSE_MAX),
		.vlan_tpid = pkt->vlan_tpid,
		.vlan_tci = pkt->vlan_tci,
	};
	const struct rc_flow *flow = &pkt->flow;
	struct rc_payload payload;

	if (pkt->parsed == RC_PARSED_NOTHING)
		rc_packet_parse(pkt);
	if (unlikely(pkt->linear < frame.avail))
		rc_packet_gather(pkt->skb, &frame);
	payload = rc_payload_find(&frame, flow, pkt->len);
	*view = (struct ringcap_packet){
		.len = pkt->len,
		.payload_off = payload.from,
		.payload_end = payload.to,
		.l3_off = flow->l3_off,
		.l4_off = flow->l4_off,
		.l3_proto = flow->l3_proto,
		.sport = flow->sport,
		.dport = flow->dport,
		.l4_proto = flow->l4_proto,
		.fragment = flow->flags & RINGCAP_SLOT_FRAGMENT,
		.skb = pkt->skb,
		.vlan_tpid = pkt->vlan_tpid,
		.vlan_tci = pkt->vlan_tci,
	};
}

/* The byte at @off, which may lie in or behind a stripped tag. */
static bool rc_view_byte(const struct ringcap_packet *view, u32 off, u8 *byte)
{
	const u32 tag_off = 2 * ETH_ALEN;

	if (off < tag_off || off >= tag_off + VLAN_HLEN)
		return !skb_copy_bits(view->skb, off < tag_off ? off : off - VLAN_HLEN, byte, 1);
	off -= tag_off;
	*byte = (off < 2 ? view->vlan_tpid : view->vlan_tci) >> (off & 1 ? 0 : 8);
	return true;
}

const void *ringcap_packet_bytes(const struct ringcap_packet *packet, u32 off, u32 len, void *buffer)
{
	u8 *bytes = buffer;
	u32 i;

	if (len > packet->len || off > packet->len - len)
		return NULL;
	if (!packet->vlan_tpid || off >= 2 * ETH_ALEN + VLAN_HLEN)
		return skb_header_pointer(packet->skb, rc_view_skb_off(packet, off), len, buffer);
	if (off + len <= 2 * ETH_ALEN)
		return skb_header_pointer(packet->skb, off, len, buffer);
	/* Requests for bytes across the tag are rare. */
	for (i = 0; i < len; i++)
		if (!rc_view_byte(packet, off + i, &bytes[i]))
			return NULL;
	return buffer;
}
EXPORT_SYMBOL_GPL(ringcap_packet_bytes);
