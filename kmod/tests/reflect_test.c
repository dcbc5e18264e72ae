// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reflecting, as a bridge does: every packet leaves by the other interface once and unchanged, or is counted.
 *
 *	a0 ===== a1 -> ring "ab" -> b1 ===== b0
 *	            <- ring "ba" <-
 *
 * Rings on a0 and b0 receive what came through.
 */
#define _GNU_SOURCE
#include "end.h"
#include "faults.h"
#include "fixture.h"
#include "link.h"
#include "rules.h"
#include "tcp.h"

#include <pthread.h>
#include <unistd.h>

struct rt_bridge {
	char ab[32], ba[32];
	u32 a1, b1;
	struct rt_end a, b;
};

/* A ring that reflects everything on interface @from out of interface @to. */
static void rt_reflect(const char *name, u32 from, u32 direction, u32 to)
{
	struct rt_rules rules = { .default_action = RINGCAP_ACTION_REFLECT, .targets = { { .ifindex = to } } };
	struct rt_ring ring = { .name = name, .taps = { { .ifindex = from, .direction = direction } } };

	RT_CHECK(!rt_ring_set(&ring), "%s", rt_reason);
	rt_rules_set(name, &rules, NULL, 0, NULL, 0);
}

static void rt_bridge_open(struct rt_bridge *bridge)
{
	memset(bridge, 0, sizeof(*bridge));
	rt_control_open();
	rt_veth_create("a0", "a1");
	rt_veth_create("b0", "b1");
	bridge->a1 = rt_ifindex("a1");
	bridge->b1 = rt_ifindex("b1");
	snprintf(bridge->ab, sizeof(bridge->ab), "ab-%d", getpid());
	snprintf(bridge->ba, sizeof(bridge->ba), "ba-%d", getpid());
	rt_reflect(bridge->ab, bridge->a1, RINGCAP_DIRECTION_RX, bridge->b1);
	rt_reflect(bridge->ba, bridge->b1, RINGCAP_DIRECTION_RX, bridge->a1);
	rt_end_open(&bridge->a, "a0", RT_LANE_SIZE);
	rt_end_open(&bridge->b, "b0", RT_LANE_SIZE);
}

static void rt_bridge_close(struct rt_bridge *bridge)
{
	rt_queue_close(&bridge->a.queue);
	rt_queue_close(&bridge->b.queue);
}

static void rt_reflect_check(const char *ring, u64 reflected, u64 failed)
{
	struct rt_ring_counts counts;

	rt_ring_wait(ring, reflected);
	rt_ring_counts(ring, &counts);
	RT_EQUAL(counts.seen, reflected);
	RT_EQUAL(counts.reflected, reflected);
	RT_EQUAL(counts.reflect_failed, failed);
	RT_EQUAL(counts.passed + counts.filtered + counts.directed + counts.sampled_out + counts.absorbed, 0);
}

/* Both ways in turns, of all lengths. */
static void rt_bridge_carry(struct rt_traffic *traffic, u32 count)
{
	struct rt_receiver at_a, at_b;
	struct rt_bridge bridge;

	rt_bridge_open(&bridge);
	rt_receiver_init(&at_a, traffic, bridge.a.ifindex, count);
	rt_receiver_init(&at_b, traffic, bridge.b.ifindex, count);
	rt_exchange(bridge.a.sender, traffic, 0, count, &bridge.b.queue, 1, &at_b);
	rt_exchange(bridge.b.sender, traffic, 0, count, &bridge.a.queue, 1, &at_a);
	rt_reflect_check(bridge.ab, count, 0);
	rt_reflect_check(bridge.ba, count, 0);
	/* Nothing came back to where it was sent. */
	RT_EQUAL(rt_ring_seen(bridge.a.ring), count);
	RT_EQUAL(rt_ring_seen(bridge.b.ring), count);
	rt_bridge_close(&bridge);
}

RT_CASE(reflect_bridge)
{
	rt_bridge_carry(&(struct rt_traffic){ .flows = 20, .min_len = 60, .max_len = 1514 }, rt_scaled(3000));
}

RT_CASE(reflect_vlan)
{
	rt_bridge_carry(&(struct rt_traffic){ .flows = 5, .max_len = 1518, .tpid = { 0x8100 }, .tci = { 0x6fff } }, 200);
}

RT_CASE(reflect_qinq)
{
	rt_bridge_carry(&(struct rt_traffic){ .flows = 5, .max_len = 1500, .tpid = { 0x88a8, 0x8100 }, .tci = { 1, 2 } }, 200);
}

struct rt_feeder {
	const struct rt_traffic *traffic;
	int sender;
	u32 cpu, count;
	const u64 *received;
};

/* In bursts, no more than some hundred ahead of the receiver. */
static void *rt_feed(void *arg)
{
	const struct rt_feeder *feeder = arg;
	u32 done;

	rt_pin(feeder->cpu);
	for (done = 0; done < feeder->count; done += 20) {
		while (done > __atomic_load_n(feeder->received, __ATOMIC_RELAXED) + 300)
			sched_yield();
		rt_send(feeder->sender, feeder->traffic, done, 20);
	}
	return NULL;
}

