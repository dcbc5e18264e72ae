/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Transmitting: a consumer writes packets into an area of its own, and tells us by an ioctl to send them.
 *
 * A consumer has a transmit area from attach to detach, if its cluster grants something at attach time. Everything in
 * the area may change at any time. So a packet is copied before we look at it, and a slot's fields are read once. Each
 * packet is checked against the grants, so a grant that is revoked takes effect at once.
 */
#ifndef RC_TRANSMIT_H
#define RC_TRANSMIT_H

#include <linux/mutex.h>
#include <linux/ringcap.h>

#include "region.h"

/**
 * struct rc_transmit - a consumer's transmit area
 * @lock: one thread of the consumer sends at a time
 * @position: number of bytes that were taken
 * @sent, @failed: packets
 * @socket: its send buffer bounds the memory of packets in flight
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
