// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "fixture.h"

void rt_fixture_open_devices(struct rt_fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	snprintf(fixture->cluster, sizeof(fixture->cluster), "c%d", getpid());
	snprintf(fixture->ring, sizeof(fixture->ring), "r%d", getpid());
	rt_control_open();
	rt_veth_create("va", "vb");
	fixture->ifindex = rt_ifindex("vb");
	fixture->sender = rt_sender_open("va");
	fixture->back = rt_sender_open("vb");
}

void rt_fixture_open(struct rt_fixture *fixture, struct rt_cluster *shape)
{
	int err;

	rt_fixture_open_devices(fixture);
	shape->name = fixture->cluster;
	if (!shape->lane_size)
		shape->lane_size = RT_LANE_SIZE;
	err = rt_cluster_set(shape);
	RT_CHECK(!err, "cluster: %s (%s)", strerror(-err), rt_reason);
	err = rt_fixture_change(fixture, &(struct rt_ring){});
	RT_CHECK(!err, "ring: %s (%s)", strerror(-err), rt_reason);
}

int rt_fixture_change(const struct rt_fixture *fixture, const struct rt_ring *change)
{
	struct rt_ring ring = *change;

	ring.name = fixture->ring;
	if (!ring.taps[0].ifindex)
		ring.taps[0].ifindex = fixture->ifindex;
	if (!ring.taps[0].direction)
		ring.taps[0].direction = RINGCAP_DIRECTION_RX;
	if (!ring.outputs[0])
		ring.outputs[0] = fixture->cluster;
	return rt_ring_set(&ring);
}

void rt_ring_wait(const char *ring, u64 seen)
{
	u64 deadline = rt_now() + RT_PATIENCE_NS, now;

	while ((now = rt_ring_seen(ring)) < seen) {
		RT_CHECK(rt_now() < deadline, "%llu of %llu packets came to %s", (unsigned long long)now,
			 (unsigned long long)seen, ring);
		sched_yield();
	}
	rt_settle();
	now = rt_ring_seen(ring);
	RT_CHECK(now == seen, "%llu packets came to %s, and not %llu", (unsigned long long)now, ring, (unsigned long long)seen);
}

void rt_fixture_check(const struct rt_fixture *fixture, u64 sent, u64 filtered, u64 delivered, u64 full,
		      u64 unattended)
{
	struct rt_ring_counts ring;
	struct rt_queue_counts queues;

	rt_ring_wait(fixture->ring, sent);
	rt_ring_counts(fixture->ring, &ring);
	rt_cluster_counts(fixture->cluster, &queues);
	RT_EQUAL(ring.seen, sent);
	RT_EQUAL(ring.filtered, filtered);
	RT_EQUAL(ring.sampled_out, 0);
	RT_EQUAL(ring.passed, sent - filtered);
	RT_EQUAL(queues.delivered, delivered);
	RT_EQUAL(queues.dropped[RINGCAP_DROP_FULL], full);
	RT_EQUAL(queues.dropped[RINGCAP_DROP_UNATTENDED], unattended);
	RT_EQUAL(queues.dropped[RINGCAP_DROP_NOMEM], 0);
	RT_EQUAL(ring.passed, queues.delivered + full + unattended);
}