/* Both ways at once, from two processors. */
RT_CASE(reflect_smp)
{
	struct rt_traffic traffic = { .flows = 20, .max_len = 1000 };
	const u32 count = rt_scaled(3000) / 20 * 20;
	u64 received[2] = {}, deadline = rt_now() + RT_PATIENCE_NS;
	struct rt_receiver at_a, at_b;
	struct rt_feeder feeders[2];
	struct rt_bridge bridge;
	pthread_t threads[2];
	u32 i;

	rt_bridge_open(&bridge);
	rt_receiver_init(&at_a, &traffic, bridge.a.ifindex, count);
	rt_receiver_init(&at_b, &traffic, bridge.b.ifindex, count);
	feeders[0] = (struct rt_feeder){ &traffic, bridge.a.sender, 0, count, &received[0] };
	feeders[1] = (struct rt_feeder){ &traffic, bridge.b.sender, 1, count, &received[1] };
	for (i = 0; i < 2; i++)
		RT_CHECK(!pthread_create(&threads[i], NULL, rt_feed, &feeders[i]), "no thread");
	while (at_a.count < count || at_b.count < count) {
		if (!rt_queue_read(&bridge.b.queue, rt_receive, &at_b) + !rt_queue_read(&bridge.a.queue, rt_receive, &at_a) == 2)
			sched_yield();
		__atomic_store_n(&received[0], at_b.count, __ATOMIC_RELAXED);
		__atomic_store_n(&received[1], at_a.count, __ATOMIC_RELAXED);
		RT_CHECK(rt_now() < deadline, "%llu and %llu of %u came", (unsigned long long)at_a.count,
			 (unsigned long long)at_b.count, count);
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	rt_reflect_check(bridge.ab, count, 0);
	rt_reflect_check(bridge.ba, count, 0);
	rt_bridge_close(&bridge);
}

/* Out of the interface that they came in by. */
RT_CASE(reflect_back)
{
	struct rt_traffic traffic = { .flows = 5, .max_len = 1000 };
	struct rt_receiver receiver;
	struct rt_bridge bridge;

	rt_bridge_open(&bridge);
	rt_reflect(bridge.ab, bridge.a1, RINGCAP_DIRECTION_RX, bridge.a1);
	rt_receiver_init(&receiver, &traffic, bridge.a.ifindex, 300);
	rt_exchange(bridge.a.sender, &traffic, 0, 300, &bridge.a.queue, 1, &receiver);
	rt_reflect_check(bridge.ab, 300, 0);
	RT_EQUAL(rt_ring_seen(bridge.b.ring), 0);
	rt_bridge_close(&bridge);
}

/* Sent packets are not reflected, whatever sends them: else two rings would reflect each other's packets for ever. */
RT_CASE(reflect_outgoing)
{
	struct rt_traffic traffic = { .flows = 5, .max_len = 1000 };
	struct rt_receiver receiver;
	struct rt_bridge bridge;

	rt_bridge_open(&bridge);
	rt_reflect(bridge.ab, bridge.a1, RINGCAP_DIRECTION_BOTH, bridge.b1);
	rt_reflect(bridge.ba, bridge.b1, RINGCAP_DIRECTION_BOTH, bridge.b1);
	rt_receiver_init(&receiver, &traffic, bridge.b.ifindex, 300);
	rt_exchange(bridge.a.sender, &traffic, 0, 300, &bridge.b.queue, 1, &receiver);
	/* "ba" sees what "ab" sends out of b1. */
	rt_reflect_check(bridge.ab, 300, 0);
	rt_reflect_check(bridge.ba, 300, 300);
	RT_EQUAL(rt_ring_seen(bridge.b.ring), 300);
	rt_bridge_close(&bridge);
}

/* A cable that leads back: packets go round for as long as the rings are there, and the machine lives on. */
RT_CASE(reflect_wire_loop)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_bridge bridge;
	u64 seen, deadline = rt_now() + RT_PATIENCE_NS;
	char there[32], back[32];
	int sender;

	rt_bridge_open(&bridge);
	rt_veth_create("w0", "w1");
	snprintf(there, sizeof(there), "w0-%d", getpid());
	snprintf(back, sizeof(back), "w1-%d", getpid());
	rt_reflect(there, rt_ifindex("w0"), RINGCAP_DIRECTION_RX, rt_ifindex("w0"));
	rt_reflect(back, rt_ifindex("w1"), RINGCAP_DIRECTION_RX, rt_ifindex("w1"));
	sender = rt_sender_open("w0");
	/* What is sent before the new interfaces have a carrier gets lost. */
	for (seen = 0; seen < 1000 && rt_now() < deadline; seen = rt_ring_seen(there)) {
		rt_send(sender, &traffic, 0, 1);
		usleep(10000);
	}
	RT_CHECK(seen >= 1000, "only %llu went round", (unsigned long long)seen);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, there), 0);
	/* Those that are on their way come to their end. */
	deadline = rt_now() + RT_PATIENCE_NS;
	do {
		seen = rt_ring_seen(back);
		usleep(200000);
	} while (rt_ring_seen(back) != seen && rt_now() < deadline);
	RT_CHECK(rt_ring_seen(back) == seen, "packets still go round");
	rt_bridge_close(&bridge);
}

