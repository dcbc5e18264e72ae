/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces a second machine as sender: this program drives a card itself. It writes the frames and their descriptors
 * once. After that, it sends any number of packets by one write to a register of the card. So sending takes no time
 * from the receiving side. The card is an e1000 without a driver. The program needs a huge page.
 */
#ifndef RB_WIRE_H
#define RB_WIRE_H

#include <stdint.h>

/* Opens the card at this PCI address. */
void wire_open(const char *card);

/* From now on, sends the frames of traffic_build, of size bytes, flow after flow. */
void wire_load(unsigned int size);

void wire_send(unsigned int count);

/* Returns the packets that the card has sent since the last call, by its own counter. */
uint64_t wire_sent(void);

/*
 * Makes the card at this PCI address miss a packet when its queue has no room. The card is an igb or e1000e that its
 * driver has just set up. Without this, the emulated cable keeps up to 10,000 packets while no queue at all has room.
 * Therefore this function gives room to a queue that is not in use. A reset of the card ends the effect. The kernel
 * needs iomem=relaxed.
 */
void wire_stop_waiting(const char *card);

#endif /* RB_WIRE_H */
