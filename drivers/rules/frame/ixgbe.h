/* SPDX-License-Identifier: GPL-2.0-only */
/* Returns true if ringcap has taken the frame in @xdp, which belongs to @desc. */
static bool ixgbe_ringcap_frame(struct ixgbe_ring *ring, union ixgbe_adv_rx_desc *desc, const struct xdp_buff *xdp)
{
	struct net_device *dev = ring->netdev;
	struct ringcap_frame frame;
	u32 status;

	if (!ringcap_rx_frames_wanted())
		return false;
	status = le32_to_cpu(desc->wb.upper.status_error);
	if (!(status & IXGBE_RXD_STAT_EOP) || (status & (IXGBE_RXDADV_ERR_FRAME_ERR_MASK | IXGBE_RXDADV_STAT_SECP)))
		return false;
	if (!dev || !netif_is_ixgbe(dev) || (ring->q_vector->adapter->flags & IXGBE_FLAG_RX_HWTSTAMP_ENABLED) ||
	    (ring_is_rsc_enabled(ring) && (desc->wb.lower.lo_dword.data & cpu_to_le32(IXGBE_RXDADV_RSCCNT_MASK))))
		return false;
#ifdef IXGBE_FCOE
	if (ixgbe_rx_is_fcoe(ring, desc))
		return false;
#endif
	frame = (struct ringcap_frame){
		.data = xdp->data,
		.len = xdp->data_end - xdp->data,
		.rx_queue = ring->queue_index,
	};
	if ((dev->features & NETIF_F_RXHASH) &&
	    (desc->wb.lower.lo_dword.hs_rss.pkt_info & cpu_to_le16(IXGBE_RXDADV_RSSTYPE_MASK)))
		frame.hash = le32_to_cpu(desc->wb.lower.hi_dword.rss);
	if ((dev->features & NETIF_F_HW_VLAN_CTAG_RX) && (status & IXGBE_RXD_STAT_VP)) {
		frame.vlan_tci = le16_to_cpu(desc->wb.upper.vlan);
		frame.vlan_proto = htons(ETH_P_8021Q);
	}
	return ringcap_rx_frame(dev, &frame);
}
