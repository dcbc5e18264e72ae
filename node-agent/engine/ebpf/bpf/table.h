/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of the clusters that a ring feeds: one for each output, then one for each target of its rules. A table
 * maps each queue to the map with its data. The values' size depends on the cluster. The loader replaces these maps by
 * the clusters' tables.
 *
 * Each table has functions of its own, so that the verifier tracks one size at a time. The functions of tables that the
 * ring does not have are empty. Functions that get the packet are static. For global ones the verifier needs the
 * kernel's type information, which not every kernel has.
 */
#ifndef RC_TABLE_H
#define RC_TABLE_H

#include "queue.h"

/* The loader replaces it. */
#define TABLE_MAP(n) \
	struct { \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); \
		__uint(max_entries, RINGCAP_QUEUES_MAX); \
		__type(key, __u32); \
		__array(values, struct { \
			__uint(type, BPF_MAP_TYPE_ARRAY); \
			__uint(max_entries, 1); \
			__uint(map_flags, BPF_F_MMAPABLE); \
			__uint(key_size, sizeof(__u32)); \
			__uint(value_size, 4096); \
		}); \
	} table_##n SEC(".maps");

/* Puts the current packet into queue @queue of table @n. Returns whether a packet like it seems to fit. */
#define TABLE_FUNCTIONS(n, to) \
	static __attribute__((noinline)) int table_put_##n(struct __sk_buff *skb, __u32 queue) \
	{ \
		struct work *work = this_work(); \
		if (!work || !(to)->queues) \
			return 0; \
		queue_put(skb, HOOK_TC, queue_data(&table_##n, queue), to, queue, bpf_get_smp_processor_id(), &work->slot); \
		return 0; \
	} \
	static __attribute__((noinline)) int table_put_xdp_##n(struct xdp_md *xdp, __u32 queue) \
	{ \
		struct work *work = this_work(); \
		if (!work || !(to)->queues) \
			return 0; \
		queue_put(xdp, HOOK_XDP, queue_data(&table_##n, queue), to, queue, bpf_get_smp_processor_id(), &work->slot); \
		return 0; \
	}

#define TABLE_ROOM(n, to) \
	__attribute__((noinline)) int table_has_room_##n(__u32 queue) \
	{ \
		struct work *work = this_work(); \
		if (!work || (to)->when_full == RINGCAP_POLICY_DROP) \
			return 1; \
		return queue_has_room(queue_data(&table_##n, queue), to, queue, work->caplen); \
	}

/* Whether a packet of @caplen bytes would fit now. Another CPU of a shared lane may be faster. */
static __always_inline int queue_has_room(void *data, const volatile struct output *to, __u32 queue, __u32 caplen)
{
	struct ringcap_consumer_page *page = consumer_page(to->base + queue);
	struct ringcap_lane_kernel *lane;
	__u64 number;

	if (!data || !page)
		return 0;
	number = lane_number(data, to, bpf_get_smp_processor_id());
	opaque(number);
	if (number >= to->lanes)
		return 0;
	lane = data + number * sizeof(*lane);
	return lane_has_room(lane, page, to, number, RINGCAP_SLOT_SIZE((__u64)to->hdr_len, caplen));
}

#define TABLE_OUTPUTS(DO) \
	DO(0, &config.outputs[0]) DO(1, &config.outputs[1]) DO(2, &config.outputs[2]) DO(3, &config.outputs[3]) \
	DO(4, &config.outputs[4]) DO(5, &config.outputs[5]) DO(6, &config.outputs[6]) DO(7, &config.outputs[7])
#define TABLE_TARGETS(DO) \
	DO(8, &config.targets[0]) DO(9, &config.targets[1]) DO(10, &config.targets[2]) DO(11, &config.targets[3]) \
	DO(12, &config.targets[4]) DO(13, &config.targets[5]) DO(14, &config.targets[6]) DO(15, &config.targets[7]) \
	DO(16, &config.targets[8]) DO(17, &config.targets[9]) DO(18, &config.targets[10]) DO(19, &config.targets[11]) \
	DO(20, &config.targets[12]) DO(21, &config.targets[13]) DO(22, &config.targets[14]) DO(23, &config.targets[15])

#define TABLE_ONE(n, to) TABLE_MAP(n) TABLE_FUNCTIONS(n, to)
TABLE_OUTPUTS(TABLE_ONE)
TABLE_TARGETS(TABLE_ONE)
TABLE_OUTPUTS(TABLE_ROOM)

/* Calls the functions above by the number of an output or target. */
#define TABLE_CASE_ROOM(n, to)	case n: return table_has_room_##n(queue);
#define TABLE_CASE_PUT(n, to) \
	case n: \
		if (hook == HOOK_XDP) \
			table_put_xdp_##n(ctx, queue); \
		else \
			table_put_##n(ctx, queue); \
		break;

static __always_inline int table_has_room(__u32 number, __u32 queue)
{
	switch (number) {
	TABLE_OUTPUTS(TABLE_CASE_ROOM)
	}
	return 0;
}

static __always_inline void table_put(void *ctx, const enum hook hook, __u32 number, __u32 queue)
{
	switch (number) {
	TABLE_OUTPUTS(TABLE_CASE_PUT)
	TABLE_TARGETS(TABLE_CASE_PUT)
	}
}

#endif /* RC_TABLE_H */
