// SPDX-License-Identifier: GPL-2.0-only
/* Every packet is accounted for. */
#define _GNU_SOURCE
#include "fixture.h"

/* A consumer that keeps up gets every packet, whole, once and in order of time. */
RT_CASE(account_lossless)
{
	struct rt_traffic traffic = { .flows = 50, .min_len = 60, .max_len = 1514 };
	const u32 count = rt_scaled(10000);
	struct rt_queue_counts counts;
	struct rt_ring_counts ring;
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, count);
	rt_exchange(fixture.sender, &traffic, 0, count, &queue, 1, &receiver);
	rt_fixture_check(&fixture, count, 0, count, 0, 0);
	rt_queue_counts(fixture.cluster, 0, &counts);
	rt_ring_counts(fixture.ring, &ring);
	RT_EQUAL(receiver.bytes, rt_traffic_bytes(&traffic, 0, count));
	RT_EQUAL(counts.delivered_bytes, receiver.bytes);
	RT_EQUAL(counts.truncated, 0);
	RT_EQUAL(counts.truncated_bytes, 0);
	RT_EQUAL(ring.seen_bytes, receiver.bytes);
	RT_EQUAL(counts.unread, 0);
	RT_EQUAL(counts.attached, 1);
	RT_EQUAL(counts.pid, getpid());
	rt_queue_close(&queue);
}

static void rt_check_stats_page(const struct rt_queue *queue, const struct rt_queue_counts *want)
{
	struct ringcap_lane_stats sum = {};
	u32 lane;

	for (lane = 0; lane < queue->nr_lanes; lane++) {
		sum.delivered += queue->kernel[lane].stats.delivered;
		sum.delivered_bytes += queue->kernel[lane].stats.delivered_bytes;
		sum.truncated += queue->kernel[lane].stats.truncated;
		sum.truncated_bytes += queue->kernel[lane].stats.truncated_bytes;
		sum.dropped[RINGCAP_DROP_FULL] += queue->kernel[lane].stats.dropped[RINGCAP_DROP_FULL];
		sum.dropped[RINGCAP_DROP_UNATTENDED] += queue->kernel[lane].stats.dropped[RINGCAP_DROP_UNATTENDED];
	}
	RT_EQUAL(sum.delivered, want->delivered);
	RT_EQUAL(sum.delivered_bytes, want->delivered_bytes);
	RT_EQUAL(sum.truncated, want->truncated);
	RT_EQUAL(sum.truncated_bytes, want->truncated_bytes);
	RT_EQUAL(sum.dropped[RINGCAP_DROP_FULL], want->dropped[RINGCAP_DROP_FULL]);
	RT_EQUAL(sum.dropped[RINGCAP_DROP_UNATTENDED], want->dropped[RINGCAP_DROP_UNATTENDED]);
}

/* A consumer that is too slow loses packets, and each lost packet is counted. */
RT_CASE(account_full)
{
	struct rt_cluster shape = { .lane_size = RINGCAP_LANE_SIZE_MIN };
	struct rt_traffic traffic = { .flows = 3, .min_len = 200, .max_len = 700 };
	const u32 count = 3000;
	struct rt_receiver receiver;
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	struct rt_queue queue;
	u32 round;

	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 2 * count);
	for (round = 1; round <= 2; round++) {
		rt_send(fixture.sender, &traffic, (round - 1) * count, count);
		rt_ring_wait(fixture.ring, round * count);
		rt_queue_counts(fixture.cluster, 0, &counts);
		RT_CHECK(counts.unread > RINGCAP_LANE_SIZE_MIN - 1000, "only %llu bytes used", (unsigned long long)counts.unread);
		rt_queue_read(&queue, rt_receive, &receiver);
		RT_CHECK(receiver.count && receiver.count < round * count, "%llu read", (unsigned long long)receiver.count);
		rt_fixture_check(&fixture, round * count, 0, receiver.count, round * count - receiver.count, 0);
	}
	rt_queue_counts(fixture.cluster, 0, &counts);
	rt_check_stats_page(&queue, &counts);
	RT_EQUAL(counts.delivered_bytes, receiver.bytes);
	rt_queue_close(&queue);
}

/*
 * Without a consumer packets are dropped and counted; the next consumer begins with the packets that come afterwards.
 */
RT_CASE(account_unattended)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 400);
	rt_send(fixture.sender, &traffic, 0, 100);
	rt_fixture_check(&fixture, 100, 0, 0, 0, 100);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_exchange(fixture.sender, &traffic, 100, 200, &queue, 1, &receiver);
	rt_fixture_check(&fixture, 300, 0, 200, 0, 100);
	rt_queue_close(&queue);
	rt_send(fixture.sender, &traffic, 300, 100);
	rt_fixture_check(&fixture, 400, 0, 200, 0, 200);
}

