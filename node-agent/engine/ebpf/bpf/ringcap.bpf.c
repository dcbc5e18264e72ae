// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The eBPF engine's taps. The same program runs at every tapped device, once for each ring: at tc ingress and egress
 * (transparent mode 0) or in XDP, before there is an skb (modes 1 and 2):
 *
 *   RX queues -> count -> the ring's filter -> copy the packet as it was on the wire -> parse -> VLANs -> exact rules ->
 *   wildcard rules -> payload patterns -> sampling -> for each output: hash, queue, deliver
 *
 * In tc it always returns TC_ACT_UNSPEC, so that what else is attached there runs as if the tap were not. In XDP it returns
 * the mode's verdict, for each packet that the ring has seen.
 *
 * A ring's configuration is read-only data, constant for a loaded program; a change loads another program with the
 * same counters and puts it in the old one's place in one step. Maps whose names begin with rc_ are one for the node, those
 * that begin with ring_ the ring's.
 *
 * Counters of rings, queues and clusters are plain increments in memory that belongs to one CPU: see work.h.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/ringcap.h>
#include "classify.h"

#include "config.h"

const volatile struct config config;

#include "work.h"
#include "balance.h"
#include "fragment.h"
#include "pattern.h"
#include "queue.h"
#include "rules.h"

struct ring_counters {
	__u64 seen;
	__u64 seen_bytes;
	__u64 filtered;
	__u64 sampled_out;
	__u64 passed;
	__u64 directed;
	__u64 reflected;
	__u64 reflect_failed;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ring_counters);
} ring_counters SEC(".maps");

/* The receive queues that are captured, by interface; of one that is not in here all are. */
struct channels {
	__u64 bits[RINGCAP_CHANNELS_MAX / 64];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RINGCAP_TAPS_MAX);
	__type(key, __u32);
	__type(value, struct channels);
} ring_channels SEC(".maps");

/* Nanoseconds to subtract from the TAI clock, which follows the wall clock, for the time since the Unix epoch. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} rc_clock SEC(".maps");

/*
 * Whether the ring wants the packet. Stand-ins: the loader puts the ring's translated filter program here, which finds
 * the packet in R1 and returns 0 for no. Without a filter they stay as they are.
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

static __always_inline __u64 wall_clock(void)
{
	__u32 zero = 0;
	__u64 *offset = bpf_map_lookup_elem(&rc_clock, &zero);

	return bpf_ktime_get_tai_ns() - (offset ? *offset : 0);
}

/* ---- the packet's bytes, as they were on the wire ---- */

/* A length from 1 to PLACES_MAX in the very register that a helper gets. */
#define bounded_by(n, most) ({ __u64 _n = (n) - 1; opaque(_n); _n &= (most) - 1; _n + 1; })
#define bounded(n) bounded_by(n, PLACES_MAX)

/* A tag that the device took off is put back. */
static __always_inline long copy_skb(struct __sk_buff *skb, __u8 *data, __u32 n)
{
	__u32 tci;

	if (!skb->vlan_present)
		return bpf_skb_load_bytes(skb, 0, data, bounded((__u64)n));
	if (n <= MACS_LEN + TAG_LEN)
		return -1;
	if (bpf_skb_load_bytes(skb, 0, data, MACS_LEN))
		return -1;
	tci = skb->vlan_tci;
	*(__be16 *)(data + MACS_LEN) = skb->vlan_proto;
	*(__be16 *)(data + MACS_LEN + 2) = bpf_htons(tci);
	return bpf_skb_load_bytes(skb, MACS_LEN, data + MACS_LEN + TAG_LEN, bounded((__u64)n - MACS_LEN - TAG_LEN));
}

/* How many bytes are needed of a packet of @len. */
static __always_inline __u32 copied(__u32 len)
{
	__u32 need = config.snaplen > config.parsed ? config.snaplen : config.parsed;

	return len < need ? len : need;
}

/* How many more are searched. */
static __always_inline __u32 beyond(__u32 len)
{
	if (!(config.flags & CONFIG_PATTERNS) || len <= RINGCAP_SNAPLEN_MAX)
		return 0;
	return len < SEARCHED_MAX ? len - RINGCAP_SNAPLEN_MAX : BEYOND_MAX;
}

static __always_inline long copy_skb_beyond(struct __sk_buff *skb, __u8 *data, __u32 len)
{
	__u32 n = beyond(len), off = RINGCAP_SNAPLEN_MAX - (skb->vlan_present ? TAG_LEN : 0);

	return n ? bpf_skb_load_bytes(skb, off, data + RINGCAP_SNAPLEN_MAX, bounded_by((__u64)n, BEYOND_MAX)) : 0;
}

static __always_inline long copy_xdp(struct xdp_md *xdp, __u8 *data, __u32 len)
{
	__u32 n = beyond(len);
	long failed = bpf_xdp_load_bytes(xdp, 0, data, bounded((__u64)copied(len)));

	if (failed || !n)
		return failed;
	return bpf_xdp_load_bytes(xdp, RINGCAP_SNAPLEN_MAX, data + RINGCAP_SNAPLEN_MAX, bounded_by((__u64)n, BEYOND_MAX));
}

/* ---- what becomes of it ---- */

