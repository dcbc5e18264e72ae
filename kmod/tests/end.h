/* SPDX-License-Identifier: GPL-2.0-only */
/* One end of a case's wire: what sends on an interface, and a ring with one queue for what it receives. */
#ifndef RT_END_H
#define RT_END_H

#include "fixture.h"

struct rt_end {
	char ring[32], cluster[32];
	u32 ifindex;
	int sender;
	struct rt_queue queue;
};

/* Slots have the long header. */
void rt_end_open(struct rt_end *end, const char *interface, u32 lane_size);

#endif /* RT_END_H */
