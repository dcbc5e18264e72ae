/* SPDX-License-Identifier: GPL-2.0-only */
/* Returns true if ringcap has taken the frame in buf. The host's header precedes the frame, and len includes both. */
static bool virtnet_ringcap_frame(struct virtnet_info *vi, struct receive_queue *rq, void *buf, unsigned int len)
{
	struct virtio_net_hdr_mrg_rxbuf *hdr = buf;
	struct ringcap_frame frame;

	if (!ringcap_rx_frames_wanted() || vi->xdp_enabled || vi->has_rss_hash_report ||
	    virtio16_to_cpu(vi->vdev, hdr->num_buffers) != 1 || hdr->hdr.gso_type != VIRTIO_NET_HDR_GSO_NONE ||
	    (hdr->hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return false;
	frame = (struct ringcap_frame){
		.data = buf + vi->hdr_len,
		.len = len - vi->hdr_len,
		.rx_queue = vq2rxq(rq->vq),
	};
	if (!ringcap_rx_frame(vi->dev, &frame))
		return false;
	ewma_pkt_len_add(&rq->mrg_avg_pkt_len, frame.len);
	return true;
}

/* The state in which the kernel notifies us of dead CPUs. */
static enum cpuhp_state virtnet_ringcap_dead_state;

static int virtnet_ringcap_keep_dead_state(int state)
{
	if (state < 0)
		return state;
	virtnet_ringcap_dead_state = state;
	return 0;
}
