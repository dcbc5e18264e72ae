/* SPDX-License-Identifier: GPL-2.0-only */
/* Returns true if ringcap has taken the frame in @xdp, which belongs to @desc. */
static bool igb_ringcap_frame(struct igb_ring *ring, union e1000_adv_rx_desc *desc, const struct xdp_buff *xdp,
			      ktime_t timestamp)
{
	struct net_device *dev = ring->netdev;
	struct ringcap_frame frame;
	u32 status;

	if (!ringcap_rx_frames_wanted())
		return false;
	status = le32_to_cpu(desc->wb.upper.status_error);
	if (!(status & E1000_RXD_STAT_EOP) || (status & E1000_RXDEXT_ERR_FRAME_ERR_MASK) ||
	    ((status & E1000_RXDADV_STAT_TS) && !(status & E1000_RXDADV_STAT_TSIP)))
		return false;
	frame = (struct ringcap_frame){
		.data = xdp->data,
		.len = xdp->data_end - xdp->data,
		.rx_queue = ring->queue_index,
		.hwtstamp = timestamp,
	};
	if (dev->features & NETIF_F_RXHASH)
		frame.hash = le32_to_cpu(desc->wb.lower.hi_dword.rss);
	if ((dev->features & NETIF_F_HW_VLAN_CTAG_RX) && (status & E1000_RXD_STAT_VP)) {
		/* In packets that they send to themselves, some devices have the tag in the other byte order. */
		if ((status & E1000_RXDEXT_STATERR_LB) && test_bit(IGB_RING_FLAG_RX_LB_VLAN_BSWAP, &ring->flags))
			frame.vlan_tci = be16_to_cpu((__force __be16)desc->wb.upper.vlan);
		else
			frame.vlan_tci = le16_to_cpu(desc->wb.upper.vlan);
		frame.vlan_proto = htons(ETH_P_8021Q);
	}
	return ringcap_rx_frame(dev, &frame);
}
