// SPDX-License-Identifier: GPL-2.0-only
/* An honest consumer beside all the nonsense: each of its packets comes, whole, and every counter is exact. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <sched.h>
#include <unistd.h>

#include "../fixture.h"

void rf_act_watch(u64 seed)
{
	struct rt_traffic traffic = { .flows = 31, .min_len = 60, .max_len = 1400 };
	struct rt_cluster shape = { .queues = 2, .timeout_us = 1000 };
	struct rt_receiver receiver;
	struct rt_queue queues[2];
	const u32 round = rt_scaled(512);
	struct rt_fixture fixture;
	u32 rounds;

	(void)seed;
	RT_CHECK(!unshare(CLONE_NEWNET), "%m");
	rt_write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&queues[0], fixture.cluster, 0);
	rt_queue_open(&queues[1], fixture.cluster, 1);
	__atomic_store_n(&rf_counts->watching, true, __ATOMIC_RELEASE);
	for (rounds = 0; rf_go_on(0); rounds++) {
		rt_receiver_init(&receiver, &traffic, fixture.ifindex, round);
		rt_exchange(fixture.sender, &traffic, 0, round, queues, 2, &receiver);
		free(receiver.seen);
		__atomic_fetch_add(&rf_counts->watched, round, __ATOMIC_RELAXED);
		usleep(100000);
	}
	rt_fixture_check(&fixture, (u64)rounds * round, 0, (u64)rounds * round, 0, 0);
	rt_queue_close(&queues[0]);
	rt_queue_close(&queues[1]);
}
