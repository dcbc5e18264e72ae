/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Transmitting: packets that a consumer has written into an area of its own, and tells us to send by an ioctl.
 *
 * A transmit area is there from the consumer's attaching to its detaching, in queues of clusters that grant something
 * at that time. Everything in it may change at any time: a packet is copied before it is looked at, a slot's fields
 * are read once. What may be sent out of is decided packet by packet, so a grant that is taken back is taken back.
 */
#ifndef RC_TRANSMIT_H
#define RC_TRANSMIT_H

#include <linux/mutex.h>
#include <linux/ringcap.h>

#include "region.h"

/**
 * struct rc_transmit - a consumer's transmit area
 * @lock: one thread of the consumer sends at a time
 * @position: bytes that were taken
 * @sent, @failed: packets
 * @socket: whose send buffer bounds the memory of packets that are under way
 * @index: struct ringcap_tx_index
 * @data: RINGCAP_TX_SIZE bytes
 */
struct rc_transmit {
	struct mutex lock;
	u64 position;
	u64 sent;
	u64 failed;
	struct socket *socket;
	struct rc_region index;
	struct rc_region data;
};

/* NULL when there is no memory. */
struct rc_transmit *rc_transmit_create(void);
void rc_transmit_destroy(struct rc_transmit *transmit);

#endif /* RC_TRANSMIT_H */
