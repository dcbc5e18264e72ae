// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects with RINGCAP_A_OWNED are deleted when the socket that made them is closed, and no other socket changes them.
 */
#define _GNU_SOURCE
#include "fixture.h"

#include <linux/netlink.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

static void rt_make_owned(struct rt_fixture *fixture)
{
	struct rt_cluster shape = { .name = fixture->cluster, .lane_size = RT_LANE_SIZE, .owned = 1 };

	RT_EQUAL(rt_cluster_set(&shape), 0);
	RT_EQUAL(rt_fixture_change(fixture, &(struct rt_ring){ .owned = 1 }), 0);
}

static int rt_get(u8 cmd, const char *name)
{
	static struct rt_message message;

	rt_message_init(&message, cmd, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	return rt_call(&message, NULL, NULL);
}

static void rt_expect_gone(const struct rt_fixture *fixture)
{
	rt_control_open();
	RT_EVENTUALLY(rt_get(RINGCAP_CMD_RING_GET, fixture->ring) == -ENOENT, 5000);
	RT_EVENTUALLY(rt_get(RINGCAP_CMD_CLUSTER_GET, fixture->cluster) == -ENOENT, 5000);
	RT_EQUAL(rt_queue_try_open(fixture->cluster, 0), -ENOENT);
}

/* With a consumer attached, which is told. */
RT_CASE(owned_goes_with_socket)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	int revents;

	rt_fixture_open_devices(&fixture);
	rt_make_owned(&fixture);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 100);
	rt_exchange(fixture.sender, &traffic, 0, 100, &queue, 1, &receiver);
	rt_fixture_check(&fixture, 100, 0, 100, 0, 0);
	/* The owner may change what it owns. */
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .owned = 1, .snaplen = 100 }), 0);
	/* Closes the socket that made them. */
	rt_control_open();
	revents = rt_queue_poll(&queue, RT_PATIENCE_MS);
	RT_CHECK(revents & POLLHUP, "poll returns %#x for a queue that is gone", (u32)revents);
	rt_expect_gone(&fixture);
	rt_send(fixture.sender, &traffic, 0, 10);
	rt_queue_close(&queue);
}

/* A process that is killed leaves nothing. */
RT_CASE(owned_goes_with_process)
{
	struct rt_fixture fixture;
	int status, ready[2];
	char byte;
	pid_t pid;

	rt_fixture_open_devices(&fixture);
	RT_CHECK(!pipe(ready), "%m");
	pid = fork();
	RT_CHECK(pid >= 0, "%m");
	if (!pid) {
		rt_control_open();
		rt_make_owned(&fixture);
		RT_CHECK(write(ready[1], "", 1) == 1, "%m");
		pause();
		_exit(0);
	}
	RT_EQUAL(read(ready[0], &byte, 1), 1);
	RT_EQUAL(rt_get(RINGCAP_CMD_RING_GET, fixture.ring), 0);
	/* A socket of another port that is closed takes nothing along. */
	rt_control_open();
	RT_EQUAL(rt_get(RINGCAP_CMD_RING_GET, fixture.ring), 0);
	kill(pid, SIGKILL);
	RT_CHECK(waitpid(pid, &status, 0) == pid, "%m");
	rt_expect_gone(&fixture);
}

static void rt_be_stranger(void *arg)
{
	const struct rt_fixture *fixture = arg;
	struct rt_cluster shape = { .name = fixture->cluster, .lane_size = RT_LANE_SIZE };
	struct rt_ring other = { .name = "stranger", .taps = { { fixture->ifindex, RINGCAP_DIRECTION_RX } },
				 .outputs = { fixture->cluster } };
	u64 before;
	u32 owned;

	/* The parent keeps its socket open; ours has another port. */
	rt_control_open();
	before = rt_control_digest();
	for (owned = 0; owned <= 1; owned++) {
		shape.owned = owned;
		RT_EQUAL(rt_cluster_set(&shape), -EBUSY);
		RT_CHECK(strstr(rt_reason, "OWNED"), "%s", rt_reason);
		RT_EQUAL(rt_fixture_change(fixture, &(struct rt_ring){ .owned = owned }), -EBUSY);
		RT_CHECK(strstr(rt_reason, "OWNED"), "%s", rt_reason);
		other.owned = owned;
		RT_EQUAL(rt_ring_set(&other), -EBUSY);
		RT_CHECK(rt_reason[0], "no reason given");
	}
	RT_CHECK(rt_control_digest() == before, "refused, but something changed");
}

RT_CASE(owned_by_another)
{
	struct rt_fixture fixture;

	rt_fixture_open_devices(&fixture);
	rt_make_owned(&fixture);
	RT_EQUAL(rt_child(rt_be_stranger, &fixture), 0);
	/* Nor does its owner make it permanent. */
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), -EBUSY);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .owned = 2 }), -EINVAL);
	RT_CHECK(strstr(rt_reason, "OWNED"), "%s", rt_reason);
}

/* A ring that is owned may feed a cluster that stays; only the ring is deleted. */
RT_CASE(owned_ring_joins_cluster)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_receiver receiver;
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	struct rt_queue queue;
	struct rt_cluster shape;

	rt_fixture_open_devices(&fixture);
	shape = (struct rt_cluster){ .name = fixture.cluster, .lane_size = RT_LANE_SIZE };
	RT_EQUAL(rt_cluster_set(&shape), 0);
	shape.owned = 1;
	RT_EQUAL(rt_cluster_set(&shape), -EBUSY);
	RT_CHECK(strstr(rt_reason, "OWNED"), "%s", rt_reason);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .owned = 1 }), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 100);
	rt_exchange(fixture.sender, &traffic, 0, 100, &queue, 1, &receiver);
	rt_fixture_check(&fixture, 100, 0, 100, 0, 0);
	rt_control_open();
	RT_EVENTUALLY(rt_get(RINGCAP_CMD_RING_GET, fixture.ring) == -ENOENT, 5000);
	rt_send(fixture.sender, &traffic, 0, 10);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.delivered, 100);
	RT_EQUAL(counts.attached, 1);
	rt_queue_close(&queue);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, fixture.cluster), 0);
}
