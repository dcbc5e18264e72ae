// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The eBPF engine's taps. The same program runs at every tapped device, once for each ring. It runs at tc ingress and
 * egress (transparent mode 0), or in XDP, before there is an skb (modes 1 and 2):
 *
 * RX queues -> count -> the ring's filter -> copy the bytes that are needed -> parse -> VLANs -> exact rules ->
 * wildcard rules -> payload patterns -> sampling -> for each output: hash, queue, deliver
 *
 * In tc it always returns tc_next, so that other programs attached there run as if there were no tap. In XDP it returns
 * the mode's verdict, for each packet that the ring has seen.
 *
 * A ring's configuration is read-only data, constant for a loaded program. A change loads another program with the same
 * counters, which replaces the old one in one step. Maps with the prefix rc_ exist once for the node. Maps with the
 * prefix ring_ belong to the ring.
 *
 * Counters of rings, queues and clusters are plain increments in memory that belongs to one CPU: see work.h.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/ringcap.h>
#include "classify.h"

#include "config.h"
#include "constant.h"

const volatile struct config config;

#include "work.h"
#include "balance.h"
#include "fragment.h"
#include "packet.h"
#include "pattern.h"
#include "plain.h"
#include "queue.h"
#include "ruled.h"
#include "rules.h"
#include "shunt.h"
#include "table.h"

/* A packet that is seen is counted as one of filtered, sampled_out, passed, directed and reflected. */
struct ring_counters {
	__u64 resv;
	__u64 seen_bytes;
	__u64 filtered;
	__u64 sampled_out;
	__u64 passed;
	__u64 directed;
	__u64 reflected;
	__u64 reflect_failed;
};

/* The first CPU's counters. The loader enlarges the section's map to a power of two of them, one for each CPU. */
struct ring_counters ring_counters SEC(".data.counters");

/* The receive queues that are captured, by interface. For an interface that is not in the map, all are captured. */
struct rx_queues {
	__u64 bits[RINGCAP_RX_QUEUES_MAX / 64];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RINGCAP_TAPS_MAX);
	__type(key, __u32);
	__type(value, struct rx_queues);
} ring_channels SEC(".maps"); /* the name under which earlier agents pinned it */

/*
 * Whether the ring wants the packet. These are stubs: the loader replaces them by the ring's translated filter program,
 * which gets the packet in R1 and returns 0 for no. Without a filter they stay as they are.
 */
static __attribute__((noinline)) int ringcap_filter(struct __sk_buff *skb)
{
	int accept = 1;

	asm volatile("" : "+r"(accept) : "r"(skb));
	return accept;
}

static __attribute__((noinline)) int ringcap_xdp_filter(struct xdp_md *xdp)
{
	int accept = 1;

	asm volatile("" : "+r"(accept) : "r"(xdp));
	return accept;
}

/* ---- after the decision ---- */

static __always_inline void fill_slot(struct work *work, __u32 ifindex, __u8 flags)
{
	struct ringcap_slot *slot = &work->slot;
	const struct rc_flow *flow = &work->flow;

	slot->len = work->len;
	slot->caplen = work->caplen;
	slot->ifindex = ifindex;
	slot->vlan_tci = flow->vlan_tci;
	slot->vlan_tpid = flow->vlan_tpid;
	slot->rx_queue = work->rx_queue;
	slot->flags = flags | flow->flags;
	slot->l3_off = flow->l3_off;
	slot->l4_off = flow->l4_off;
	slot->l3_proto = flow->l3_proto;
	slot->l4_proto = flow->l4_proto;
	slot->resv = 0;
	slot->rule = work->rule;
	slot->resv2 = 0;
}

static __always_inline int vlan_passes(const struct work *work)
{
	__u32 id = work->flow.vlan_tpid ? work->flow.vlan_tci & 0xfff : 0;

	if (!(config.flags & CONFIG_VLANS))
		return 1;
	return *config_element(vlans, id / 64) >> (id % 64) & 1;
}

/* A fragment belongs to a flow of its own, by addresses and protocol, because only the first one knows the ports. */
static __always_inline int in_sample(struct work *work)
{
	__u64 key[2] = { config.sample_key[0], config.sample_key[1] };

	if (config.sample_n <= 1)
		return 1;
	if (config.sample_by == RINGCAP_SAMPLE_RANDOM)
		return !rc_queue(bpf_get_prandom_u32(), config.sample_n);
	return !rc_queue(rc_flow_hash(&work->flow, RINGCAP_BALANCE_FIVE_TUPLE, key), config.sample_n);
}

enum fate { FATE_FILTERED, FATE_SAMPLED_OUT, FATE_REFLECTED, FATE_DIRECTED, FATE_PASSED };

