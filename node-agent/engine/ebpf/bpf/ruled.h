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

static __always_inline int ruled_find_exact(struct work *work, const struct rc_flow *flow)
{
	if (!(config.flags & (CONFIG_EXACT | CONFIG_LEARN)))
		return 0;
	rc_exact_key_ipv4(&work->exact, flow->saddr[0], flow->daddr[0], flow->sport, flow->dport, 0, flow->l4_proto);
	for (__u32 i = RC_EXACT_WORDS_IPV4; i < RC_EXACT_WORDS_IPV6; i++)
		work->exact.w[i] = 0;
	work->has_exact = work->can_learn = 1;
	return rules_find_exact();
}

static __always_inline int ruled_find_wild(struct work *work, const __u8 *data, const __u8 *end)
{
	if (!(config.flags & CONFIG_WILD))
		return 0;
	if (data + RULED_TCP_LEN <= end)
		rc_key_of_plain(data, RULED_TCP_LEN, config.flags & CONFIG_MACS, &work->key);
	else
		rc_key_of_plain(data, RC_PLAIN_LEN, config.flags & CONFIG_MACS, &work->key);
	return rules_find_wild();
}

/*
 * Sets work->action to the rules' decision for a packet of work->len bytes. Returns false, and has done nothing, if the
 * packet is not a common one, or is not contiguous.
 */
static __always_inline int ruled_decide(void *ctx, const enum hook hook, struct work *work)
{
	struct __sk_buff *skb = ctx;
	struct xdp_md *xdp = ctx;
	const __u8 *data = (void *)(long)(hook == HOOK_XDP ? xdp->data : skb->data);
	const __u8 *end = (void *)(long)(hook == HOOK_XDP ? xdp->data_end : skb->data_end);
	struct rc_frame frame = { .data = data, .avail = RC_PLAIN_LEN };
	struct rc_flow flow;

	if (data + RC_PLAIN_LEN > end || (hook == HOOK_TC && skb->vlan_present) || !rc_parse_plain(&frame, &flow))
		return 0;
	if (flow.l4_proto == RC_IPPROTO_TCP && data + RULED_TCP_LEN > end)
		return 0;
	if (config.flags & CONFIG_IDLE)
		life_look_at_clock(work);
	if (!ruled_find_exact(work, &flow) && !ruled_find_wild(work, data, end))
		work->action = config.default_action;
	return 1;
}

#endif /* RC_RULED_H */
