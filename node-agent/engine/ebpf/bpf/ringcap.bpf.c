// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The eBPF engine's tap. The same program runs at tc ingress and egress of every tapped device, once for each ring:
 *
 *   count -> the ring's filter -> copy the packet as it was on the wire -> parse -> for each output: hash, queue, deliver
 *
 * It always returns TC_ACT_UNSPEC, so that what else is attached there runs as if the tap were not.
 *
 * A ring's configuration is read-only data, constant for a loaded program; a change loads another program with the
 * same counters and puts it in the old one's place in one step. Maps whose names begin with rc_ are one for the node.
 *
 * Counters are plain increments in memory that belongs to one CPU: tc runs programs with bottom halves off, and never
 * one inside another on the same CPU. For the same reason one scratch area a CPU does for all rings.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/ringcap.h>
#include "classify.h"

#define QUEUES_MAX	4096	/* queues of the node */
#define PLACES_MAX	(RINGCAP_SNAPLEN_MAX + 1)
#define TAG_LEN		4	/* bytes of a VLAN tag */
#define MACS_LEN	12	/* bytes before a VLAN tag */

struct output {
	__u32 base;		/* the cluster's queue 0 in the node's table of queues */
	__u32 queues;
	__u32 balance;		/* enum ringcap_balance */
	__u32 resv;
	__u64 key[2];
};

struct config {
	__u32 snaplen;
	__u32 nr_outputs;
	struct output outputs[RINGCAP_OUTPUTS_MAX];
};

struct ring_counters {
	__u64 seen;
	__u64 seen_bytes;
	__u64 filtered;
	__u64 sampled_out;
	__u64 passed;
};

/* A record of a ring buffer as it is put together; the room after the packet lets every bounded copy be proved safe. */
struct record {
	struct ringcap_slot slot;
	__u8 data[PLACES_MAX + MACS_LEN + TAG_LEN + RC_PARSE_MAX];
};

const volatile struct config config;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ring_counters);
} ring_counters SEC(".maps");

/* The loader sets max_entries to the number of possible CPUs. A per-CPU array could not hold values of this size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct record);
} rc_scratch SEC(".maps");

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

/* The next queue of a round robin cluster, by the cluster's base. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} rc_round_robin SEC(".maps");

/* Nanoseconds to subtract from the TAI clock, which follows the wall clock, for the time since the Unix epoch. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} rc_clock SEC(".maps");

/* Keeps @value in a register and from the optimizer, so that the verifier sees the bound that was just put on it. */
#define opaque(value) asm volatile("" : "+r"(value))

/*
 * Whether the ring wants the packet. A stand-in: the loader puts the ring's translated filter program here, which finds
 * the packet in R1 and returns 0 for no. Without a filter it stays as it is.
 */
static __attribute__((noinline)) int ringcap_filter(struct __sk_buff *skb)
{
	int accept = 1;

	asm volatile("" : "+r"(accept) : "r"(skb));
	return accept;
}

static __always_inline __u64 wall_clock(void)
{
	__u32 zero = 0;
	__u64 *offset = bpf_map_lookup_elem(&rc_clock, &zero);

	return bpf_ktime_get_tai_ns() - (offset ? *offset : 0);
}

/* Copies @n bytes of the packet from @from on, 1 to PLACES_MAX. */
static __always_inline long copy(struct __sk_buff *skb, __u32 from, __u8 *to, __u64 n)
{
	n -= 1;
	opaque(n);
	n &= PLACES_MAX - 1;
	return bpf_skb_load_bytes(skb, from, to, n + 1);
}

/* The first @n bytes of the packet as it was on the wire: a tag that the device took off is put back. */
static __always_inline long copy_wire(struct __sk_buff *skb, __u8 *data, __u32 n)
{
	__u32 tci;

	if (!skb->vlan_present)
		return copy(skb, 0, data, n);
	if (n <= MACS_LEN + TAG_LEN)
		return -1;
	if (bpf_skb_load_bytes(skb, 0, data, MACS_LEN))
		return -1;
	tci = skb->vlan_tci;
	*(__be16 *)(data + MACS_LEN) = skb->vlan_proto;
	*(__be16 *)(data + MACS_LEN + 2) = bpf_htons(tci);
	return copy(skb, MACS_LEN, data + MACS_LEN + TAG_LEN, n - MACS_LEN - TAG_LEN);
}

static __always_inline struct ringcap_lane_stats *lane_stats(__u32 place)
{
	__u32 cpu = bpf_get_smp_processor_id();
	void *stats = bpf_map_lookup_elem(&rc_queue_stats, &place);

	return stats ? bpf_map_lookup_elem(stats, &cpu) : NULL;
}

