/* SPDX-License-Identifier: GPL-2.0-only */
/* A packet as plugins and payload patterns see it. */
#ifndef RC_VIEW_H
#define RC_VIEW_H

#include <linux/ringcap_plugin.h>

struct rc_packet;

/* Parses @pkt if that has not been done. Bottom halves off. */
void rc_view_init(struct ringcap_packet *view, struct rc_packet *pkt);

/* The offset in the skb of the byte at @off on the wire, which lies behind the MAC addresses and a stripped tag. */
static inline u32 rc_view_skb_off(const struct ringcap_packet *view, u32 off)
{
	return view->vlan_tpid ? off - 4 : off;
}

#endif /* RC_VIEW_H */