static __always_inline void fill_slot(struct work *work, __u32 ifindex, __u8 flags)
{
	struct ringcap_slot *slot = &work->record.slot;
	const struct rc_flow *flow = &work->flow;

	slot->ts_ns = wall_clock();
	slot->len = work->len;
	slot->caplen = work->caplen;
	slot->hash = 0;
	slot->ifindex = ifindex;
	slot->vlan_tci = flow->vlan_tci;
	slot->vlan_tpid = flow->vlan_tpid;
	slot->rx_queue = work->rx_queue;
	slot->flags = flags | flow->flags | RINGCAP_SLOT_HASHED;
	slot->hdr_len = sizeof(*slot);
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

/* Fragments are flows of their own, by addresses and protocol, since only the first knows the ports. */
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

static __always_inline void pass(struct ring_counters *counters)
{
	counters->passed++;
	for (__u32 i = 0; i < RINGCAP_OUTPUTS_MAX && i < config.nr_outputs; i++)
		balance_output(i);
}

/* Delivers a packet that was copied and parsed, as was decided. Returns the fate, which is counted. */
static __always_inline int dispose(struct work *work, struct ring_counters *counters, __u32 ifindex, __u8 flags)
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
		balance_direct(work->target);
		break;
	default:
		fill_slot(work, ifindex, flags);
		pass(counters);
	}
	return fate;
}

static __always_inline int channel_is_captured(__u32 ifindex, __u32 rx_queue)
{
	struct channels *channels = bpf_map_lookup_elem(&ring_channels, &ifindex);
	__u32 word = rx_queue / 64;

	if (!channels)
		return 1;
	return word < RINGCAP_CHANNELS_MAX / 64 && channels->bits[word] >> (rx_queue % 64) & 1;
}

static __always_inline struct ring_counters *begin(struct work *work, __u32 len)
{
	__u32 zero = 0;
	struct ring_counters *counters = bpf_map_lookup_elem(&ring_counters, &zero);

	if (!counters)
		return NULL;
	counters->seen++;
	counters->seen_bytes += len;
	work->len = len;
	work->caplen = len < config.snaplen ? len : config.snaplen;
	return counters;
}

/* A packet that cannot be read counts as lost for lack of memory, in the queue of an empty flow, with any rules. */
static __always_inline void lose(struct work *work, struct ring_counters *counters)
{
	rc_flow_clear(&work->flow);
	work->inside = INNER_NONE;
	work->caplen = 0;
	pass(counters);
}

/* ---- tc ---- */

static __always_inline void reflect(struct __sk_buff *skb, const struct work *work, struct ring_counters *counters)
{
	const volatile struct output *target = config_element(targets, work->target);

	/* From here on the work may be another packet's: taps of the other interface run in this. */
	if (bpf_clone_redirect(skb, target->base, 0))
		counters->reflect_failed++;
}

static __always_inline int capture(struct __sk_buff *skb, __u8 flags)
{
	__u32 len = skb->len + (skb->vlan_present ? TAG_LEN : 0);
	/* On the receive path 0 means that the device did not record its queue, n that it was n - 1. */
	__u32 recorded = flags & RINGCAP_SLOT_OUTGOING ? 0 : skb->queue_mapping;
	__u32 rx_queue = recorded ? recorded - 1 : 0;
	struct work *work = this_work();
	struct ring_counters *counters;

	if (!work)
		return TC_ACT_UNSPEC;
	if ((config.flags & CONFIG_CHANNELS) && !(flags & RINGCAP_SLOT_OUTGOING) &&
	    !channel_is_captured(skb->ifindex, rx_queue))
		return TC_ACT_UNSPEC;
	counters = begin(work, len);
	if (!counters)
		return TC_ACT_UNSPEC;
	work->rx_queue = rx_queue;
	if (!ringcap_filter(skb)) {
		counters->filtered++;
	} else if (copy_skb(skb, work->record.data, copied(len)) || copy_skb_beyond(skb, work->record.data, len)) {
		lose(work, counters);
	} else {
		work_parse();
		/* Programs are not told whether the checksum is there. */
		if (dispose(work, counters, skb->ifindex, flags | (skb->gso_size ? RINGCAP_SLOT_MERGED : 0)) == FATE_REFLECTED)
			reflect(skb, work, counters);
	}
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

/* ---- XDP ---- */

SEC("xdp.frags")
int ringcap_xdp(struct xdp_md *xdp)
{
	__u32 len = bpf_xdp_get_buff_len(xdp), ifindex = xdp->ingress_ifindex, rx_queue = xdp->rx_queue_index;
	struct work *work = this_work();
	struct ring_counters *counters;

	if (!work)
		return XDP_PASS;
	if ((config.flags & CONFIG_CHANNELS) && !channel_is_captured(ifindex, rx_queue))
		return XDP_PASS;
	counters = begin(work, len);
	if (!counters)
		return XDP_PASS;
	work->rx_queue = rx_queue;
	if (!ringcap_xdp_filter(xdp)) {
		counters->filtered++;
	} else if (copy_xdp(xdp, work->record.data, len)) {
		lose(work, counters);
	} else {
		work_parse();
		dispose(work, counters, ifindex, 0);
	}
	return config.xdp_verdict;
}

char _license[] SEC("license") = "Dual BSD/GPL";
