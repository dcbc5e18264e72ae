// SPDX-License-Identifier: GPL-2.0-only

#include "scratch.h"

DEFINE_PER_CPU(struct rc_scratch, rc_scratch);

/* Sets the fields that are the same for all frames. */
void rc_scratch_module_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct sk_buff *skb = &per_cpu_ptr(&rc_scratch, cpu)->skb;

		refcount_set(&skb->users, 1);
		skb->mac_header = 0;
		skb->mac_len = ETH_HLEN;
		skb->network_header = ETH_HLEN;
		skb->transport_header = (typeof(skb->transport_header))~0U;
	}
}

struct sk_buff *rc_scratch_copy(const struct sk_buff *skb)
{
	struct sk_buff *copy = netdev_alloc_skb(skb->dev, skb->len);

	if (!copy)
		return NULL;
	skb_put_data(copy, skb->data, skb->len);
	skb_reset_mac_header(copy);
	skb_set_network_header(copy, ETH_HLEN);
	copy->mac_len = ETH_HLEN;
	copy->pkt_type = skb->pkt_type;
	copy->protocol = skb->protocol;
	copy->skb_iif = skb->skb_iif;
	copy->hash = skb->hash;
	skb_copy_queue_mapping(copy, skb);
	__vlan_hwaccel_copy_tag(copy, skb);
	skb_hwtstamps(copy)->hwtstamp = rc_scratch_hwtstamp();
	return copy;
}
