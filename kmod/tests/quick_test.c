// SPDX-License-Identifier: GPL-2.0-only
/* Quick mode: what it delivers, and what it does not go together with. */
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

/* ---- what it does not go together with ---- */

static struct rt_message *rt_quick_message(const struct rt_fixture *fixture, const char *name, const char *cluster)
{
	static struct rt_message message;
	u32 nest;

	rt_message_init(&message, RINGCAP_CMD_RING_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	nest = rt_message_nest(&message, RINGCAP_A_TAP);
	rt_message_put_u32(&message, RINGCAP_A_TAP_IFINDEX, fixture->ifindex);
	rt_message_nest_end(&message, nest);
	rt_message_put_name(&message, RINGCAP_A_OUTPUT, cluster);
	rt_message_put_u32(&message, RINGCAP_A_QUICK, 1);
	return &message;
}

/* Refused with @err and a reason that contains @word, and nothing is changed. */
static void rt_quick_refused(struct rt_message *message, int err, const char *word)
{
	u64 before = rt_control_digest();
	int got = rt_call(message, NULL, NULL);
	char reason[sizeof(rt_reason)];

	memcpy(reason, rt_reason, sizeof(reason));
	RT_CHECK(got == err, "%s: %s (%s), not %s", word, strerror(-got), reason, strerror(-err));
	RT_CHECK(strstr(reason, word), "'%s' does not mention %s", reason, word);
	RT_CHECK(rt_control_digest() == before, "%s: refused, but something changed", word);
}

RT_CASE(quick_refused)
{
	const struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0xffffffff);
	struct rt_cluster wide = { .name = "quick-wide", .queues = 2 };
	struct rt_fixture fixture;
	struct rt_message *message;
	u16 vlan = 5;
	u32 nest;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_cluster_set(&wide), 0);
	message = rt_quick_message(&fixture, "quick", fixture.cluster);
	rt_message_put(message, RINGCAP_A_FILTER, &all, sizeof(all));
	rt_quick_refused(message, -EINVAL, "RINGCAP_A_FILTER");
	message = rt_quick_message(&fixture, "quick", fixture.cluster);
	rt_message_put(message, RINGCAP_A_VLANS, &vlan, sizeof(vlan));
	rt_quick_refused(message, -EINVAL, "RINGCAP_A_VLANS");
	message = rt_quick_message(&fixture, "quick", fixture.cluster);
	rt_message_put_u32(message, RINGCAP_A_SAMPLE, 2);
	rt_quick_refused(message, -EINVAL, "RINGCAP_A_SAMPLE");
	message = rt_quick_message(&fixture, "quick", fixture.cluster);
	rt_message_put_u32(message, RINGCAP_A_HWTSTAMP, 1);
	rt_quick_refused(message, -EINVAL, "RINGCAP_A_HWTSTAMP");
	message = rt_quick_message(&fixture, "quick", fixture.cluster);
	nest = rt_message_nest(message, RINGCAP_A_TAP);
	rt_message_put_u32(message, RINGCAP_A_TAP_IFINDEX, rt_ifindex("va"));
	rt_message_nest_end(message, nest);
	rt_quick_refused(message, -EINVAL, "RINGCAP_A_TAP");
	message = rt_quick_message(&fixture, "quick", fixture.cluster);
	rt_message_put_name(message, RINGCAP_A_OUTPUT, wide.name);
	rt_quick_refused(message, -EINVAL, "RINGCAP_A_OUTPUT");
	rt_quick_refused(rt_quick_message(&fixture, "quick", wide.name), -EINVAL, "RINGCAP_BALANCE_RX_QUEUE");
	rt_quick_refused(rt_quick_message(&fixture, fixture.ring, fixture.cluster), -EOPNOTSUPP, "RINGCAP_A_QUICK");
}

/* One quick ring a device; others beside it; and its cluster stays as it is. */
RT_CASE(quick_exclusive)
{
	struct rt_cluster shape = {}, other = { .name = "quick-2" };
	static struct rt_message message;
	struct rt_fixture fixture;

	rt_quick_open(&fixture, &shape);
	RT_EQUAL(rt_cluster_set(&other), 0);
	rt_quick_refused(rt_quick_message(&fixture, "rival", other.name), -EBUSY, fixture.ring);
	shape.queues = 2;
	RT_EQUAL(rt_cluster_set(&shape), -EBUSY);
	RT_CHECK(strstr(rt_reason, "RINGCAP_A_BALANCE"), "%s", rt_reason);
	shape.balance = RINGCAP_BALANCE_RX_QUEUE;
	RT_EQUAL(rt_cluster_set(&shape), 0);
	/* As it is, once more. */
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .quick = 1, .snaplen = 100 }), 0);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), -EOPNOTSUPP);
	rt_message_init(&message, RINGCAP_CMD_RULES_BEGIN, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, fixture.ring);
	rt_quick_refused(&message, -EINVAL, "RINGCAP_A_QUICK");
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
	RT_EQUAL(rt_call(rt_quick_message(&fixture, "rival", other.name), NULL, NULL), 0);
}
