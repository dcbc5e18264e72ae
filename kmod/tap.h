/* SPDX-License-Identifier: GPL-2.0-only */
/* Taps: each gets a ring's packets from one device. */
#ifndef RC_TAP_H
#define RC_TAP_H

#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/ringcap.h>

#include "egress.h"
#include "rx_queues.h"

struct rc_ring;

/**
 * struct rc_tap - a capture point
 * @packet_type: our hook on the device. No reference to the device is held: the tap is removed when the device is
 * @hooked: that hook is registered. In transparent modes 1 and 2 it is only for sent packets, if they are wanted
 * @ring: the tap's ring
 * @mode: the active transparent mode; it never changes between 0 and another mode
 * @new_mode: the mode that the tap gets with the configuration that is being made
 * @next_hooked: next of the device's taps that have a mode, see driver_hook.h
 * @takes_received: takes all received packets, from all receive queues
 * @ifindex: of the device, in the ring's namespace
 * @direction: enum ringcap_direction
 * @rx_queues: receive queues from which it takes packets, NULL = all
 * @new_rx_queues: the receive queues of the configuration that is being made
 * @promiscuous: for this tap, the device receives packets that are not addressed to it
 * @follows: it stays when the device moves to another namespace
 * @peer: index of the interface that packets leave by, see pair.h; 0 = none, and then the stack keeps its packets
 * @egress: the same, if @peer
 * @stale: the configuration that is being made does not have the tap any more
 * @list: in rc_ring.taps, or in a list of taps to be added or removed; under RTNL
 * @followers: list of all taps that follow, in whichever namespace their devices are; under RTNL
 */
struct rc_tap {
	struct packet_type packet_type;
	struct rc_ring *ring;
	bool takes_received;
	bool hooked;
	u8 mode;
	u8 new_mode;
	u32 ifindex;
	u32 direction;
	struct rc_tap __rcu *next_hooked;
	struct rc_rx_queues __rcu *rx_queues;
	struct rc_rx_queues *new_rx_queues;
	bool promiscuous;
	bool follows;
	u32 peer;
	struct rc_egress egress;
	bool stale;
	struct list_head list;
	struct list_head followers;
};

/* The device is in another namespace than the ring. */
bool rc_tap_is_away(const struct rc_tap *tap);

/* A human-readable direction. */
const char *rc_tap_direction(u32 direction);

/* Bottom halves off, under RCU. */
static inline bool rc_tap_wants(const struct rc_tap *tap, const struct sk_buff *skb)
{
	u32 direction = READ_ONCE(tap->direction);
	const struct rc_rx_queues *rx_queues;

	if (skb->pkt_type == PACKET_OUTGOING)
		return direction & RINGCAP_DIRECTION_TX;
	/* PACKET_LOOPBACK is the stack's own copy of a multicast that it sends, not on the wire. */
	if (!(direction & RINGCAP_DIRECTION_RX) || skb->pkt_type == PACKET_LOOPBACK)
		return false;
	rx_queues = rcu_dereference(tap->rx_queues);
	return !rx_queues || rc_rx_queues_has(rx_queues, skb);
}

#endif /* RC_TAP_H */
