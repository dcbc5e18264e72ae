/* SPDX-License-Identifier: Apache-2.0 */
/* 64 flows from 10.0.0.1 .. 8 to 10.0.1.1, sent out of va; the same packets for every reader. */
#ifndef RB_TRAFFIC_H
#define RB_TRAFFIC_H

#include <stdint.h>

#define FLOWS		64
#define BURST		2048	/* packets; fits in every ring */
#define FLOW_PORT(flow)	(10000 + (flow))

enum traffic {
	TRAFFIC_UDP,	/* to port 53 */
	TRAFFIC_TCP,	/* to port 80 */
};

/* Packets of size bytes from now on. */
void traffic_build(enum traffic what, unsigned int size);

/* The frame of a flow, as it was built last. */
const uint8_t *traffic_frame(unsigned int flow);

/* A socket to send through. */
int traffic_open(void);

/* Sends count packets, a multiple of BURST, and lets readers run after each burst. */
void traffic_send(int fd, unsigned int size, unsigned int count);

#endif /* RB_TRAFFIC_H */