/* The next consumer gets the packets that a consumer leaves unread, and is told where they end. */
RT_CASE(account_left_over)
{
	struct rt_traffic traffic = { .flows = 5, .max_len = 900 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	u64 left = 0;
	u32 lane;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 300);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_exchange(fixture.sender, &traffic, 0, 100, &queue, 1, &receiver);
	rt_send(fixture.sender, &traffic, 100, 100);
	rt_ring_wait(fixture.ring, 200);
	rt_queue_close(&queue);
	rt_queue_open(&queue, fixture.cluster, 0);
	for (lane = 0; lane < queue.nr_lanes; lane++) {
		RT_EQUAL(queue.consumer[lane].left, queue.kernel[lane].producer);
		left += queue.consumer[lane].left - queue.consumer[lane].released;
	}
	RT_CHECK(left > 100 * RINGCAP_SLOT_SHORT, "%llu bytes are left", (unsigned long long)left);
	rt_exchange(fixture.sender, &traffic, 200, 0, &queue, 1, &receiver);
	RT_EQUAL(rt_queue_read(&queue, rt_receive, &receiver), 100);
	rt_exchange(fixture.sender, &traffic, 200, 100, &queue, 1, &receiver);
	rt_fixture_check(&fixture, 300, 0, 300, 0, 0);
	rt_queue_close(&queue);
}

static void rt_check_zero(const struct rt_queue *queue)
{
	u32 lane, i;

	for (lane = 0; lane < queue->nr_lanes; lane++) {
		for (i = 0; i < queue->lane_size; i += 8)
			RT_CHECK(!*(const u64 *)(queue->data[lane] + i), "lane %u has something at %u", lane, i);
		RT_EQUAL(queue->consumer[lane].released, queue->kernel[lane].producer);
	}
}

/* A reset queue shows its next consumer none of its old contents, and keeps its account. */
RT_CASE(account_reset)
{
	struct rt_traffic traffic = { .flows = 5, .min_len = 1000 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue_counts counts;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .lane_size = RINGCAP_LANE_SIZE_MIN });
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 400);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_exchange(fixture.sender, &traffic, 0, 200, &queue, 1, &receiver);
	rt_send(fixture.sender, &traffic, 200, 50);
	memset(queue.consumer, 0x5a, queue.consumer_len);
	/* Packets that come after it has gone are not delivered. */
	rt_ring_wait(fixture.ring, 250);
	RT_EQUAL(rt_queue_reset(fixture.cluster, 0), -EBUSY);
	RT_CHECK(rt_reason[0], "no reason given");
	rt_queue_close(&queue);
	RT_EQUAL(rt_queue_reset(fixture.cluster, 0), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_check_zero(&queue);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.unread, 0);
	rt_exchange(fixture.sender, &traffic, 250, 150, &queue, 1, &receiver);
	rt_fixture_check(&fixture, 400, 0, 400, 0, 0);
	rt_queue_close(&queue);
}

/* Each cluster of a ring gets its own copy; one consumer does not affect the other. */
RT_CASE(account_two_clusters)
{
	struct rt_traffic traffic = { .flows = 20, .max_len = 1000 };
	struct rt_cluster other = { .queues = 3, .lane_size = RINGCAP_LANE_SIZE_MIN };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue_counts counts;
	struct rt_queue queue;
	char name[40];

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	snprintf(name, sizeof(name), "%s-other", fixture.cluster);
	other.name = name;
	RT_EQUAL(rt_cluster_set(&other), 0);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .outputs = { fixture.cluster, name } }), 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 1000);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_exchange(fixture.sender, &traffic, 0, 1000, &queue, 1, &receiver);
	rt_fixture_check(&fixture, 1000, 0, 1000, 0, 0);
	rt_cluster_counts(name, &counts);
	RT_EQUAL(counts.dropped[RINGCAP_DROP_UNATTENDED], 1000);
	RT_EQUAL(counts.delivered, 0);
	rt_queue_close(&queue);
}

/* Passes a packet to the receiver for the interface that it was tapped on. */
static void rt_receive_by_tap(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_receiver *receivers = arg;

	rt_receive(slot, packet, &receivers[slot->ifindex == receivers[1].ifindex]);
}

