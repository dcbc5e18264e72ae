/* SPDX-License-Identifier: Apache-2.0 */
/* 64 flows from 10.0.0.1 .. 8 to 10.0.1.1, sent from va. Every reader gets the same packets. */
#ifndef RB_TRAFFIC_H
#define RB_TRAFFIC_H

#include <stdint.h>

#define FLOWS		64
#define BURST		2048	/* packets; a burst fits in every ring */
#define FLOW_PORT(flow)	(10000 + (flow))

enum traffic {
	TRAFFIC_UDP,	/* to port 53 */
	TRAFFIC_TCP,	/* to port 80 */
};

/* Builds packets of size bytes, which are sent from now on. */
void traffic_build(enum traffic what, unsigned int size);

/* Returns a flow's frame, as it was last built. */
const uint8_t *traffic_frame(unsigned int flow);

/* Returns a socket for sending. */
int traffic_open(void);

/**
 * struct traffic_share - the flows of one of several senders
 * @which: its number, from 0
 * @of: how many senders there are; a power of two, at most FLOWS
 */
struct traffic_share {
	unsigned int which, of;
};

/*
 * Sends count packets of the share's flows. count is a multiple of BURST / of, which is the share's part of a burst.
 * Readers may run after each part. One of several senders lets the others run after each packet.
 */
void traffic_send(int fd, const struct traffic_share *share, unsigned int size, unsigned int count);

#endif /* RB_TRAFFIC_H */