/* Puts the record into the queue at @place of the node's table, or counts why not. A record without memory is none. */
static __attribute__((noinline)) int deliver(struct record *record, __u32 place, __u32 len, __u32 caplen)
{
	struct ringcap_lane_stats *stats = lane_stats(place);
	__u32 *attached = bpf_map_lookup_elem(&rc_attached, &place);
	__u64 size = caplen;
	void *queue;

	if (!stats || !attached)
		return 0;
	if (!*attached) {
		stats->dropped[RINGCAP_DROP_UNATTENDED]++;
		return 0;
	}
	queue = bpf_map_lookup_elem(&rc_queues, &place);
	if (!queue || !record || !caplen) {
		stats->dropped[RINGCAP_DROP_NOMEM]++;
		return 0;
	}
	opaque(size);
	size &= PLACES_MAX - 1;
	if (bpf_ringbuf_output(queue, record, sizeof(record->slot) + size, 0)) {
		stats->dropped[RINGCAP_DROP_FULL]++;
		return 0;
	}
	stats->delivered++;
	stats->delivered_bytes += len;
	return 0;
}

static __always_inline __u32 choose_queue(const volatile struct output *output, __u32 hash)
{
	__u32 base = output->base;
	__u32 *next;

	if (output->balance != RINGCAP_BALANCE_ROUND_ROBIN)
		return rc_queue(hash, output->queues);
	next = bpf_map_lookup_elem(&rc_round_robin, &base);
	return next && output->queues ? __sync_fetch_and_add(next, 1) % output->queues : 0;
}

static __always_inline void fill_slot(struct ringcap_slot *slot, struct __sk_buff *skb, const struct rc_flow *flow,
				      __u8 flags)
{
	__u32 rx_queue = skb->queue_mapping;

	slot->ts_ns = wall_clock();
	slot->ifindex = skb->ifindex;
	slot->vlan_tci = flow->vlan_tci;
	slot->vlan_tpid = flow->vlan_tpid;
	/* On the receive path 0 says that the device did not record its queue, n that it was n - 1. */
	slot->rx_queue = (flags & RINGCAP_SLOT_OUTGOING) || !rx_queue ? 0 : rx_queue - 1;
	slot->flags = flags | flow->flags | RINGCAP_SLOT_HASHED;
	slot->hdr_len = sizeof(*slot);
	slot->l3_off = flow->l3_off;
	slot->l4_off = flow->l4_off;
	slot->l3_proto = flow->l3_proto;
	slot->l4_proto = flow->l4_proto;
	slot->resv = 0;
	slot->rule = 0;
	slot->resv2 = 0;
}

/* Copies and parses the packet of @len bytes on the wire; -1 when it could not be read. */
static __attribute__((noinline)) int take(struct __sk_buff *skb, struct record *record, struct rc_flow *flow, __u32 len)
{
	__u32 need = config.snaplen > RC_PARSE_MAX ? config.snaplen : RC_PARSE_MAX;
	struct rc_frame frame = {};

	if (copy_wire(skb, record->data, len < need ? len : need))
		return -1;
	frame.data = record->data;
	frame.avail = len < RC_PARSE_MAX ? len : RC_PARSE_MAX;
	rc_parse(&frame, flow);
	return 0;
}

static __always_inline void output_all(struct record *record, const struct rc_flow *flow, __u32 len, __u32 caplen)
{
	for (__u32 i = 0; i < RINGCAP_OUTPUTS_MAX && i < config.nr_outputs; i++) {
		const volatile struct output *output = &config.outputs[i];
		__u64 key[2] = { output->key[0], output->key[1] };
		__u32 balance = output->balance;
		__u32 hash;

		if (balance == RINGCAP_BALANCE_ROUND_ROBIN)
			balance = RINGCAP_BALANCE_FLOW;
		hash = rc_flow_hash(flow, balance, key);
		if (record)
			record->slot.hash = hash;
		deliver(record, output->base + choose_queue(output, hash), len, caplen);
	}
}

static __always_inline int capture(struct __sk_buff *skb, __u8 flags)
{
	__u32 len = skb->len + (skb->vlan_present ? TAG_LEN : 0);
	__u32 cpu = bpf_get_smp_processor_id(), zero = 0;
	struct ring_counters *counters = bpf_map_lookup_elem(&ring_counters, &zero);
	struct record *record = bpf_map_lookup_elem(&rc_scratch, &cpu);
	struct rc_flow flow = {};
	__u32 caplen = len < config.snaplen ? len : config.snaplen;

	if (!counters)
		return TC_ACT_UNSPEC;
	counters->seen++;
	counters->seen_bytes += len;
	if (!ringcap_filter(skb)) {
		counters->filtered++;
		return TC_ACT_UNSPEC;
	}
	counters->passed++;
	if (!record || take(skb, record, &flow, len)) {
		caplen = 0;	/* counted as lost for want of memory, in the queue of an empty flow */
	} else {
		fill_slot(&record->slot, skb, &flow, flags);
		record->slot.len = len;
		record->slot.caplen = caplen;
	}
	output_all(record, &flow, len, caplen);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int ringcap_ingress(struct __sk_buff *skb)
{
	return capture(skb, 0);
}

SEC("tc")
int ringcap_egress(struct __sk_buff *skb)
{
	return capture(skb, RINGCAP_SLOT_OUTGOING);
}

char _license[] SEC("license") = "Dual BSD/GPL";
