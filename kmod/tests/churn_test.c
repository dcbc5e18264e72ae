// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects, interfaces and namespaces come and go under traffic. Each case has an honest ring beside the churn, which
 * must not lose a packet. The case floods the interfaces of the churn. With RT_FULL it does as many rounds as a full
 * run.
 */
#define _GNU_SOURCE
#include "fixture.h"

#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "link.h"
#include "rules.h"

/**
 * struct rt_churn - what cases have in common
 * @fixture: the honest ring, on va and vb
 * @queue: its consumer
 * @sent: packets that it was sent
 * @thread: sends on wa as fast as it can, until @stop
 */
struct rt_churn {
	struct rt_fixture fixture;
	struct rt_queue queue;
	struct rt_traffic traffic;
	u32 sent;
	pthread_t thread;
	int flood;
	int stop;
};

static void *rt_flood(void *arg)
{
	struct rt_churn *churn = arg;
	u8 bytes[RT_PACKET_MAX];
	u32 number;

	for (number = 0; !__atomic_load_n(&churn->stop, __ATOMIC_RELAXED); number++) {
		u32 len = rt_packet_build(&churn->traffic, number, bytes);

		/* Not when the interface is down or has gone. */
		if (send(churn->flood, bytes, len, MSG_DONTWAIT) < 0)
			usleep(1000);
	}
	return NULL;
}

/* Each case has its own name: clusters share one name space, and those of the last case are freed with a delay. */
static char rt_small_name[32];
static const struct rt_cluster rt_small = { .name = rt_small_name, .queues = 2, .lane_size = RINGCAP_LANE_SIZE_MIN };

static void rt_churn_open(struct rt_churn *churn)
{
	snprintf(rt_small_name, sizeof(rt_small_name), "churn-%d", getpid());
	memset(churn, 0, sizeof(*churn));
	churn->traffic = (struct rt_traffic){ .flows = 9, .max_len = 900 };
	rt_fixture_open(&churn->fixture, &(struct rt_cluster){ .timeout_us = 1000 });
	rt_queue_open(&churn->queue, churn->fixture.cluster, 0);
	RT_EQUAL(rt_link_add_veth("wa", "wb"), 0);
	churn->flood = rt_sender_open("wa");
	RT_CHECK(!pthread_create(&churn->thread, NULL, rt_flood, churn), "no thread");
}

/* Sends a few packets to the honest ring, each of which must arrive. */
static void rt_churn_exchange(struct rt_churn *churn)
{
	struct rt_receiver receiver;

	rt_receiver_init(&receiver, &churn->traffic, churn->fixture.ifindex, 4);
	rt_exchange(churn->fixture.sender, &churn->traffic, 0, 4, &churn->queue, 1, &receiver);
	free(receiver.seen);
	churn->sent += 4;
}

static void rt_churn_stop(struct rt_churn *churn)
{
	if (__atomic_exchange_n(&churn->stop, 1, __ATOMIC_RELAXED))
		return;
	pthread_join(churn->thread, NULL);
}

static void rt_churn_close(struct rt_churn *churn)
{
	rt_churn_stop(churn);
	rt_fixture_check(&churn->fixture, churn->sent, 0, churn->sent, 0, 0);
	rt_queue_close(&churn->queue);
}


static int rt_churn_ring(const char *name, u32 ifindex, u32 direction)
{
	struct rt_ring ring = { .name = name, .taps = { { ifindex, direction } }, .outputs = { rt_small.name } };

	return rt_ring_set(&ring);
}

/* Reads the account of a ring that still has traffic, until two readings in a row are the same. */
static void rt_churn_account(const char *name)
{
	struct rt_ring_counts counts, again;
	struct rt_queue_counts queues;

	rt_ring_counts(name, &again);
	do {
		counts = again;
		usleep(20000);
		rt_cluster_counts(rt_small.name, &queues);
		/* A packet may have been between the two accounts; the ring's account has it after this. */
		rt_settle();
		rt_ring_counts(name, &again);
	} while (again.seen != counts.seen);
	RT_EQUAL(counts.seen, counts.passed + counts.filtered);
	RT_EQUAL(counts.passed, queues.delivered + queues.dropped[RINGCAP_DROP_FULL] + queues.dropped[RINGCAP_DROP_UNATTENDED]);
}

/* ---- interfaces ---- */

