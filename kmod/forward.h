/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Forwarding: a received packet itself, not a copy, leaves by another interface, as by a bridge. Tags that were
 * stripped, checksums that are not computed yet, and segments that are still to be split stay so; the stack does for
 * the other device what is left to do.
 */
#ifndef RC_FORWARD_H
#define RC_FORWARD_H

#include <linux/percpu.h>
#include <linux/ringcap.h>

struct net_device;
struct sk_buff;

/* A packet that comes in on this CPU now comes out of the device that this CPU forwards to. */
DECLARE_PER_CPU(bool, rc_forward_sending);

/* Bottom halves off. */
static inline bool rc_forward_is_sending(void)
{
	return __this_cpu_read(rc_forward_sending);
}

/* Finds the headers of a packet that user space has made. Its data begin at the MAC header. */
void rc_forward_set_headers(struct sk_buff *skb);

/*
 * Drops from a received packet what belongs to its way so far, so that it may wait, and may leave. Its data begin at
 * the MAC header.
 */
void rc_forward_prepare(struct sk_buff *skb);

/*
 * Lets @other, a packet of user space that leaves by @dev in the place of @skb, take the transmit queue that @skb
 * would: otherwise it could overtake packets of its flow, or be overtaken.
 */
void rc_forward_follow(struct net_device *dev, struct sk_buff *other, struct sk_buff *skb);

/*
 * Sends @skb, which is consumed, out of @dev. Returns 0, or the loss, which is RINGCAP_INLINE_TOO_LONG, _REFUSED or
 * _DOWN. A flow always takes the same transmit queue of @dev, whichever CPU sends. Bottom halves off; @dev stays.
 */
int rc_forward_send(struct net_device *dev, struct sk_buff *skb);

#endif /* RC_FORWARD_H */