/* Several rings into one cluster: the packets that they pass are those that its queues got. */
RT_CASE(account_two_rings)
{
	struct rt_traffic traffic = { .flows = 20 };
	struct rt_receiver receivers[2];
	struct rt_fixture fixture;
	struct rt_queue_counts counts;
	struct rt_queue queue;
	struct rt_ring second = {};
	char name[40];

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	snprintf(name, sizeof(name), "%s-second", fixture.ring);
	second = (struct rt_ring){ .name = name, .outputs = { fixture.cluster },
				   .taps = { { rt_ifindex("va"), RINGCAP_DIRECTION_TX } } };
	RT_EQUAL(rt_ring_set(&second), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_send(fixture.sender, &traffic, 0, 500);
	rt_ring_wait(fixture.ring, 500);
	rt_ring_wait(name, 500);
	rt_cluster_counts(fixture.cluster, &counts);
	RT_EQUAL(counts.delivered, 1000);
	rt_receiver_init(&receivers[0], &traffic, fixture.ifindex, 500);
	rt_receiver_init(&receivers[1], &traffic, second.taps[0].ifindex, 500);
	receivers[1].outgoing = true;
	RT_EQUAL(rt_queue_read(&queue, rt_receive_by_tap, receivers), 1000);
	RT_EQUAL(receivers[0].count, 500);
	RT_EQUAL(receivers[1].count, 500);
	rt_queue_close(&queue);
}

static void rt_check_snap(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	static u8 bytes[RT_PACKET_MAX];
	const struct rt_traffic *traffic = arg;
	static u32 number;

	RT_EQUAL(slot->len, rt_packet_build(traffic, number++, bytes));
	RT_EQUAL(slot->caplen, slot->len < 100 ? slot->len : 100);
	RT_CHECK(!memcmp(bytes, packet, slot->caplen), "packet %u is damaged", number - 1);
}

/* A snap length shortens what is captured, never what is counted. */
RT_CASE(account_snaplen)
{
	struct rt_traffic traffic = { .min_len = 60, .max_len = 1514 };
	struct rt_fixture fixture;
	struct rt_queue_counts counts;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .lanes = 1 });
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .snaplen = 100 }), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(queue.info->snaplen, 100);
	rt_pin(0);
	rt_send(fixture.sender, &traffic, 0, 500);
	rt_fixture_check(&fixture, 500, 0, 500, 0, 0);
	RT_EQUAL(rt_queue_read(&queue, rt_check_snap, &traffic), 500);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.delivered_bytes + counts.truncated_bytes, rt_traffic_bytes(&traffic, 0, 500));
	rt_queue_close(&queue);
}

/*
 * Sends packets that stay unread, packets that the snap length @told cuts, and packets that it does not cut. Only cut
 * packets that are delivered are counted as truncated.
 */
static void rt_check_truncated(struct rt_cluster *shape, u32 told, u32 snaplen)
{
	struct rt_traffic cut = { .min_len = 1000, .max_len = 1000 }, whole = { .min_len = 100, .max_len = 100 };
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, shape);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .snaplen = told }), 0);
	rt_send(fixture.sender, &cut, 0, 7);	/* nobody gets these */
	rt_ring_wait(fixture.ring, 7);
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .snaplen = snaplen }), 0);
	rt_send(fixture.sender, &cut, 0, 40);
	rt_send(fixture.sender, &whole, 0, 60);
	rt_fixture_check(&fixture, 107, 0, 100, 0, 7);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.delivered_bytes, 100 * 100);
	RT_EQUAL(counts.truncated, 40);
	RT_EQUAL(counts.truncated_bytes, 40 * 900);
	rt_check_stats_page(&queue, &counts);
	rt_queue_close(&queue);
}

RT_CASE(account_truncated)
{
	rt_check_truncated(&(struct rt_cluster){}, 100, 100);
}

/* The same if CPUs share a lane. */
RT_CASE(account_truncated_shared)
{
	rt_check_truncated(&(struct rt_cluster){ .lanes = 1 }, 100, 100);
}

/* A consumer gets no more bytes than it was told when it attached, although the ring captures more by now. */
RT_CASE(account_truncated_as_told)
{
	rt_check_truncated(&(struct rt_cluster){}, 100, 1514);
}

/* A packet without room is counted as dropped, and not as truncated as well. */
RT_CASE(account_truncated_full)
{
	struct rt_traffic traffic = { .min_len = 1000, .max_len = 1000 };
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .lane_size = RINGCAP_LANE_SIZE_MIN });
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .snaplen = 500 }), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_send(fixture.sender, &traffic, 0, 2000);
	rt_ring_wait(fixture.ring, 2000);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_CHECK(counts.dropped[RINGCAP_DROP_FULL], "nothing was dropped");
	RT_EQUAL(counts.delivered + counts.dropped[RINGCAP_DROP_FULL], 2000);
	RT_EQUAL(counts.truncated, counts.delivered);
	RT_EQUAL(counts.truncated_bytes, counts.delivered * 500);
	RT_EQUAL(counts.delivered_bytes, counts.delivered * 500);
	rt_queue_close(&queue);
}

/* Without a snap length jumbo frames come whole. */
RT_CASE(account_jumbo)
{
	struct rt_traffic traffic = { .min_len = 9014, .max_len = 9014 };
	struct rt_receiver receiver;
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_ip("link set va mtu 9200");
	rt_ip("link set vb mtu 9200");
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 300);
	rt_exchange(fixture.sender, &traffic, 0, 300, &queue, 1, &receiver);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.delivered_bytes, 300 * 9014);
	RT_EQUAL(counts.truncated, 0);
	rt_queue_close(&queue);
}

/* Slots that cross the end of a lane are whole in the second mapping, whatever their size. */
RT_CASE(account_wrap)
{
	struct rt_traffic traffic = { .min_len = 60, .max_len = 1514 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	const u32 count = rt_scaled(3000);

	rt_fixture_open(&fixture, &(struct rt_cluster){ .lane_size = RINGCAP_LANE_SIZE_MIN, .lanes = 1 });
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, count);
	rt_exchange(fixture.sender, &traffic, 0, count, &queue, 1, &receiver);
	RT_CHECK(queue.position[0] > 3 * RINGCAP_LANE_SIZE_MIN, "the lane was gone round too seldom");
	rt_fixture_check(&fixture, count, 0, count, 0, 0);
	rt_queue_close(&queue);
}
