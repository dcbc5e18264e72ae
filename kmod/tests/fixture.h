/* SPDX-License-Identifier: GPL-2.0-only */
/* The setup of most cases: a pair of interfaces, a cluster, and a ring that taps one end for it. */
#ifndef RT_FIXTURE_H
#define RT_FIXTURE_H

#include <sched.h>
#include <unistd.h>

#include "consumer.h"
#include "control.h"
#include "test.h"
#include "traffic.h"

#define RT_LANE_SIZE (1U << 20)

/**
 * struct rt_fixture - names are unique to the process, because device nodes are common to all namespaces
 * @cluster, @ring: names
 * @ifindex: of vb, where the ring taps received packets
 * @sender: sends on va, so vb receives it
 * @back: sends on vb
 */
struct rt_fixture {
	char cluster[32];
	char ring[32];
	u32 ifindex;
	int sender;
	int back;
};

/* Fills in the name of @shape, which has the cluster's other settings, and makes everything. */
void rt_fixture_open(struct rt_fixture *fixture, struct rt_cluster *shape);

/* The same without objects in the module. */
void rt_fixture_open_devices(struct rt_fixture *fixture);

/*
 * Changes the fixture's ring, such as its filter or direction; fields of @change that are zero stay as rt_fixture_open
 * made them.
 */
int rt_fixture_change(const struct rt_fixture *fixture, const struct rt_ring *change);

/* Waits until @ring has seen @seen packets and none is being processed. Then checks that it has not seen one more. */
void rt_ring_wait(const char *ring, u64 seen);

/* Checks that the accounts of the ring and the cluster add up, and that this many of @sent packets were delivered. */
void rt_fixture_check(const struct rt_fixture *fixture, u64 sent, u64 filtered, u64 delivered, u64 full,
		      u64 unattended);

#endif /* RT_FIXTURE_H */