__attribute__((noinline)) int decide(void)
{
	struct work *work = this_work();

	if (!work)
		return FATE_FILTERED;
	work->action = RINGCAP_ACTION_PASS;
	work->rule = 0;
	if (!vlan_passes(work))
		return FATE_FILTERED;
	if (config.flags & (CONFIG_EXACT | CONFIG_LEARN | CONFIG_WILD) || config.default_action != RINGCAP_ACTION_PASS)
		rules_decide();
	if (work->action == RINGCAP_ACTION_DROP)
		return FATE_FILTERED;
	if (work->action == RINGCAP_ACTION_REFLECT)
		return FATE_REFLECTED;
	if ((config.flags & CONFIG_PATTERNS) && !pattern_pass())
		return FATE_FILTERED;
	if (!in_sample(work))
		return FATE_SAMPLED_OUT;
	return work->action == RINGCAP_ACTION_QUEUE ? FATE_DIRECTED : FATE_PASSED;
}

/* Puts a copy into a queue of output or target @number, unless its consumer has shunted the flow. */
static __always_inline void put(void *ctx, const enum hook hook, struct work *work, const volatile struct output *to,
				__u32 number, __u32 copy, __u32 queue)
{
	__u8 flags = work->slot.flags & ~RINGCAP_SLOT_HASHED;

	if (config.flags & CONFIG_SHUNTS && to->shunts && shunt_takes(to->base + queue, 1))
		return;
	work->slot.flags = flags | to->hashed;
	work->slot.hash = to->hashed ? work->hashes[copy] : 0;
	table_put(ctx, hook, number, queue);
}

#define PASS_TO(n, to) \
	if (config.nr_outputs > (n)) { \
		balance_output(n); \
		if (work->goes[0] != NOWHERE) \
			put(ctx, hook, work, to, n, 0, work->goes[0]); \
		if (work->goes[1] != NOWHERE) \
			put(ctx, hook, work, to, n, 1, work->goes[1]); \
	}

static __always_inline void pass(void *ctx, const enum hook hook, struct work *work, struct ring_counters *counters)
{
	counters->passed++;
	TABLE_OUTPUTS(PASS_TO)
}

static __always_inline void direct(void *ctx, const enum hook hook, struct work *work)
{
	__u32 number = work->target & (TARGETS_MAX - 1);
	const volatile struct output *target = config_element(targets, number);

	balance_direct(number);
	put(ctx, hook, work, target, RINGCAP_OUTPUTS_MAX + number, 0, target->queue);
}

/* Delivers a parsed packet according to the decision. Returns its fate, which is counted. */
static __always_inline int dispose(void *ctx, const enum hook hook, struct work *work, struct ring_counters *counters,
				   __u32 ifindex, __u8 flags)
{
	int fate = decide();

	switch (fate) {
	case FATE_FILTERED:
		counters->filtered++;
		break;
	case FATE_SAMPLED_OUT:
		counters->sampled_out++;
		break;
	case FATE_REFLECTED:
		counters->reflected++;
		break;
	case FATE_DIRECTED:
		counters->directed++;
		fill_slot(work, ifindex, flags);
		direct(ctx, hook, work);
		break;
	default:
		fill_slot(work, ifindex, flags);
		pass(ctx, hook, work, counters);
	}
	return fate;
}

static __always_inline int rx_queue_is_captured(__u32 ifindex, __u32 rx_queue)
{
	struct rx_queues *rx_queues = bpf_map_lookup_elem(&ring_channels, &ifindex);
	__u32 word = rx_queue / 64;

	if (!rx_queues)
		return 1;
	return word < RINGCAP_RX_QUEUES_MAX / 64 && rx_queues->bits[word] >> (rx_queue % 64) & 1;
}

/* @cpu: of this_cpu. */
static __always_inline struct ring_counters *this_counters(__u64 cpu)
{
	struct ring_counters *counters = &ring_counters;

	opaque(counters);
	counters += cpu;
	opaque(counters);
	return counters;
}

/*
 * Handles a packet that cannot be read. It counts as lost for lack of memory, in the queue of an empty flow, whatever
 * the rules are.
 */
static __always_inline void lose(void *ctx, const enum hook hook, struct work *work, struct ring_counters *counters)
{
	rc_flow_clear(&work->flow);
	work->inside = INNER_NONE;
	work->caplen = 0;
	work->rule = 0;
	fill_slot(work, 0, 0);
	pass(ctx, hook, work, counters);
}

/* The path of packets that are not plain. Returns the packet's fate. */
static __always_inline int capture_any(void *ctx, const enum hook hook, struct ring_counters *counters, __u32 len,
				       __u32 ifindex, __u32 rx_queue, __u8 flags, struct work *work)
{
	work->len = len;
	work->caplen = len < config.snaplen ? len : config.snaplen;
	work->rx_queue = rx_queue;
	if (packet_copy_parsed(ctx, hook, work)) {
		lose(ctx, hook, work, counters);
		return FATE_PASSED;
	}
	work_parse();
	return dispose(ctx, hook, work, counters, ifindex, flags);
}

