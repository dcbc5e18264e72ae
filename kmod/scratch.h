/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scratch skbs: for frames that a capture-aware driver offers before there is an skb (linux/ringcap_driver.h). Each CPU
 * has one skb, which is lent to the frame for the time of a call. So filters, rules and the rest of the code need not
 * know about frames. It is no real skb: no code may keep it, take a reference, clone it, or look at its shared info.
 */
#ifndef RC_SCRATCH_H
#define RC_SCRATCH_H

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/percpu.h>
#include <linux/ringcap_driver.h>
#include <linux/skbuff.h>

/**
 * struct rc_scratch - a CPU's scratch skb
 * @skb: its data pointer is NULL while it is not lent
 * @hwtstamp: a real skb has this in its shared info
 */
struct rc_scratch {
	struct sk_buff skb;
	ktime_t hwtstamp;
};

DECLARE_PER_CPU(struct rc_scratch, rc_scratch);

void rc_scratch_module_init(void);

/* A real skb with the contents of the scratch skb @skb. The caller frees it. NULL without memory. */
struct sk_buff *rc_scratch_copy(const struct sk_buff *skb);

/* The skb of a frame that needs none: it is empty, except that it has no timestamp. Bottom halves off. */
static __always_inline struct sk_buff *rc_scratch_skb(void)
{
	return &this_cpu_ptr(&rc_scratch)->skb;
}

/* Bottom halves off. */
static inline bool rc_scratch_is(const struct sk_buff *skb)
{
	return skb == rc_scratch_skb();
}

/* Timestamp of the scratch skb that this CPU is using. */
static inline ktime_t rc_scratch_hwtstamp(void)
{
	return this_cpu_ptr(&rc_scratch)->hwtstamp;
}

/* Like eth_type_trans(). */
static __always_inline void rc_scratch_set_type(struct sk_buff *skb, const struct net_device *dev,
						const struct ethhdr *eth)
{
	skb->pkt_type = PACKET_HOST;
	if (unlikely(!ether_addr_equal_64bits(eth->h_dest, dev->dev_addr))) {
		if (is_broadcast_ether_addr(eth->h_dest))
			skb->pkt_type = PACKET_BROADCAST;
		else if (is_multicast_ether_addr_64bits(eth->h_dest))
			skb->pkt_type = PACKET_MULTICAST;
		else
			skb->pkt_type = PACKET_OTHERHOST;
	}
	skb->protocol = likely(eth_proto_is_802_3(eth->h_proto)) ? eth->h_proto : htons(ETH_P_802_2);
}

/* Lends this CPU's skb to @frame; the caller gives it back. NULL while it is already lent. Bottom halves off. */
static __always_inline struct sk_buff *rc_scratch_lend(struct net_device *dev, const struct ringcap_frame *frame)
{
	struct rc_scratch *scratch = this_cpu_ptr(&rc_scratch);
	struct sk_buff *skb = &scratch->skb;

	if (unlikely(skb->data))
		return NULL;
	skb->head = frame->data;
	skb->data = frame->data;
	skb_set_tail_pointer(skb, frame->len);
	skb->end = skb->tail;
	skb->len = frame->len;
	skb->dev = dev;
	skb->skb_iif = dev->ifindex;
	skb->hash = frame->hash;
	skb_record_rx_queue(skb, frame->rx_queue);
	rc_scratch_set_type(skb, dev, frame->data);
	if (unlikely(frame->vlan_proto))
		__vlan_hwaccel_put_tag(skb, frame->vlan_proto, frame->vlan_tci);
	else
		__vlan_hwaccel_clear_tag(skb);
	scratch->hwtstamp = frame->hwtstamp;
	return skb;
}

static __always_inline void rc_scratch_give_back(struct sk_buff *skb)
{
	skb->data = NULL;
}

#endif /* RC_SCRATCH_H */
