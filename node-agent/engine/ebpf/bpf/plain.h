/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The path of most packets of most rings (CONFIG_PLAIN). The ring has one cluster with short slots. The cluster's
 * settings need at most a flow's hash. There is no stage but the filter before the cluster. Work that the ring does not
 * need is omitted: without a hash the packet is not parsed.
 */
#ifndef RC_PLAIN_H
#define RC_PLAIN_H

#include "direct.h"
#include "table.h"

/*
 * The hash of the most common packets without a tag beside their bytes, if their headers are contiguous in the skb's
 * data or the frame's; else 0, and false.
 */
static __always_inline int plain_hash(void *ctx, const enum hook hook, __u32 *hash)
{
	struct __sk_buff *skb = ctx;
	struct xdp_md *xdp = ctx;
	void *data = (void *)(long)(hook == HOOK_XDP ? xdp->data : skb->data);
	void *end = (void *)(long)(hook == HOOK_XDP ? xdp->data_end : skb->data_end);
	__u64 key[2] = { config.outputs[0].key[0], config.outputs[0].key[1] };
	struct rc_frame frame = { .data = data, .avail = RC_PLAIN_LEN };
	struct rc_flow flow;

	if (data + RC_PLAIN_LEN > end || !rc_parse_plain(&frame, &flow))
		return 0;
	*hash = rc_flow_hash(&flow, rc_flow_balance(&flow, config.outputs[0].balance), key);
	return 1;
}

/* The hash of any packet; false if the packet cannot be read. */
static __always_inline int plain_hash_any(void *ctx, const enum hook hook, __u32 len, __u32 *hash)
{
	__u64 key[2] = { config.outputs[0].key[0], config.outputs[0].key[1] };
	struct work *work = this_work();

	if (!work)
		return 0;
	work->len = len;
	if (packet_copy(ctx, hook, work->data, len < RC_PARSE_MAX ? len : RC_PARSE_MAX)) {
		rc_flow_clear(&work->flow);
		*hash = rc_flow_hash(&work->flow, rc_flow_balance(&work->flow, config.outputs[0].balance), key);
		return 0;
	}
	work_parse();
	*hash = rc_flow_hash(&work->flow, rc_flow_balance(&work->flow, config.outputs[0].balance), key);
	return 1;
}

/* Delivers a packet without a VLAN tag to a queue that needs no look-up; false if nothing was done. */
static __always_inline int plain_direct(void *ctx, const enum hook hook, __u32 len, __u32 direction, __u32 cpu)
{
	__u32 hash = 0, queue = 0;

	if (CONSTANT(direct_hashed)) {
		if (!plain_hash(ctx, hook, &hash))
			return 0;
		direction |= RINGCAP_SLOT_HASHED;
		queue = rc_queue(hash, CONSTANT(direct_queues));
	}
	return direct_put(ctx, hook, &config.outputs[0], queue, cpu, len, hash, direction);
}

/* Delivers the packet. @slot describes it, except for the hash. */
static __always_inline void plain_deliver(void *ctx, const enum hook hook, struct ringcap_slot *slot, __u32 cpu)
{
	const volatile struct output *to = &config.outputs[0];
	__u32 queue = 0;

	slot->hash = 0;
	if (to->hashed) {
		slot->flags |= RINGCAP_SLOT_HASHED;
		if ((slot->vlan_tpid || !plain_hash(ctx, hook, &slot->hash)) &&
		    !plain_hash_any(ctx, hook, slot->len, &slot->hash))
			slot->caplen = 0;
		queue = rc_queue(slot->hash, to->queues);
	}
	queue_put(ctx, hook, queue_data(&table_0, queue), to, queue, cpu, slot);
}

#endif /* RC_PLAIN_H */
