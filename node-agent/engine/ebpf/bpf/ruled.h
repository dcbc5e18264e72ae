/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules for the most common packets, without a copy of their headers (CONFIG_RULED): the ring could take the path of
 * plain.h, were it not for its rules, and these only pass, drop or learn. Other packets take the general path.
 */
#ifndef RC_RULED_H
#define RC_RULED_H

#include "packet.h"
#include "rules.h"

#define RULED_TCP_LEN	(14 + 20 + 14)	/* up to the flags */

static __always_inline void ruled_make_exact_key(struct rc_exact_key *key, __u64 fields, __u64 addrs)
{
	rc_exact_key_ipv4(key, rc_be32(addrs >> 32), rc_be32(addrs), fields >> 48, fields >> 32, 0, fields >> 24);
}

/* Whether the packet's flow is learnt, so that it passes. */
static __always_inline int ruled_find_learnt(__u64 fields, __u64 addrs)
{
	struct rc_exact_key key;

	ruled_make_exact_key(&key, fields, addrs);
	return learnt_find_ipv4(key.w[0], key.w[1]);
}

static __always_inline int ruled_find_exact(struct work *work, __u64 fields, __u64 addrs)
{
	if (!(config.flags & (CONFIG_EXACT | CONFIG_LEARN)))
		return 0;
	ruled_make_exact_key(&work->exact, fields, addrs);
	for (__u32 i = RC_EXACT_WORDS_IPV4; i < RC_EXACT_WORDS_IPV6; i++)
		work->exact.w[i] = 0;
	work->can_learn = 1;
	return config.flags & CONFIG_EXACT && rules_find_exact(work);
}

static __always_inline int ruled_find_wild(struct work *work, __u64 fields, __u64 addrs)
{
	__u64 key[RC_KEY_WORDS];

	if (!(config.flags & CONFIG_WILD))
		return 0;
	key[0] = (__u64)RC_ETH_P_IPV4 << 48 | RC_HAS_IP | RC_HAS_IPV4 | RC_HAS_PORTS;
	if ((__u8)(fields >> 24) == RC_IPPROTO_TCP)
		key[0] |= RC_HAS_TCP;
	key[1] = fields;
	key[2] = addrs & ~0ULL << 32;
	key[4] = addrs << 32;
	return rules_find_wild(work, key, 0);
}

/*
 * What the rules decide, enum ringcap_action, for a packet of @len bytes with these fields: words of its key. Its flow
 * is not learnt. The function is global, for the verifier to check the search once, and for any packet.
 */
__attribute__((noinline)) int ruled_decide(__u64 fields, __u64 addrs, __u32 len, __u32 cpu)
{
	struct work *work = bpf_map_lookup_elem(&rc_scratch, &cpu);

	if (!work)
		return RINGCAP_ACTION_DROP; /* never */
	work->len = len;
	if (config.flags & CONFIG_IDLE)
		life_look_at_clock(work);
	if (ruled_find_exact(work, fields, addrs) || ruled_find_wild(work, fields, addrs))
		return work->action;
	return config.default_action;
}

/*
 * The words of the packet's key as rc_key_of_plain makes them: @fields is the second one, and @addrs has both
 * addresses. Returns false if the packet, which has no tag beside its bytes, is not a common one, or is not contiguous.
 */
static __always_inline int ruled_read(void *ctx, const enum hook hook, __u64 *fields, __u64 *addrs)
{
	struct __sk_buff *skb = ctx;
	struct xdp_md *xdp = ctx;
	const __u8 *data = (void *)(long)(hook == HOOK_XDP ? xdp->data : skb->data);
	const __u8 *end = (void *)(long)(hook == HOOK_XDP ? xdp->data_end : skb->data_end);
	struct rc_frame frame = { .data = data, .avail = RC_PLAIN_LEN };
	struct rc_flow flow;

	if (data + RC_PLAIN_LEN > end || !rc_parse_plain(&frame, &flow))
		return 0;
	*fields = (__u64)flow.sport << 48 | (__u64)flow.dport << 32 | (__u64)flow.l4_proto << 24;
	*addrs = (__u64)rc_be32(flow.saddr[0]) << 32 | rc_be32(flow.daddr[0]);
	if (flow.l4_proto == RC_IPPROTO_UDP)
		return 1;
	if (data + RULED_TCP_LEN > end)
		return 0;
	*fields |= (__u64)data[RULED_TCP_LEN - 1] << 16;
	return 1;
}

#endif /* RC_RULED_H */
