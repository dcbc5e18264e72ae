/* SPDX-License-Identifier: GPL-2.0-only */
/* Which VLANs a ring is for. */
#ifndef RC_VLANS_H
#define RC_VLANS_H

#include <linux/bitmap.h>
#include <linux/if_vlan.h>

#include "packet.h"

struct netlink_ext_ack;
struct nlattr;

/**
 * struct rc_vlans - a set of outermost VLAN ids; never changed
 * @ids: 0 is for packets without a tag, and for those with a tag that has only a priority
 */
struct rc_vlans {
	DECLARE_BITMAP(ids, VLAN_N_VID);
};

/* The set of RINGCAP_A_VLANS, or an ERR_PTR and a reason. kfree it. */
struct rc_vlans *rc_vlans_create(const struct nlattr *attr, struct netlink_ext_ack *extack);

/* Puts RINGCAP_A_VLANS. */
int rc_vlans_put(struct sk_buff *msg, const struct rc_vlans *vlans);

/* The outermost VLAN id, 0 = none; the packet need not be parsed. */
static inline u16 rc_vlans_id(const struct rc_packet *pkt)
{
	struct vlan_hdr buffer, *tag;
	__be16 type;

	if (pkt->vlan_tpid)
		return pkt->vlan_tci & VLAN_VID_MASK;
	if (skb_copy_bits(pkt->skb, 2 * ETH_ALEN, &type, sizeof(type)) || !rc_is_tag(ntohs(type)))
		return 0;
	tag = skb_header_pointer(pkt->skb, ETH_HLEN, sizeof(buffer), &buffer);
	return tag ? ntohs(tag->h_vlan_TCI) & VLAN_VID_MASK : 0;
}

static inline bool rc_vlans_pass(const struct rc_vlans *vlans, const struct rc_packet *pkt)
{
	return test_bit(rc_vlans_id(pkt), vlans->ids);
}

#endif /* RC_VLANS_H */