/* Interfaces are made, tapped, renamed or not, and deleted: together with the tap, before it or after it. */
RT_CASE(churn_interfaces)
{
	const u32 rounds = rt_rounds(5000, 80);
	struct rt_cluster small = rt_small;
	struct rt_ring_counts counts;
	struct rt_churn churn;
	u32 round;

	rt_churn_open(&churn);
	RT_EQUAL(rt_cluster_set(&small), 0);
	for (round = 0; round < rounds; round++) {
		RT_EQUAL(rt_link_add_veth("xa", "xb"), 0);
		RT_EQUAL(rt_churn_ring("churn-ring", rt_ifindex("xb"), 1 + round % 3), 0);
		if (round % 4 == 1)
			RT_EQUAL(rt_link_rename("xa", "xc"), 0);
		if (round % 4 == 2)
			RT_EQUAL(rt_link_rename("xb", "xc"), 0);
		rt_churn_exchange(&churn);
		if (round % 8 == 3)
			RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, "churn-ring"), 0);
		RT_EQUAL(rt_link_remove(round % 4 == 1 ? "xc" : "xa"), 0);
		if (round % 8 == 3)
			continue;
		rt_ring_counts("churn-ring", &counts);
		RT_EQUAL(counts.taps, 0);
	}
	rt_churn_close(&churn);
}

/* A tapped interface under traffic changes its name, and then goes to another namespace, which ends the tap. */
RT_CASE(churn_moves)
{
	const u32 rounds = rt_rounds(200, 12);
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), there;
	struct rt_cluster small = rt_small;
	struct rt_ring_counts counts;
	struct rt_churn churn;
	u32 round;

	rt_churn_open(&churn);
	RT_EQUAL(rt_cluster_set(&small), 0);
	for (round = 0; round < rounds; round++) {
		/* The namespace belongs to this thread; the socket to the module stays in the first one. */
		RT_CHECK(!unshare(CLONE_NEWNET), "%m");
		there = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
		RT_CHECK(there >= 0 && !setns(here, CLONE_NEWNET), "%m");
		RT_EQUAL(rt_churn_ring("churn-ring", rt_ifindex("wb"), RINGCAP_DIRECTION_BOTH), 0);
		RT_EVENTUALLY(rt_ring_seen("churn-ring") > 0, 10000);
		RT_EQUAL(rt_link_rename("wb", "wc"), 0);
		rt_ring_counts("churn-ring", &counts);
		RT_EQUAL(counts.taps, 1);
		RT_EQUAL(rt_link_move("wc", there), 0);
		rt_ring_counts("churn-ring", &counts);
		RT_EQUAL(counts.taps, 0);
		rt_churn_account("churn-ring");
		RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, "churn-ring"), 0);
		RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, rt_small.name), 0);
		RT_EQUAL(rt_cluster_set(&small), 0);
		/* With the namespace its end of the pair is deleted, and with that end ours. */
		close(there);
		RT_EVENTUALLY(!if_nametoindex("wa"), 20000);
		RT_EQUAL(rt_link_add_veth("wa", "wb"), 0);
		close(churn.flood);
		churn.flood = rt_sender_open("wa");
		rt_churn_exchange(&churn);
	}
	close(here);
	rt_churn_close(&churn);
}

/* ---- namespaces ---- */

/* A namespace with a ring under traffic, which ends with this process. */
static void rt_be_tenant(void *arg)
{
	const struct rt_traffic traffic = { .flows = 3 };
	const char *name = arg;
	struct rt_cluster cluster = { .name = name, .lanes = 1, .lane_size = RINGCAP_LANE_SIZE_MIN };
	struct rt_ring ring = { .name = "ring", .outputs = { name } };
	int err;

	RT_CHECK(!unshare(CLONE_NEWNET), "%m");
	rt_control_open();
	RT_EQUAL(rt_link_add_veth("ta", "tb"), 0);
	err = rt_cluster_set(&cluster);
	RT_CHECK(!err, "cluster: %s (%s)", strerror(-err), rt_reason);
	ring.taps[0] = (struct rt_tap){ rt_ifindex("tb"), RINGCAP_DIRECTION_BOTH };
	RT_EQUAL(rt_ring_set(&ring), 0);
	rt_send(rt_sender_open("ta"), &traffic, 0, 20);
}

