// SPDX-License-Identifier: GPL-2.0-only

#include "receive.h"

#include "defrag.h"
#include "deliver.h"
#include "rules_decide.h"
#include "shunt.h"
#include "stages.h"

/*
 * The state of an skb's data before it was moved to the MAC header. When the skb arrives, the data of a received packet
 * begins behind that header, and that of a sent one begins at it.
 */
struct rc_window {
	unsigned char *data;
	unsigned int len;
};

/* Returns the packet's bytes on the wire. */
static __always_inline u32 rc_window_open(struct rc_window *window, struct sk_buff *skb)
{
	window->data = skb->data;
	window->len = skb->len;
	if (likely(skb_mac_header_was_set(skb)))
		__skb_push(skb, skb->data - skb_mac_header(skb));
	return skb->len + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0);
}

static __always_inline void rc_window_close(const struct rc_window *window, struct sk_buff *skb)
{
	skb->data = window->data;
	skb->len = window->len;
}

/* For any packet that has passed the filter. */
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

/*
 * Decides a packet that starts at its MAC header. The address of @pkt is passed to no function: see rc_queue_deliver.
 */
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

typedef enum rc_fate (*rc_decide_fn)(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb,
				     u32 wire_len, u32 ifindex);

/* Lets the packet start at its MAC header for @decide, and accounts for what that returns. */
static __always_inline void rc_ring_receive_by(rc_decide_fn decide, struct rc_ring *ring,
					       const struct rc_ring_config *config, struct sk_buff *skb, u32 ifindex)
{
	struct rc_window window;
	enum rc_fate fate;
	u32 wire_len;

	wire_len = rc_window_open(&window, skb);
	fate = decide(ring, config, skb, wire_len, ifindex);
	rc_account_packet(ring->account, fate, wire_len);
	rc_window_close(&window, skb);
}

void rc_ring_receive_any(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb, u32 ifindex)
{
	rc_ring_receive_by(rc_ring_pass, ring, config, skb, ifindex);
}

void rc_ring_receive_passed(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb,
			    u32 ifindex)
{
	rc_ring_receive_by(rc_ring_decide, ring, config, skb, ifindex);
}

/* Handles a rule's verdict that does more than drop the packet or put it into a queue of the ring's cluster. */
static noinline void rc_ring_obey(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb,
				  u32 ifindex, const struct rc_rules *rules, struct rc_verdict verdict, u32 rule)
{
	struct rc_packet pkt rc_uninitialized;
	struct rc_window window;
	enum rc_fate fate;
	u32 wire_len;

	wire_len = rc_window_open(&window, skb);
	rc_packet_init(&pkt, skb, wire_len, config->snaplen, ifindex);
	pkt.rule = rule;
	fate = rc_stages_obey(ring, rules, verdict, &pkt);
	if (fate == RC_FATE_PASSED)
		rc_ring_deliver(config, &pkt);
	rc_account_packet(ring->account, fate, wire_len);
	rc_window_close(&window, skb);
}

static __always_inline bool rc_ring_is_passed(struct rc_verdict verdict)
{
	return verdict.action == RINGCAP_ACTION_PASS || verdict.action == RINGCAP_ACTION_LEARN;
}

/*
 * The path of plain packets in a ring that has only header rules. As on the fast path, the address of @pkt is passed to
 * no function. Other packets take the slow path.
 */
static noinline void rc_ring_receive_ruled(struct rc_ring *ring, const struct rc_ring_config *config,
					   struct sk_buff *skb, u32 ifindex)
{
	struct rc_cluster *cluster = READ_ONCE(config->ruled);
	struct rc_rules *rules = rcu_dereference(ring->rules);
	struct rc_packet pkt rc_uninitialized;
	struct rc_verdict verdict;
	struct rc_queue *queue;

	if (unlikely(!cluster || !rules || skb->pkt_type == PACKET_OUTGOING ||
		     !rc_packet_init_received(&pkt, skb, config->snaplen, rc_skb_rx_queue(skb)) ||
		     !rc_rules_decide_plain(rules, &pkt, &verdict))) {
		rc_ring_receive_any(ring, config, skb, ifindex);
	} else if (verdict.action == RINGCAP_ACTION_DROP) {
		rc_account_packet(ring->account, RC_FATE_FILTERED, pkt.len);
	} else if (likely(rc_ring_is_passed(verdict) && rc_cluster_find_queue(cluster, &pkt, &queue))) {
		rc_account_packet(ring->account, RC_FATE_PASSED, pkt.len);
		pkt.ifindex = ifindex;
		rc_queue_deliver(queue, &pkt);
	} else {
		rc_ring_obey(ring, config, skb, ifindex, rules, verdict, pkt.rule);
	}
}

static bool rc_ring_shunts(const struct rc_ring_config *config)
{
	const struct rc_cluster *cluster = READ_ONCE(config->fast);

	return cluster && READ_ONCE(rcu_dereference(cluster->config)->shunting);
}

/*
 * The path of plain packets in a ring that has nothing between its tap and one cluster, whose consumers have shunted
 * flows. As on the fast path, the address of @pkt is passed to no function. Other packets take the slow path.
 */
static noinline void rc_ring_receive_shunting(struct rc_ring *ring, const struct rc_ring_config *config,
					      struct sk_buff *skb, u32 ifindex)
{
	const struct rc_cluster *cluster = READ_ONCE(config->fast);
	const struct rc_cluster_config *to = cluster ? rcu_dereference(cluster->config) : NULL;
	struct rc_packet pkt rc_uninitialized;
	struct rc_queue *queue;

	if (unlikely(!to || skb->pkt_type == PACKET_OUTGOING ||
		     !rc_packet_init_received(&pkt, skb, config->snaplen, rc_skb_rx_queue(skb)) ||
		     !rc_packet_parse_plain(&pkt) || !rc_cluster_find_queue_by(to->usual_path, to, &pkt, &queue))) {
		rc_ring_receive_any(ring, config, skb, ifindex);
		return;
	}
	rc_account_packet(ring->account, RC_FATE_PASSED, pkt.len);
	if (rc_shunt_takes_plain(queue, &pkt))
		return;
	pkt.ifindex = ifindex;
	rc_queue_deliver(queue, &pkt);
}

void rc_ring_receive(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb, u32 ifindex)
{
	if (READ_ONCE(config->filtered) && skb->pkt_type != PACKET_OUTGOING)
		rc_ring_receive_filtered(&ring, config, skb, &ifindex);
	else if (READ_ONCE(config->ruled))
		rc_ring_receive_ruled(ring, config, skb, ifindex);
	else if (rc_ring_shunts(config))
		rc_ring_receive_shunting(ring, config, skb, ifindex);
	else
		rc_ring_receive_any(ring, config, skb, ifindex);
}
