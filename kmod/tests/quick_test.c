// SPDX-License-Identifier: GPL-2.0-only
/* Quick mode: what it delivers, and that nothing else is in its way. */
#define _GNU_SOURCE
#include "fixture.h"

#include <pthread.h>

static void rt_quick_open(struct rt_fixture *fixture, struct rt_cluster *shape)
{
	rt_fixture_open(fixture, shape);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture->ring), 0);
	RT_CHECK(!rt_fixture_change(fixture, &(struct rt_ring){ .quick = 1 }), "%s", rt_reason);
}

/* Every packet, whole, once, in the first queue, whatever kind of slots the cluster wants. */
static void rt_try_quick(struct rt_cluster *shape)
{
	struct rt_traffic traffic = { .flows = 20, .min_len = 60, .max_len = 1514 };
	const u32 count = rt_scaled(5000);
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_quick_open(&fixture, shape);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, count + 100);
	rt_send(fixture.sender, &traffic, count, 100);
	rt_fixture_check(&fixture, 100, 0, 0, 0, 100);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_exchange(fixture.sender, &traffic, 0, count, &queue, 1, &receiver);
	rt_fixture_check(&fixture, count + 100, 0, count, 0, 100);
	RT_EQUAL(receiver.bytes, rt_traffic_bytes(&traffic, 0, count));
	rt_queue_close(&queue);
}

RT_CASE(quick_one_queue)
{
	rt_try_quick(&(struct rt_cluster){});
}

RT_CASE(quick_shared_lane)
{
	rt_try_quick(&(struct rt_cluster){ .lanes = 1 });
}

RT_CASE(quick_rx_queues)
{
	rt_try_quick(&(struct rt_cluster){ .queues = 3, .balance = RINGCAP_BALANCE_RX_QUEUE });
}

RT_CASE(quick_metadata)
{
	rt_try_quick(&(struct rt_cluster){ .metadata = 1 });
}

RT_CASE(quick_overrun)
{
	struct rt_traffic traffic = { .flows = 3, .min_len = 200, .max_len = 700 };
	const u32 count = 2000;
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_quick_open(&fixture, &(struct rt_cluster){ .lane_size = RINGCAP_LANE_SIZE_MIN });
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, count);
	rt_send(fixture.sender, &traffic, 0, count);
	rt_ring_wait(fixture.ring, count);
	rt_queue_read(&queue, rt_receive, &receiver);
	RT_CHECK(receiver.count && receiver.count < count, "%llu read", (unsigned long long)receiver.count);
	rt_fixture_check(&fixture, count, 0, receiver.count, count - receiver.count, 0);
	rt_queue_close(&queue);
}

/* ---- several processors ---- */

struct rt_quick_sender {
	int sender;
	const struct rt_traffic *traffic;
	u32 cpu, from, count;
};

static void *rt_quick_send(void *arg)
{
	const struct rt_quick_sender *sender = arg;
	u32 sent;

	rt_pin(sender->cpu);
	for (sent = 0; sent < sender->count; sent += 20) {
		rt_send(sender->sender, sender->traffic, sender->from + sent, 20);
		sched_yield();
	}
	return NULL;
}

