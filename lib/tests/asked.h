/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A test of consumers with two processes. The child, uid 65534, reads the queue mirror@0 of the stand-in for the agent
 * (fake.h), and asks the parent for packets.
 */
#ifndef ASKED_H
#define ASKED_H

#include <stdint.h>

#define ASKED_FLOOD 255
#define ASKED_FLOOD_PACKETS 5000
#define ASKED_DELETE 254

/*
 * Runs consume in the child with a queue of size bytes, and serves the queue to one consumer after the other. Returns
 * main's exit status. If the test cannot run, prints its name and the reason on standard error and returns 77.
 */
int asked_run(const char *test, uint32_t size, void (*consume)(void));

/*
 * In the child: makes the parent put n packets in, at most 250. For ASKED_FLOOD it puts ASKED_FLOOD_PACKETS, and packets without
 * room are lost. In each call, packet i has caplen 60 + i % 40, all bytes (uint8_t)i, and time stamp 1 s + i
 * microseconds + 7 ns. Every third packet is outgoing. The interfaces 3 and 4 take turns.
 *
 * For ASKED_DELETE it puts nothing, and deletes the queue as the agent does. Nobody can open it after that.
 */
void asked_put(unsigned char n);

/* For this it puts one UDP packet of 60 bytes from 192.0.2.1, port 10000, to 192.0.2.2, port 53. */
#define ASKED_UDP 251

#define ASKED_TIMEOUT 253

/* In the child: the consumer's own timeout that the engine sees, in milliseconds. */
unsigned int asked_timeout_ms(void);

#define ASKED_UNRELEASED 252

/* In the child: how many bytes of the queue's first lane the consumer has not released. */
uint64_t asked_unreleased(void);

#endif
