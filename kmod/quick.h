/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quick mode: a ring that takes all packets of a device, and gives them to one cluster that does not look at them: all
 * that can take the fast path do (receive.h).
 */
#ifndef RC_QUICK_H
#define RC_QUICK_H

#include <linux/ringcap.h>
#include <linux/types.h>

struct genl_info;
struct netlink_ext_ack;
struct rc_net;
struct rc_ring;
struct rc_ring_spec;

/* RINGCAP_A_QUICK of a request with its lists and flags in @spec; refuses by name what does not go with it. */
int rc_quick_request(const struct genl_info *info, struct rc_ring_spec *spec);

/* Whether @spec, for @ring or for a new one where that is NULL, agrees with what there is. Under rc_net.control. */
int rc_quick_check(struct rc_net *rc_net, const struct rc_ring *ring, const struct rc_ring_spec *spec,
		   struct netlink_ext_ack *extack);

/* A cluster of this kind finds its queues without looking at packets. */
static inline bool rc_quick_fits(u32 nr_queues, u32 balance)
{
	return nr_queues == 1 || balance == RINGCAP_BALANCE_RX_QUEUE;
}

#endif /* RC_QUICK_H */
