/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fragments that stay with their flow, as in kmod/fragment.h. Only a datagram's first fragment has ports, and a table
 * remembers them for the others. The table belongs to the ring. When it is full, it evicts the least recently used
 * entry.
 */
#ifndef RC_FRAGMENT_H
#define RC_FRAGMENT_H

#include "work.h"

#define FRAGMENT_NS	30000000000ULL	/* the stack waits this long for the rest of a datagram */

struct fragment_key {
	__u32 saddr[4];
	__u32 daddr[4];
	__u32 id;
	__u16 vlan;
	__u16 inner_vid;
	__u32 kind;	/* IPv4: the protocol; else the ethertype: IPv6 identifies no datagram by protocol */
	__u32 cluster;	/* the first place of its queues: each cluster counts separately */
};

/* @seen: bytes of payload that have arrived. @total: length of the datagram's payload, 0 = not known. */
struct datagram {
	__u64 began;	/* nanoseconds */
	__u32 seen;
	__u32 total;
	__u16 sport;
	__u16 dport;
	__u8 l4_proto;
	__u8 with_flow;
	__u16 resv;
};

/* What a fragment's headers say. @off, @len: bytes of the payload; @more: it is not the last one. */
struct fragment {
	__u32 id;
	__u32 off;
	__u32 len;
	__u32 more;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct fragment_key);
	__type(value, struct datagram);
} ring_fragments SEC(".maps");

/* The 16 bits at @off; 0 if they are not in the packet, or beyond the part that is parsed. */
static __always_inline __u32 fragment_read(const struct work *work, __u32 off)
{
	__u64 at = off;

	if (at + 2 > work->len || at + 2 > RC_INNER_MAX)
		return 0;
	opaque(at);
	at &= 1023;
	return rc_get16(work->data + at);
}

static __always_inline void fragment_read_ipv4(const struct work *work, const struct rc_flow *flow,
					       struct fragment *fragment)
{
	__u32 off = flow->l3_off, frag = fragment_read(work, off + 6);
	__u32 header = (fragment_read(work, off) >> 8 & 0xf) * 4, len = fragment_read(work, off + 2);

	fragment->id = fragment_read(work, off + 4);
	fragment->off = (frag & 0x1fff) * 8;
	fragment->more = frag & 0x2000;
	fragment->len = len > header ? len - header : 0;
}

/* The parser has seen the fragment header, so there are only a few other headers before it. */
static __always_inline int fragment_read_ipv6(const struct work *work, const struct rc_flow *flow,
					      struct fragment *fragment)
{
	__u32 off = flow->l3_off + 40u, proto = fragment_read(work, flow->l3_off + 6u) >> 8, next, before, len, i;

	for (i = 0; i < RC_EXTHDRS_MAX && proto != RC_IPPROTO_FRAGMENT; i++) {
		next = fragment_read(work, off);
		off += rc_exthdr_len(proto, next & 0xff);
		proto = next >> 8;
	}
	if (proto != RC_IPPROTO_FRAGMENT)
		return 0;
	before = off - flow->l3_off + 8;
	len = 40 + fragment_read(work, flow->l3_off + 4u);
	fragment->id = fragment_read(work, off + 4) << 16 | fragment_read(work, off + 6);
	fragment->off = fragment_read(work, off + 2) & 0xfff8;
	fragment->more = fragment_read(work, off + 2) & 1;
	fragment->len = len > before ? len - before : 0;
	return 1;
}

static __always_inline void fragment_make_key(const struct rc_flow *flow, __u32 id, __u32 cluster,
					      struct fragment_key *key)
{
	__builtin_memcpy(key->saddr, flow->saddr, sizeof(key->saddr));
	__builtin_memcpy(key->daddr, flow->daddr, sizeof(key->daddr));
	key->id = id;
	key->vlan = flow->vlan_tci & 0xfff;
	key->inner_vid = flow->inner_vid;
	key->kind = flow->l3_proto == RC_ETH_P_IPV4 ? flow->l4_proto : RC_ETH_P_IPV6;
	key->cluster = cluster;
}

/* Adds the ports to a first fragment's flow in @flow; returns 0 if they are truncated. */
static __always_inline int fragment_add_ports(const struct work *work, struct rc_flow *flow)
{
	if (!flow->l4_off)
		return 0;
	if (!rc_proto_has_ports(flow->l4_proto))
		return 1;
	if (flow->l4_off + 4u > work->len || flow->l4_off + 4u > RC_INNER_MAX)
		return 0;
	flow->sport = fragment_read(work, flow->l4_off);
	flow->dport = fragment_read(work, flow->l4_off + 2u);
	return 1;
}

static __always_inline void datagram_begin(struct datagram *datagram, const struct rc_flow *flow, int with_flow,
					   __u64 now)
{
	datagram->began = now;
	datagram->seen = 0;
	datagram->total = 0;
	datagram->sport = with_flow ? flow->sport : 0;
	datagram->dport = with_flow ? flow->dport : 0;
	datagram->l4_proto = flow->l4_proto;
	datagram->with_flow = with_flow;
	datagram->resv = 0;
}

/* Signed: another CPU may have begun the datagram after this one read the clock. */
static __always_inline int datagram_is_over(const struct datagram *datagram, const struct fragment *fragment, __u64 now)
{
	return (__s64)(now - datagram->began) > (__s64)FRAGMENT_NS ||
	       (datagram->total && datagram->seen >= datagram->total && !fragment->off);
}

/*
 * Sets work->whole, which is a fragment's flow, to the flow of the whole datagram, and returns 1. Returns 0 if only the
 * fields that all fragments have can be used. @cluster: the cluster that this is for.
 */
__attribute__((noinline)) int fragment_complete(__u32 cluster)
{
	struct work *work = this_work();
	struct fragment_key key = {};
	struct fragment fragment = {};
	struct datagram fresh, *datagram;
	__u64 now = bpf_ktime_get_ns();
	struct rc_flow *flow;
	int has_ports;

	if (!work)
		return 0;
	flow = &work->whole;
	if (flow->l3_proto == RC_ETH_P_IPV4)
		fragment_read_ipv4(work, flow, &fragment);
	else if (!fragment_read_ipv6(work, flow, &fragment))
		return 0;
	has_ports = !fragment.off && fragment_add_ports(work, flow);
	fragment_make_key(flow, fragment.id, cluster, &key);
	datagram = bpf_map_lookup_elem(&ring_fragments, &key);
	if (!datagram) {
		datagram_begin(&fresh, flow, has_ports, now);
		bpf_map_update_elem(&ring_fragments, &key, &fresh, BPF_NOEXIST);
		datagram = bpf_map_lookup_elem(&ring_fragments, &key);
		if (!datagram)
			return 0;
	} else if (datagram_is_over(datagram, &fragment, now)) {
		datagram_begin(datagram, flow, has_ports, now);
	}
	__sync_fetch_and_add(&datagram->seen, fragment.len);
	if (!fragment.more)
		datagram->total = fragment.off + fragment.len;
	if (!datagram->with_flow)
		return 0;
	flow->sport = datagram->sport;
	flow->dport = datagram->dport;
	flow->l4_proto = datagram->l4_proto;
	flow->flags &= ~RINGCAP_SLOT_FRAGMENT;
	return 1;
}

#endif /* RC_FRAGMENT_H */
