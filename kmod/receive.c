// SPDX-License-Identifier: GPL-2.0-only

#include "receive.h"

#include <linux/filter.h>

#include "defrag.h"
#include "deliver.h"
#include "stages.h"

/* Any packet that has passed the filter. */
static noinline enum rc_fate rc_ring_decide(struct rc_ring *ring, const struct rc_ring_config *config,
					    struct sk_buff *skb, u32 wire_len, u32 ifindex)
{
	struct rc_packet pkt rc_uninitialized;
	enum rc_fate fate = RC_FATE_PASSED;

	rc_packet_init(&pkt, skb, wire_len, config->snaplen, ifindex);
	if (rc_stages_any(config)) {
		if (config->defrag && rc_defrag_wants(&pkt))
			return rc_defrag_receive(ring, config, &pkt);
		fate = rc_stages_run(ring, config, &pkt);
	}
	if (fate == RC_FATE_PASSED)
		rc_ring_deliver(config, &pkt);
	return fate;
}

/* What becomes of a packet that starts at its MAC header. The address of @pkt is passed to nobody: see rc_queue_deliver. */
static enum rc_fate rc_ring_pass(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb,
				 u32 wire_len, u32 ifindex)
{
	struct rc_packet pkt rc_uninitialized;
	struct rc_queue *queue;

	if (config->filter && !bpf_prog_run(config->filter, skb))
		return RC_FATE_FILTERED;
	if (likely(!rc_stages_any(config) && config->nr_outputs == 1)) {
		rc_packet_init(&pkt, skb, wire_len, config->snaplen, ifindex);
		if (likely(rc_cluster_find_queue(config->outputs[0], &pkt, &queue))) {
			rc_queue_deliver(queue, &pkt);
			return RC_FATE_PASSED;
		}
	}
	return rc_ring_decide(ring, config, skb, wire_len, ifindex);
}

void rc_ring_receive(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb, u32 ifindex)
{
	unsigned char *data = skb->data;
	unsigned int len = skb->len;
	enum rc_fate fate;
	u32 wire_len;

	/* Received packets begin behind the MAC header here, sent ones at it. */
	if (likely(skb_mac_header_was_set(skb)))
		__skb_push(skb, data - skb_mac_header(skb));
	wire_len = skb->len + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0);
	fate = rc_ring_pass(ring, config, skb, wire_len, ifindex);
	rc_account_packet(ring->account, fate, wire_len);
	skb->data = data;
	skb->len = len;
}