/* Each processor into its own lane; beside it an ordinary ring, which sees the same. */
RT_CASE(quick_processors)
{
	struct rt_traffic traffic = { .flows = 16, .min_len = 60, .max_len = 300 };
	const u32 count = rt_scaled(2000);
	struct rt_cluster other = { .name = "quick-other" };
	struct rt_ring beside = { .name = "quick-beside", .outputs = { other.name } };
	struct rt_quick_sender senders[2];
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	pthread_t threads[2];
	u32 i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		rt_skip("this machine has one processor");
	rt_quick_open(&fixture, &(struct rt_cluster){ .lane_size = 2U << 20 });
	RT_EQUAL(rt_cluster_set(&other), 0);
	beside.taps[0] = (struct rt_tap){ fixture.ifindex, RINGCAP_DIRECTION_RX };
	RT_EQUAL(rt_ring_set(&beside), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 2 * count);
	for (i = 0; i < 2; i++) {
		senders[i] = (struct rt_quick_sender){ fixture.sender, &traffic, i, i * count, count };
		RT_CHECK(!pthread_create(&threads[i], NULL, rt_quick_send, &senders[i]), "no thread");
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	rt_ring_wait(fixture.ring, 2 * count);
	RT_EVENTUALLY(rt_queue_read(&queue, rt_receive, &receiver) + receiver.count >= 2 * count, 20000);
	RT_EQUAL(receiver.count, 2 * count);
	rt_fixture_check(&fixture, 2 * count, 0, 2 * count, 0, 0);
	RT_EQUAL(rt_ring_seen("quick-beside"), 2 * count);
	rt_queue_close(&queue);
}

/* ---- beside everything else ---- */

/* A packet that the ring's filter lets pass is still looked at by whatever else was asked for. */
RT_CASE(quick_with_all_else)
{
	const struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0xffffffff);
	struct rt_traffic traffic = { .flows = 20, .min_len = 60, .max_len = 300 };
	struct rt_cluster wide = { .name = "quick-wide", .queues = 4 };
	static struct rt_message message;
	struct rt_ring_counts counts;
	struct rt_fixture fixture;
	const u16 untagged = 0;
	u32 nest;

	rt_quick_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_cluster_set(&wide), 0);
	rt_message_init(&message, RINGCAP_CMD_RING_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, fixture.ring);
	nest = rt_message_nest(&message, RINGCAP_A_TAP);
	rt_message_put_u32(&message, RINGCAP_A_TAP_IFINDEX, fixture.ifindex);
	rt_message_nest_end(&message, nest);
	nest = rt_message_nest(&message, RINGCAP_A_TAP);
	rt_message_put_u32(&message, RINGCAP_A_TAP_IFINDEX, rt_ifindex("lo"));
	rt_message_nest_end(&message, nest);
	rt_message_put_name(&message, RINGCAP_A_OUTPUT, fixture.cluster);
	rt_message_put_name(&message, RINGCAP_A_OUTPUT, wide.name);
	rt_message_put(&message, RINGCAP_A_FILTER, &all, sizeof(all));
	rt_message_put(&message, RINGCAP_A_VLANS, &untagged, sizeof(untagged));
	rt_message_put_u32(&message, RINGCAP_A_SAMPLE, 2);
	rt_message_put_u32(&message, RINGCAP_A_SAMPLE_BY, RINGCAP_SAMPLE_FLOW);
	rt_message_put_u32(&message, RINGCAP_A_HWTSTAMP, 1);
	rt_message_put_u32(&message, RINGCAP_A_DEFRAG, 1);
	rt_message_put_u32(&message, RINGCAP_A_QUICK, 1);
	RT_CHECK(!rt_call(&message, NULL, NULL), "%s", rt_reason);
	RT_EQUAL(rt_get_attr(RINGCAP_CMD_RING_GET, fixture.ring, RINGCAP_A_QUICK), 1);
	rt_message_init(&message, RINGCAP_CMD_RULES_BEGIN, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, fixture.ring);
	RT_CHECK(!rt_call(&message, NULL, NULL), "%s", rt_reason);
	rt_send(fixture.sender, &traffic, 0, 200);
	rt_ring_wait(fixture.ring, 200);
	rt_ring_counts(fixture.ring, &counts);
	RT_CHECK(counts.sampled_out && counts.passed, "no sample was taken");
	RT_EQUAL(counts.sampled_out + counts.passed, 200);
}

/* Two of them take the same packets of one device, and each comes and goes while it counts on. */
RT_CASE(quick_changes)
{
	struct rt_cluster other = { .name = "quick-2" };
	struct rt_ring beside = { .name = "quick-beside", .outputs = { other.name }, .quick = 1 };
	struct rt_traffic traffic = { .flows = 20, .min_len = 60, .max_len = 300 };
	struct rt_fixture fixture;

	rt_quick_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_cluster_set(&other), 0);
	beside.taps[0] = (struct rt_tap){ fixture.ifindex, RINGCAP_DIRECTION_RX };
	RT_CHECK(!rt_ring_set(&beside), "%s", rt_reason);
	rt_send(fixture.sender, &traffic, 0, 100);
	rt_ring_wait(fixture.ring, 100);
	RT_EQUAL(rt_ring_seen("quick-beside"), 100);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
	RT_EQUAL(rt_get_attr(RINGCAP_CMD_RING_GET, fixture.ring, RINGCAP_A_QUICK), 0);
	rt_send(fixture.sender, &traffic, 100, 100);
	rt_ring_wait(fixture.ring, 200);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .quick = 1 }), 0);
	rt_send(fixture.sender, &traffic, 200, 100);
	rt_ring_wait(fixture.ring, 300);
	rt_fixture_check(&fixture, 300, 0, 0, 0, 300);
	RT_EQUAL(rt_get_attr(RINGCAP_CMD_RING_GET, fixture.ring, RINGCAP_A_QUICK), 1);
}
