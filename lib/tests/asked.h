/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A test of consumers as two processes: the child, uid 65534, reads the queue mirror@0 of the stand-in for the agent
 * (fake.h), and asks the parent for packets.
 */
#ifndef ASKED_H
#define ASKED_H

#include <stdint.h>

#define ASKED_FLOOD 255
#define ASKED_FLOOD_PACKETS 5000

/*
 * Runs consume in the child, with a queue of size bytes, and serves it to one consumer after the other. What main returns: 77,
 * with the test's name and why on standard error, where it cannot.
 */
int asked_run(const char *test, uint32_t size, void (*consume)(void));

/*
 * In the child: has n packets put in, or ASKED_FLOOD_PACKETS for ASKED_FLOOD, of which those for which there is no room are
 * lost. Packet i of each time: caplen 60 + i % 40, all bytes (uint8_t)i, time stamp 1 s + i microseconds + 7 ns, every third
 * outgoing, of interface 3 or 4 in turn.
 */
void asked_put(unsigned char n);

#endif
