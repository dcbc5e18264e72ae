/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another machine sends, without one: a card that this program drives by itself. The frames and their descriptors are
 * written once, and sending any number of packets is one write to a register of the card, so that it takes no time that the
 * receiving side would miss. The card is an e1000 without a driver; it needs a huge page.
 */
#ifndef RB_WIRE_H
#define RB_WIRE_H

#include <stdint.h>

/* The card at this PCI address. */
void wire_open(const char *card);

/* The frames of traffic_build from now on, of size bytes, flow after flow. */
void wire_load(unsigned int size);

void wire_send(unsigned int count);

/* Packets that the card has sent since it was asked last, by its own count. */
uint64_t wire_sent(void);

/*
 * The card at this PCI address, an igb or e1000e whose driver has just set it up, misses a packet for which its queue has no
 * room. Without this, the emulated cable keeps up to 10,000 of them while no queue at all has room: a queue that is not in use
 * is given some. A reset of the card ends it. The kernel needs iomem=relaxed.
 */
void wire_stop_waiting(const char *card);

#endif /* RB_WIRE_H */
