/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The node's queues, by their place in its tables; the same maps for all rings. */
#ifndef RC_QUEUE_H
#define RC_QUEUE_H

#include "work.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_RINGBUF);
		__uint(max_entries, RINGCAP_LANE_SIZE_MIN);
	});
} rc_queues SEC(".maps");

/* By queue an array by CPU; the loader sets the inner max_entries to the number of possible CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(max_entries, 1);
		__uint(map_flags, BPF_F_MMAPABLE);
		__uint(key_size, sizeof(__u32));
		__uint(value_size, sizeof(struct ringcap_lane_stats));
	});
} rc_queue_stats SEC(".maps");

/* The consumer's process by queue, 0 = unattended. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} rc_attached SEC(".maps");

static __always_inline int queue_is_attended(__u32 place)
{
	__u32 *attached = bpf_map_lookup_elem(&rc_attached, &place);

	return attached && *attached;
}

static __always_inline struct ringcap_lane_stats *queue_stats(__u32 place)
{
	__u32 cpu = bpf_get_smp_processor_id();
	void *stats = bpf_map_lookup_elem(&rc_queue_stats, &place);

	return stats ? bpf_map_lookup_elem(stats, &cpu) : NULL;
}

/* Puts the record into the queue at @place, or says why not: enum ringcap_drop + 1, 0 where it is in. */
static __always_inline int queue_put(struct work *work, __u32 place, struct ringcap_lane_stats *stats)
{
	__u64 size = work->caplen;
	void *queue;

	if (!queue_is_attended(place))
		return RINGCAP_DROP_UNATTENDED + 1;
	queue = bpf_map_lookup_elem(&rc_queues, &place);
	if (!queue || !size)
		return RINGCAP_DROP_NOMEM + 1;
	opaque(size);
	size &= PLACES_MAX - 1;
	if (bpf_ringbuf_output(queue, &work->record, sizeof(work->record.slot) + size, 0))
		return RINGCAP_DROP_FULL + 1;
	if (work->caplen < work->len) {
		stats->truncated++;
		stats->truncated_bytes += work->len - work->caplen;
	}
	stats->delivered_bytes += work->caplen;
	stats->delivered++;
	return 0;
}

/* Returns whether the packet is in the queue at @place now. If it is not and @last, that is counted there. */
__attribute__((noinline)) int queue_deliver(__u32 place, int last)
{
	struct ringcap_lane_stats *stats = queue_stats(place);
	struct work *work = this_work();
	int why;

	if (!stats || !work)
		return 0;
	why = queue_put(work, place, stats);
	if (why && last)
		stats->dropped[(why - 1) & (RINGCAP_DROP_REASONS - 1)]++;
	return !why;
}

#endif /* RC_QUEUE_H */
