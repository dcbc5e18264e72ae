// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "end.h"

#include <unistd.h>

#include "link.h"

void rt_end_open(struct rt_end *end, const char *interface, u32 lane_size)
{
	struct rt_cluster shape = { .name = end->cluster, .lane_size = lane_size, .metadata = 1 };
	struct rt_ring ring = { .name = end->ring, .outputs = { end->cluster } };

	snprintf(end->cluster, sizeof(end->cluster), "%s-%d", interface, getpid());
	snprintf(end->ring, sizeof(end->ring), "at-%s-%d", interface, getpid());
	end->ifindex = rt_ifindex(interface);
	end->sender = rt_sender_open(interface);
	RT_EQUAL(rt_cluster_set(&shape), 0);
	ring.taps[0] = (struct rt_tap){ .ifindex = end->ifindex, .direction = RINGCAP_DIRECTION_RX };
	RT_EQUAL(rt_ring_set(&ring), 0);
	rt_queue_open(&end->queue, end->cluster, 0);
}