/* Delivers a packet of a plain ring by the tables. @slot describes it, except for lengths and hash. */
static __always_inline void capture_plain(void *ctx, const enum hook hook, __u32 len, struct ringcap_slot *slot,
					  __u32 cpu)
{
	slot->len = len;
	slot->caplen = len < config.snaplen ? len : config.snaplen;
	plain_deliver(ctx, hook, slot, cpu);
}

/* The ways that a packet can take after the filter. */
enum way {
	WAY_GENERAL,
	WAY_PLAIN,	/* that of plain.h */
	WAY_NOWHERE,	/* a rule drops it */
};

/* The way of a packet of a ring with CONFIG_RULED, if it has no tag beside its bytes. */
static __always_inline enum way way_of(void *ctx, const enum hook hook, __u32 len, __u32 cpu)
{
	__u64 fields, addrs;

	if (!ruled_read(ctx, hook, &fields, &addrs))
		return WAY_GENERAL;
	/* Before exact rules: a flow is not learnt while one decides on it. */
	if (CONSTANT(has_learnt) && ruled_find_learnt(fields, addrs))
		return WAY_PLAIN;
	return ruled_decide(fields, addrs, len, cpu) == RINGCAP_ACTION_DROP ? WAY_NOWHERE : WAY_PLAIN;
}

/* ---- tc ---- */

static __always_inline void reflect(struct __sk_buff *skb, const struct work *work, struct ring_counters *counters)
{
	const volatile struct output *target = config_element(targets, work->target);

	/* From here on the work may hold another packet: taps of the other interface run within this call. */
	if (bpf_clone_redirect(skb, target->base, 0))
		counters->reflect_failed++;
}

/* Handles a packet of a plain ring that does not go directly to its queue. */
static __attribute__((noinline)) int capture_by_tables(struct __sk_buff *skb, __u32 direction)
{
	struct ringcap_slot slot = {
		.ifindex = skb->ifindex, .rx_queue = packet_rx_queue(skb, HOOK_TC, direction),
		.flags = packet_flags(skb, HOOK_TC, direction),
	};

	if (skb->vlan_present) {
		slot.vlan_tci = skb->vlan_tci;
		slot.vlan_tpid = bpf_ntohs(skb->vlan_proto);
		slot.flags |= RINGCAP_SLOT_VLAN;
	}
	capture_plain(skb, HOOK_TC, packet_len(skb), &slot, bpf_get_smp_processor_id());
	return 0;
}

/* Handles a packet of a ring that is not plain. */
static __attribute__((noinline)) int capture_skb(struct __sk_buff *skb, __u32 direction)
{
	struct ring_counters *counters = this_counters(this_cpu());
	__u32 rx_queue = packet_rx_queue(skb, HOOK_TC, direction);
	__u8 flags = packet_flags(skb, HOOK_TC, direction);
	struct work *work = this_work();

	if (work && capture_any(skb, HOOK_TC, counters, packet_len(skb), skb->ifindex, rx_queue, flags,
				work) == FATE_REFLECTED)
		reflect(skb, work, counters);
	return 0;
}

/* A function of its own, or packets of rings without such queues would jump around it. */
static __attribute__((noinline)) int is_of_captured_queue(struct __sk_buff *skb)
{
	return rx_queue_is_captured(skb->ifindex, packet_rx_queue(skb, HOOK_TC, 0));
}

/*
 * Takes the steps before the queue: the ring's receive queues, its filter, and the rules of ruled.h. Counts the
 * packet's bytes, and counts it as filtered if the ring does not want it. @untagged: it is known to have no tag beside
 * its bytes.
 */
static __always_inline enum way capture_steps(struct __sk_buff *skb, const int untagged, __u64 len, __u32 direction,
					      __u32 cpu, struct ring_counters *counters)
{
	enum way way;

	if (IS_SET(has_rx_queues, len) && !(direction & RINGCAP_SLOT_OUTGOING) && !is_of_captured_queue(skb))
		return WAY_NOWHERE;
	counters->seen_bytes += len;
	if (!IS_SET(has_no_filter, len) && !ringcap_filter(skb)) {
		counters->filtered++;
		return WAY_NOWHERE;
	}
	if (!IS_SET(is_ruled, len))
		return IS_SET(is_plain, len) ? WAY_PLAIN : WAY_GENERAL;
	way = untagged || !skb->vlan_present ? way_of(skb, HOOK_TC, len, cpu) : WAY_GENERAL;
	if (way == WAY_NOWHERE)
		counters->filtered++;
	return way;
}