/* ---- what cannot be sent ---- */

RT_CASE(reflect_failed)
{
	struct rt_traffic small = { .flows = 5 }, large = { .flows = 5, .min_len = 3000 };
	struct rt_receiver receiver;
	struct rt_bridge bridge;
	u32 b1;

	rt_bridge_open(&bridge);
	b1 = bridge.b1;
	rt_ip("link set a0 mtu 9000");
	rt_ip("link set a1 mtu 9000");
	rt_send(bridge.a.sender, &large, 0, 10);
	rt_reflect_check(bridge.ab, 10, 10);
	RT_EQUAL(rt_link_set_up("b1", false), 0);
	rt_send(bridge.a.sender, &small, 0, 10);
	rt_reflect_check(bridge.ab, 20, 20);
	RT_EQUAL(rt_link_set_up("b1", true), 0);
	rt_receiver_init(&receiver, &small, bridge.b.ifindex, 10);
	rt_exchange(bridge.a.sender, &small, 0, 10, &bridge.b.queue, 1, &receiver);
	rt_reflect_check(bridge.ab, 30, 20);

	/* Gone, and its successor is not meant, even if it has the same number. */
	rt_link_delete("b1");
	rt_send(bridge.a.sender, &small, 0, 10);
	rt_reflect_check(bridge.ab, 40, 30);
	rt_ip("link add b1 index %u type veth peer name b0", b1);
	rt_ip("link set b1 up");
	rt_ip("link set b0 up");
	rt_send(bridge.a.sender, &small, 0, 10);
	rt_reflect_check(bridge.ab, 50, 40);
	rt_bridge_close(&bridge);
}

static int rt_stop_toggling;

static void *rt_toggle(void *unused)
{
	while (!__atomic_load_n(&rt_stop_toggling, __ATOMIC_RELAXED)) {
		rt_link_set_up("b1", false);
		rt_link_set_up("b1", true);
		rt_link_remove("c0");
		rt_link_add_veth("c0", "c1");
	}
	return unused;
}

/* The target goes down and up, others come and go, and every packet is accounted for. */
RT_CASE(reflect_churn)
{
	const u32 count = rt_scaled(4000);
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_ring_counts counts;
	struct rt_bridge bridge;
	pthread_t thread;

	rt_bridge_open(&bridge);
	RT_CHECK(!pthread_create(&thread, NULL, rt_toggle, NULL), "no thread");
	rt_send(bridge.a.sender, &traffic, 0, count);
	__atomic_store_n(&rt_stop_toggling, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	rt_ring_wait(bridge.ab, count);
	rt_ring_counts(bridge.ab, &counts);
	RT_EQUAL(counts.reflected, count);
	RT_CHECK(rt_ring_seen(bridge.b.ring) <= count - counts.reflect_failed, "%llu came, %llu failed",
		 (unsigned long long)rt_ring_seen(bridge.b.ring), (unsigned long long)counts.reflect_failed);
	rt_bridge_close(&bridge);
}

/* ---- a stack at each end ---- */

RT_CASE(reflect_tcp)
{
	struct rt_ring_counts before, counts;
	struct rt_bridge bridge;
	struct rt_tcp tcp;

	rt_bridge_open(&bridge);
	rt_tcp_open(&tcp, "a0", "b0");
	/* While the ends moved, hosts sent packets that had no receiver. */
	rt_ring_counts(bridge.ab, &before);
	rt_tcp_run(&tcp);
	rt_ring_counts(bridge.ab, &counts);
	printf("# %llu packets of %llu bytes on average\n", (unsigned long long)counts.seen,
	       (unsigned long long)(counts.seen_bytes / counts.seen));
	RT_EQUAL(counts.reflect_failed, before.reflect_failed);
	RT_EQUAL(counts.reflected, counts.seen);
	rt_tcp_close(&tcp);
	rt_bridge_close(&bridge);
}

/* What there is no memory to reflect is counted, and the rest arrives. On the debug kernel only. */
RT_CASE(reflect_no_memory)
{
	struct rt_traffic traffic = { .flows = 5, .max_len = 1514 };
	struct rt_ring_counts counts;
	struct rt_bridge bridge;
	const u32 count = 200;

	rt_faults_open();
	rt_bridge_open(&bridge);
	rt_fail_atomic(30);
	rt_send(bridge.a.sender, &traffic, 0, count);
	rt_ring_wait(bridge.ab, count);
	rt_fail_atomic(0);
	rt_ring_counts(bridge.ab, &counts);
	RT_CHECK(counts.reflect_failed > 0 && counts.reflect_failed < count, "%llu failed", (unsigned long long)counts.reflect_failed);
	rt_reflect_check(bridge.ab, count, counts.reflect_failed);
	rt_ring_wait(bridge.b.ring, count - counts.reflect_failed);
	RT_EQUAL(rt_queue_read(&bridge.b.queue, NULL, NULL), count - counts.reflect_failed);
	rt_bridge_close(&bridge);
}
