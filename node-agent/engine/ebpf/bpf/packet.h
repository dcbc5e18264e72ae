/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The bytes of the current packet, as they were on the wire, read from a tc or an XDP context. */
#ifndef RC_PACKET_H
#define RC_PACKET_H

#include "work.h"

enum hook { HOOK_TC, HOOK_XDP };

/* The packet's bytes on the wire. */
static __always_inline __u32 packet_len(struct __sk_buff *skb)
{
	return skb->len + (skb->vlan_present ? TAG_LEN : 0);
}

static __always_inline __u32 packet_ifindex(void *ctx, const enum hook hook)
{
	return hook == HOOK_XDP ? ((struct xdp_md *)ctx)->ingress_ifindex : ((struct __sk_buff *)ctx)->ifindex;
}

/* The device's receive queue. An skb has it plus 1, or 0 if the device did not record it. */
static __always_inline __u32 packet_rx_queue(void *ctx, const enum hook hook, __u32 direction)
{
	__u32 recorded;

	if (hook == HOOK_XDP)
		return ((struct xdp_md *)ctx)->rx_queue_index;
	if (direction & RINGCAP_SLOT_OUTGOING)
		return 0;
	recorded = ((struct __sk_buff *)ctx)->queue_mapping;
	return recorded ? recorded - 1 : 0;
}

/* Whether the packet stands for several that were merged, or are still to be made. */
static __always_inline int packet_is_merged(void *ctx, const enum hook hook)
{
	return hook == HOOK_TC && ((struct __sk_buff *)ctx)->gso_size;
}

/* The slot's flags that the packet's bytes do not tell. Programs cannot see whether the checksum is there. */
static __always_inline __u32 packet_flags(void *ctx, const enum hook hook, __u32 direction)
{
	if (packet_is_merged(ctx, hook)) {
		direction |= RINGCAP_SLOT_MERGED;
		opaque(direction);
	}
	return direction;
}

/* A length from 1 to PLACES_MAX in the register that is passed to a helper. */
#define bounded_by(n, most) ({ __u64 _n = (n) - 1; opaque(_n); _n &= (most) - 1; _n + 1; })
#define bounded(n) bounded_by(n, PLACES_MAX)

/* The first bytes, if they are too few to include the whole tag that is put back. */
static __always_inline long packet_copy_short(struct __sk_buff *skb, __u8 *data, __u32 n)
{
	__u8 head[MACS_LEN + TAG_LEN];
	__u32 tci = skb->vlan_tci;

	if (bpf_skb_load_bytes(skb, 0, head, MACS_LEN))
		return -1;
	*(__be16 *)(head + MACS_LEN) = skb->vlan_proto;
	*(__be16 *)(head + MACS_LEN + 2) = bpf_htons(tci);
	for (__u32 i = 0; i < sizeof(head); i++)
		if (i < n)
			data[i] = head[i];
	return 0;
}

/* Puts a tag back that the device stripped. */
static __attribute__((noinline)) long packet_copy_tagged(struct __sk_buff *skb, __u8 *data, __u32 n)
{
	__u32 tci = skb->vlan_tci;

	if (n <= MACS_LEN + TAG_LEN)
		return packet_copy_short(skb, data, n);
	if (bpf_skb_load_bytes(skb, 0, data, MACS_LEN))
		return -1;
	*(__be16 *)(data + MACS_LEN) = skb->vlan_proto;
	*(__be16 *)(data + MACS_LEN + 2) = bpf_htons(tci);
	return bpf_skb_load_bytes(skb, MACS_LEN, data + MACS_LEN + TAG_LEN, bounded((__u64)n - MACS_LEN - TAG_LEN));
}

static __always_inline void packet_move32(__u8 *to, const __u8 *from)
{
	/* Two words at a time: four would take registers that the caller needs. */
	for (int i = 0; i < 32; i += 16) {
		__u64 a = *(const __u64 *)(from + i), b = *(const __u64 *)(from + i + 8);

		*(__u64 *)(to + i) = a;
		*(__u64 *)(to + i + 8) = b;
	}
}

/*
 * Copies all of a small packet without a call, as kmod/packet.h does: most packets are small. Returns false if the
 * packet is not small, or is not contiguous.
 */
static __always_inline int packet_copy_small(void *ctx, const enum hook hook, __u8 *to, __u64 n)
{
	struct __sk_buff *skb = ctx;
	struct xdp_md *xdp = ctx;
	const __u8 *data = (void *)(long)(hook == HOOK_XDP ? xdp->data : skb->data), *second;
	const __u8 *end = (void *)(long)(hook == HOOK_XDP ? xdp->data_end : skb->data_end);
	__u64 rest = n - 32;

	opaque(rest);
	if (rest > 32)
		return 0;
	second = data + rest;
	if (data + 32 > end || second + 32 > end)
		return 0;
	packet_move32(to, data);
	packet_move32(to + rest, second);
	return 1;
}

/* Copies the first @n bytes, 1 .. PLACES_MAX, of the skb's data or the frame. Returns nonzero if it cannot. */
static __always_inline long packet_load(void *ctx, const enum hook hook, __u8 *data, __u64 n)
{
	if (hook == HOOK_XDP)
		return bpf_xdp_load_bytes(ctx, 0, data, bounded(n));
	return bpf_skb_load_bytes(ctx, 0, data, bounded(n));
}

/* Copies the first @n bytes, 1 .. PLACES_MAX, to @data. Returns nonzero if they could not be read. */
static __always_inline long packet_copy(void *ctx, const enum hook hook, __u8 *data, __u32 n)
{
	struct __sk_buff *skb = ctx;

	if (hook == HOOK_TC && skb->vlan_present)
		return packet_copy_tagged(skb, data, n);
	return packet_copy_small(ctx, hook, data, n) ? 0 : packet_load(ctx, hook, data, n);
}

/* The number of bytes to search behind the longest part that a slot can hold. */
static __always_inline __u32 packet_beyond(__u32 len)
{
	if (!(config.flags & CONFIG_PATTERNS) || len <= RINGCAP_SNAPLEN_MAX)
		return 0;
	return len < SEARCHED_MAX ? len - RINGCAP_SNAPLEN_MAX : BEYOND_MAX;
}

static __always_inline long packet_copy_beyond(void *ctx, const enum hook hook, __u8 *data, __u32 len)
{
	__u32 n = packet_beyond(len), off = RINGCAP_SNAPLEN_MAX;
	struct __sk_buff *skb = ctx;

	if (!n)
		return 0;
	data += RINGCAP_SNAPLEN_MAX;
	if (hook == HOOK_XDP)
		return bpf_xdp_load_bytes(ctx, off, data, bounded_by((__u64)n, BEYOND_MAX));
	if (skb->vlan_present)
		off -= TAG_LEN;
	return bpf_skb_load_bytes(skb, off, data, bounded_by((__u64)n, BEYOND_MAX));
}

/* Copies the part that rules and hashes need. */
static __always_inline long packet_copy_parsed(void *ctx, const enum hook hook, struct work *work)
{
	__u32 n = work->len < config.parsed ? work->len : config.parsed;

	return packet_copy(ctx, hook, work->data, n) || packet_copy_beyond(ctx, hook, work->data, work->len);
}

#endif /* RC_PACKET_H */