/* Handles a packet that has a tag beside its bytes, or is of a ring whose queues are not reached directly. */
static __attribute__((noinline)) int capture_other(struct __sk_buff *skb, __u32 direction)
{
	__u32 len = packet_len(skb);
	__u64 cpu = this_cpu();
	struct ring_counters *counters = this_counters(cpu);

	switch (capture_steps(skb, 0, len, direction, cpu, counters)) {
	case WAY_NOWHERE:
		return 0;
	case WAY_GENERAL:
		return capture_skb(skb, direction);
	default:
		counters->passed++;
		return capture_by_tables(skb, direction);
	}
}

/* Handles a packet of a ring that is_direct. */
static __always_inline void capture_direct(struct __sk_buff *skb, const __u32 direction)
{
	struct ring_counters *counters;
	enum way way = WAY_PLAIN;
	__u64 len = skb->len, cpu;

	opaque(len); /* else it is in two registers, one of them of 32 bits */
	if (skb->vlan_present) {
		capture_other(skb, direction);
		return;
	}
	cpu = this_cpu();
	counters = this_counters(cpu);
	if (IS_SET(has_steps, len))
		way = capture_steps(skb, 1, len, direction, cpu, counters);
	else
		counters->seen_bytes += len;
	if (way == WAY_NOWHERE)
		return;
	if (way == WAY_GENERAL) {
		capture_skb(skb, direction);
		return;
	}
	counters->passed++;
	if (!plain_direct(skb, HOOK_TC, len, direction, cpu))
		capture_by_tables(skb, direction);
}

/* The loader takes the first two, or the other two if the ring is_direct. */

SEC("tc")
int ringcap_ingress(struct __sk_buff *skb)
{
	capture_other(skb, 0);
	return CONSTANT(tc_next);
}

SEC("tc")
int ringcap_egress(struct __sk_buff *skb)
{
	capture_other(skb, RINGCAP_SLOT_OUTGOING);
	return CONSTANT(tc_next);
}

SEC("tc")
int ringcap_direct_ingress(struct __sk_buff *skb)
{
	capture_direct(skb, 0);
	return CONSTANT(tc_next);
}

SEC("tc")
int ringcap_direct_egress(struct __sk_buff *skb)
{
	capture_direct(skb, RINGCAP_SLOT_OUTGOING);
	return CONSTANT(tc_next);
}

/* ---- XDP ---- */

/* Handles a frame of a plain ring that does not go directly to its queue. */
static __attribute__((noinline)) int capture_xdp_by_tables(struct xdp_md *xdp, __u32 len, __u32 rx_queue)
{
	struct ringcap_slot slot = { .ifindex = xdp->ingress_ifindex, .rx_queue = rx_queue };

	capture_plain(xdp, HOOK_XDP, len, &slot, bpf_get_smp_processor_id());
	return 0;
}

/* Handles a frame of a ring that is not plain. */
static __attribute__((noinline)) int capture_xdp(struct xdp_md *xdp, __u32 len, __u32 rx_queue)
{
	struct ring_counters *counters = this_counters(this_cpu());
	struct work *work = this_work();

	if (work)
		capture_any(xdp, HOOK_XDP, counters, len, xdp->ingress_ifindex, rx_queue, 0, work);
	return 0;
}

SEC("xdp.frags")
int ringcap_xdp(struct xdp_md *xdp)
{
	__u32 len = bpf_xdp_get_buff_len(xdp), rx_queue = xdp->rx_queue_index;
	__u64 cpu = this_cpu();
	struct ring_counters *counters;
	enum way way = IS_SET(is_plain, len) ? WAY_PLAIN : WAY_GENERAL;

	if (IS_SET(has_rx_queues, len) && !rx_queue_is_captured(xdp->ingress_ifindex, rx_queue))
		return XDP_PASS;
	counters = this_counters(cpu);
	counters->seen_bytes += len;
	if (!IS_SET(has_no_filter, len) && !ringcap_xdp_filter(xdp)) {
		counters->filtered++;
		return config.xdp_verdict;
	}
	if (IS_SET(is_ruled, len))
		way = way_of(xdp, HOOK_XDP, len, cpu);
	if (way == WAY_NOWHERE) {
		counters->filtered++;
		return config.xdp_verdict;
	}
	if (way == WAY_GENERAL) {
		capture_xdp(xdp, len, rx_queue);
		return config.xdp_verdict;
	}
	counters->passed++;
	if (!IS_SET(is_direct, cpu) || !plain_direct(xdp, HOOK_XDP, len, 0, cpu))
		capture_xdp_by_tables(xdp, len, rx_queue);
	return config.xdp_verdict;
}

char _license[] SEC("license") = "Dual BSD/GPL";