RT_CASE(churn_namespaces)
{
	const u32 rounds = rt_rounds(500, 16);
	struct rt_churn churn;
	char name[32];
	u32 round;

	rt_churn_open(&churn);
	for (round = 0; round < rounds; round++) {
		snprintf(name, sizeof(name), "tenant-%u", round);
		RT_EQUAL(rt_child(rt_be_tenant, name), 0);
		rt_churn_exchange(&churn);
	}
	for (round = 0; round < rounds; round++) {
		snprintf(name, sizeof(name), "tenant-%u", round);
		RT_EVENTUALLY(rt_queue_try_open(name, 0) == -ENOENT, 60000);
	}
	rt_churn_close(&churn);
}

/* ---- objects ---- */

RT_CASE(churn_rings)
{
	const u32 rounds = rt_rounds(1000, 60);
	struct rt_cluster small = rt_small;
	struct rt_churn churn;
	u32 round, ifindex;

	rt_churn_open(&churn);
	ifindex = rt_ifindex("wb");
	for (round = 0; round < rounds; round++) {
		RT_EQUAL(rt_cluster_set(&small), 0);
		RT_EQUAL(rt_churn_ring("churn-ring", ifindex, RINGCAP_DIRECTION_BOTH), 0);
		if (round % 10 == 0)
			rt_churn_exchange(&churn);
		RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, "churn-ring"), 0);
		if (round % 3 == 0)
			RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, rt_small.name), 0);
	}
	rt_churn_close(&churn);
}

/* A cluster gets other queues while packets arrive and a consumer comes and goes. */
RT_CASE(churn_reshapes)
{
	const u32 rounds = rt_rounds(500, 40);
	struct rt_cluster small = rt_small;
	struct rt_churn churn;
	u32 round;
	int fd;

	rt_churn_open(&churn);
	RT_EQUAL(rt_cluster_set(&small), 0);
	RT_EQUAL(rt_churn_ring("churn-ring", rt_ifindex("wb"), RINGCAP_DIRECTION_RX), 0);
	for (round = 0; round < rounds; round++) {
		fd = rt_queue_try_open(rt_small.name, 0);
		RT_CHECK(fd >= 0, "%s", strerror(-fd));
		small.queues = 1 + (small.queues + 1 + round % 2) % 4;
		small.lanes = 1 + round % 3;
		RT_EQUAL(rt_cluster_set(&small), -EBUSY);
		close(fd);
		RT_EQUAL(rt_cluster_set(&small), 0);
		RT_EQUAL(rt_queue_reset(rt_small.name, small.queues - 1), 0);
		if (round % 10 == 0)
			rt_churn_exchange(&churn);
	}
	rt_churn_close(&churn);
}

/* ---- rule sets ---- */

/* One set after the other, of other sizes and kinds, and single rules in between, for a ring under traffic. */
RT_CASE(churn_rule_sets)
{
	const u32 rounds = rt_rounds(10000, 150);
	struct ringcap_rule rules[40] = {};
	struct rt_cluster small = rt_small;
	struct ringcap_exact exacts[40];
	struct rt_churn churn;
	u32 round, i;

	rt_churn_open(&churn);
	RT_EQUAL(rt_cluster_set(&small), 0);
	RT_EQUAL(rt_churn_ring("churn-ring", rt_ifindex("wb"), RINGCAP_DIRECTION_RX), 0);
	for (i = 0; i < 40; i++) {
		exacts[i] = rt_exact(i % 9 + 9 * (i / 9), i % 2 ? RINGCAP_ACTION_DROP : RINGCAP_ACTION_PASS, i % 3);
		rules[i] = (struct ringcap_rule){ .id = i + 1, .fields = RINGCAP_MATCH_DPORT, .priority = i,
						  .action = i % 4 ? RINGCAP_ACTION_PASS : RINGCAP_ACTION_LEARN, .idle_s = 20,
						  .dport = { (u16)i, (u16)(1000 + i) } };
	}
	for (round = 0; round < rounds; round++) {
		struct rt_rules set = { .generation = round };

		rt_rules_set("churn-ring", &set, exacts, round % 41, rules, 1 + (round * 7) % 40);
		RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_NEW, "churn-ring", exacts, 40, rules, 40), 0);
		RT_EQUAL(rt_rules_send(RINGCAP_CMD_RULE_DEL, "churn-ring", exacts, 1 + round % 40, rules, 1 + round % 39), 0);
		if (round % 10 == 0)
			rt_churn_exchange(&churn);
	}
	rt_churn_stop(&churn);
	rt_churn_account("churn-ring");
	rt_churn_close(&churn);
}
