/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A queue, by its place in the node's tables, and how a packet gets into it. The data maps of a cluster's queues are in
 * a table of the cluster, by the queue's number, because their size depends on the cluster.
 */
#ifndef RC_QUEUE_H
#define RC_QUEUE_H

#include "doorbell.h"
#include "lane.h"
#include "packet.h"

/*
 * The consumer's process by queue, 0 = unattended. There are QUEUES_MAX of these: the loader enlarges the section's map
 * accordingly. A program reads data in such a section without a look-up.
 */
volatile __u32 attached SEC(".data.attached");

/*
 * Packets for queues that had no consumer, which no lane counts. There are QUEUES_MAX of these for each CPU, in a
 * section as above. If there are more than UNATTENDED_CPUS CPUs, CPUs share them: on large machines they would take
 * more memory than all other data.
 */
volatile __u64 unattended SEC(".data.unattended");

/* A cluster's account, by the place of the cluster's queue 0. */
struct balance_account {
	__u64 duplicated;
	__u64 spread;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__type(value, struct balance_account);
} rc_balance SEC(".maps");

/*
 * Nanoseconds to subtract from the TAI clock to get the time since the Unix epoch. The TAI clock follows the wall
 * clock.
 */
volatile __u64 clock_offset SEC(".data.clock");

static __always_inline __u64 wall_clock(void)
{
	return bpf_ktime_get_tai_ns() - clock_offset;
}

static __always_inline int queue_is_attended(__u64 place)
{
	volatile __u32 *first = &attached;

	opaque(first);
	opaque(place);
	place &= QUEUES_MAX - 1;
	return first[place];
}

static __always_inline void queue_count_unattended(__u64 place, __u64 cpu)
{
	volatile __u64 *count = &unattended;

	opaque(count);
	opaque(place);
	opaque(cpu);
	place &= QUEUES_MAX - 1;
	cpu &= config.cpu_mask & (UNATTENDED_CPUS - 1);
	/* Two sums, each of a pointer and a bounded value: Linux 6.1 does not bound the "or" of two variables. */
	count += cpu * QUEUES_MAX;
	opaque(count);
	__sync_fetch_and_add(&count[place], 1);
}

/* The data of queue @number in its cluster's table. */
#define queue_data(table, number) ({ \
	__u32 _key = (number), _zero = 0; \
	void *_map = bpf_map_lookup_elem(table, &_key); \
	_map ? bpf_map_lookup_elem(_map, &_zero) : NULL; })

/* Several CPUs may lose packets of a lane because they could not take its lock. */
static __always_inline void queue_lose(struct ringcap_lane_kernel *lane)
{
	__sync_fetch_and_add(&lane->stats.dropped[RINGCAP_DROP_NOMEM], 1);
}

static __always_inline void queue_fill_slot(struct ringcap_slot *to, const struct ringcap_slot *slot, __u32 hdr_len)
{
	const __u64 *from = (const __u64 *)slot;
	__u64 *words = (__u64 *)to;

	for (int i = 1; i < RINGCAP_SLOT_SHORT / 8; i++)
		words[i] = from[i];
	if (hdr_len != RINGCAP_SLOT_SHORT)
		for (int i = RINGCAP_SLOT_SHORT / 8; i < (int)(sizeof(*slot) / 8); i++)
			words[i] = from[i];
	to->hdr_len = hdr_len;
}

static __always_inline void queue_count(struct ringcap_lane_kernel *lane, __u32 len, __u32 caplen)
{
	lane->stats.delivered++;
	lane->stats.delivered_bytes += caplen;
	if (caplen < len) {
		lane->stats.truncated++;
		lane->stats.truncated_bytes += len - caplen;
	}
}

/* Writes the packet into the lane, which belongs to this CPU; false if nothing was published. */
static __always_inline int queue_write(void *ctx, const enum hook hook, void *data, const volatile struct output *to,
				       struct ringcap_consumer_page *page, struct ringcap_lane_kernel *lane,
				       __u64 number, const struct ringcap_slot *slot)
{
	__u64 producer = lane->producer, size;
	__u32 caplen = slot->caplen;
	struct ringcap_slot *at;

	if (!caplen) {
		queue_lose(lane);
		return 0;
	}
	size = RINGCAP_SLOT_SIZE((__u64)to->hdr_len, caplen);
	if (!lane_make_room(lane, page, to, number, size)) {
		lane->stats.dropped[RINGCAP_DROP_FULL]++;
		return 0;
	}
	at = lane_slot(data, to, number, producer);
	queue_fill_slot(at, slot, to->hdr_len);
	at->ts_ns = wall_clock();
	if (packet_copy(ctx, hook, (__u8 *)at + to->hdr_len, caplen)) {
		queue_lose(lane);
		return 0;
	}
	queue_count(lane, slot->len, caplen);
	/* (A), and (E): the consumer's sleep is read after it. */
	__sync_lock_test_and_set(&lane->producer, producer + size);
	return 1;
}

/* Wakes the consumer if it is time, or starts the timer, unless its page notes that this was done. */
static __always_inline void queue_wake(const volatile struct output *to, struct ringcap_consumer_page *page,
				       const struct ringcap_lane_kernel *lane, __u64 number, __u32 place)
{
	__u64 sleep = read_now(page->sleep), noted, producer, unread;
	int now;

	if (!sleep)
		return;
	noted = read_now(page->noted);
	if (noted == NOTED_RUNG(sleep))
		return;
	producer = read_now(lane->producer);
	unread = producer - lane_released(lane, page, number, producer);
	now = unread >= to->watermark || !to->timeout_ns;
	if (now || noted != NOTED_ARMED(sleep))
		bell_look(place, sleep, now, to->timeout_ns);
}

/* Writes to a lane that several CPUs share. */
static __always_inline int queue_write_shared(void *ctx, const enum hook hook, void *data, const volatile struct output *to,
					      struct ringcap_consumer_page *page, __u32 place, const struct ringcap_slot *slot)
{
	struct bell *bell = bpf_map_lookup_elem(&rc_bells, &place);
	int written;

	if (!bell || !lane_lock(bell)) {
		queue_lose(data);
		return 0;
	}
	written = queue_write(ctx, hook, data, to, page, data, 0, slot);
	lane_unlock(bell);
	return written;
}

/*
 * Delivers the packet that @slot describes to queue @queue, or counts the reason why not. The queue's @data is mapped.
 */
static __always_inline void queue_put(void *ctx, const enum hook hook, void *data, const volatile struct output *to,
				      __u32 queue, __u32 cpu, const struct ringcap_slot *slot)
{
	__u32 place = to->base + queue;
	struct ringcap_consumer_page *page;
	struct ringcap_lane_kernel *lane;
	__u64 number;

	page = consumer_page(place);
	if (!data || !page || !queue_is_attended(place)) {
		queue_count_unattended(place, cpu);
		return;
	}
	number = lane_number(data, to, cpu);
	opaque(number);
	if (number >= to->lanes) { /* never */
		queue_count_unattended(place, cpu);
		return;
	}
	lane = data + number * sizeof(*lane);
	if (lane_is_shared(to, number)) {
		if (queue_write_shared(ctx, hook, data, to, page, place, slot))
			queue_wake(to, page, data, 0, place);
	} else if (queue_write(ctx, hook, data, to, page, lane, number, slot)) {
		queue_wake(to, page, lane, number, place);
	}
}

#endif /* RC_QUEUE_H */
