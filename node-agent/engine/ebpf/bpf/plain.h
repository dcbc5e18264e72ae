/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The path of most packets of most rings (CONFIG_PLAIN). The ring has one cluster with short slots. The cluster's
 * settings need at most a flow's hash. There is no stage but the filter before the cluster. Work that the ring does not
 * need is omitted: without a hash, and without shunted flows, the packet is not parsed.
 */
#ifndef RC_PLAIN_H
#define RC_PLAIN_H

#include "direct.h"
#include "shunt.h"
#include "table.h"

/*
 * Parses the most common packets without a tag beside their bytes, if their headers are contiguous in the skb's data or
 * the frame's; else false.
 */
static __always_inline int plain_parse(void *ctx, const enum hook hook, struct rc_flow *flow)
{
	struct __sk_buff *skb = ctx;
	struct xdp_md *xdp = ctx;
	void *data = (void *)(long)(hook == HOOK_XDP ? xdp->data : skb->data);
	void *end = (void *)(long)(hook == HOOK_XDP ? xdp->data_end : skb->data_end);
	struct rc_frame frame = { .data = data, .avail = RC_PLAIN_LEN };

	return data + RC_PLAIN_LEN <= end && rc_parse_plain(&frame, flow);
}

/* The hash of a packet that plain_parse has parsed. */
static __always_inline __u32 plain_flow_hash(const struct rc_flow *flow)
{
	__u64 key[2] = { config.outputs[0].key[0], config.outputs[0].key[1] };

	return rc_flow_hash(flow, rc_flow_balance(flow, config.outputs[0].balance), key);
}

/* The same for a program that reaches its queues directly: its most frequent hash needs only constants. */
static __always_inline __u32 plain_direct_hash(const struct rc_flow *flow)
{
	__u64 key[2] = { CONSTANT(direct_key_0), CONSTANT(direct_key_1) };

	if (CONSTANT(direct_by_flow))
		return rc_flow_hash(flow, RINGCAP_BALANCE_FIVE_TUPLE, key);
	return plain_flow_hash(flow);
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

/*
 * Delivers a packet without a VLAN tag to a queue that needs no look-up; false if nothing was done. The clock is read
 * before anything else is in registers, which a call would have to save.
 */
static __always_inline int plain_direct(void *ctx, const enum hook hook, __u64 len, const __u32 direction, __u64 cpu)
{
	__u64 now = wall_clock(), hash, queue;
	struct __sk_buff *skb = ctx;
	struct rc_flow flow;

	if (hook == HOOK_TC)
		len = *(volatile __u32 *)&skb->len; /* again, for the same reason */
	if (!IS_SET(direct_hashed, cpu)) {
		if (IS_SET(has_shunts, cpu) && shunting_has_flows(CONSTANT(direct_base)))
			return 0;
		return direct_put(ctx, hook, 0, cpu, len, 0, direction, now);
	}
	if (!plain_parse(ctx, hook, &flow))
		return 0;
	hash = plain_direct_hash(&flow);
	queue = hash * CONSTANT(direct_queues) >> 32;
	if (IS_SET(has_shunts, cpu) && shunting_has_flows(CONSTANT(direct_base) + queue))
		return 0;
	return direct_put(ctx, hook, queue, cpu, len, hash, direction | RINGCAP_SLOT_HASHED, now);
}

/* shunt_takes for a packet that has to be parsed: what cannot be read is of no flow. */
static __always_inline int plain_is_shunted(void *ctx, const enum hook hook, const struct ringcap_slot *slot,
					    __u32 place)
{
	struct rc_exact_key key;
	struct rc_flow flow;
	struct work *work;

	if (!shunting_has_flows(place))
		return 0;
	if (!slot->vlan_tpid && plain_parse(ctx, hook, &flow)) {
		rc_exact_key_ipv4(&key, flow.saddr[0], flow.daddr[0], flow.sport, flow.dport, 0, flow.l4_proto);
		return shunt_takes_ipv4(place, key.w[0], key.w[1], slot->len);
	}
	work = this_work();
	if (!work)
		return 0;
	work->len = slot->len;
	if (packet_copy(ctx, hook, work->data, slot->len < RC_PARSE_MAX ? slot->len : RC_PARSE_MAX))
		return 0;
	work_parse();
	return shunt_takes(place, 1);
}

/* Delivers the packet. @slot describes it, except for the hash. */
static __always_inline void plain_deliver(void *ctx, const enum hook hook, struct ringcap_slot *slot, __u32 cpu)
{
	const volatile struct output *to = &config.outputs[0];
	struct rc_flow flow;
	__u32 queue = 0;

	slot->hash = 0;
	if (to->hashed) {
		slot->flags |= RINGCAP_SLOT_HASHED;
		if (!slot->vlan_tpid && plain_parse(ctx, hook, &flow))
			slot->hash = plain_flow_hash(&flow);
		else if (!plain_hash_any(ctx, hook, slot->len, &slot->hash))
			slot->caplen = 0;
		queue = rc_queue(slot->hash, to->queues);
	}
	if (config.flags & CONFIG_SHUNTS && plain_is_shunted(ctx, hook, slot, to->base + queue))
		return;
	queue_put(ctx, hook, queue_data(&table_0, queue), to, queue, cpu, slot);
}

#endif /* RC_PLAIN_H */
