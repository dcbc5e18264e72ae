/* SPDX-License-Identifier: GPL-2.0-only */
/* Returns true if ringcap has taken the frame of len bytes in @buffer. */
static bool e1000e_ringcap_frame(struct net_device *dev, union e1000_rx_desc_extended *desc, u32 status,
				 const struct sk_buff *buffer, u32 len)
{
	struct ringcap_frame frame;

	if (!ringcap_rx_frames_wanted() || (status & E1000_RXDEXT_STATERR_TST))
		return false;
	frame = (struct ringcap_frame){ .data = buffer->data, .len = len };
	if (dev->features & NETIF_F_RXHASH)
		frame.hash = le32_to_cpu(desc->wb.lower.hi_dword.rss);
	if (status & E1000_RXD_STAT_VP) {
		frame.vlan_tci = le16_to_cpu(desc->wb.upper.vlan);
		frame.vlan_proto = htons(ETH_P_8021Q);
	}
	return ringcap_rx_frame(dev, &frame);
}
