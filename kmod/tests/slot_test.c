// SPDX-License-Identifier: GPL-2.0-only
/* The contents of slots, short ones and those with metadata. */
#define _GNU_SOURCE
#include "fixture.h"
#include "frame.h"

#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "../classify/classify.h"

static const u8 rt_key[RINGCAP_KEY_LEN] = { 2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9, 0, 4, 5 };

static u64 rt_real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec;
}

/**
 * struct rt_expected - slots of packets of @traffic, and between which times they were sent
 * @hashed: they have their flow's hash
 * @metadata: and what the parser found
 */
struct rt_expected {
	const struct rt_traffic *traffic;
	u32 ifindex;
	u64 from, to;
	bool hashed;
	bool metadata;
	u32 count;
};

static u32 rt_hash_of(const u8 *packet, u32 len, struct rc_flow *flow)
{
	struct rt_frame_copy { u8 bytes[RC_PARSE_MAX]; } copy = {};
	struct rc_frame frame = { .data = copy.bytes, .avail = len < RC_PARSE_MAX ? len : RC_PARSE_MAX };
	rc_u64 key[2];

	memcpy(copy.bytes, packet, frame.avail);
	rc_parse(&frame, flow);
	rc_key_load(rt_key, key);
	return rc_flow_hash(flow, RINGCAP_BALANCE_FLOW, key);
}

/* Every field of a slot, exactly. */
static void rt_check_contents(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	static u8 bytes[RT_PACKET_MAX];
	struct rt_expected *expected = arg;
	u32 number = rt_packet_number(packet, slot->caplen), len = rt_packet_build(expected->traffic, number, bytes);
	struct ringcap_slot want = { .len = len, .caplen = len, .ifindex = expected->ifindex, .ts_ns = slot->ts_ns,
				     .hdr_len = expected->metadata ? sizeof(want) : RINGCAP_SLOT_SHORT };
	struct rc_flow flow;
	u32 hash = rt_hash_of(bytes, len, &flow);

	RT_CHECK(slot->ts_ns >= expected->from && slot->ts_ns <= expected->to, "captured at %llu, sent from %llu to %llu",
		 (unsigned long long)slot->ts_ns, (unsigned long long)expected->from, (unsigned long long)expected->to);
	if (expected->hashed) {
		want.hash = hash;
		want.flags = RINGCAP_SLOT_HASHED;
	}
	if (expected->metadata) {
		want.l3_off = flow.l3_off;
		want.l4_off = flow.l4_off;
		want.l3_proto = flow.l3_proto;
		want.l4_proto = flow.l4_proto;
	}
	RT_EQUAL(slot->hdr_len, want.hdr_len);
	RT_CHECK(!memcmp(slot, &want, want.hdr_len), "packet %u's slot is not as it should be", number);
	RT_CHECK(!memcmp(packet, bytes, len), "packet %u is damaged", number);
	expected->count++;
}

static void rt_try_contents(struct rt_cluster *shape, bool hashed)
{
	struct rt_traffic traffic = { .flows = 20, .min_len = 60, .max_len = 400 };
	struct rt_expected expected = { .traffic = &traffic, .hashed = hashed, .metadata = shape->metadata };
	struct rt_fixture fixture;
	struct rt_queue queue;
	u32 i;

	shape->key = rt_key;
	rt_fixture_open(&fixture, shape);
	expected.ifindex = fixture.ifindex;
	for (i = 0; i < (shape->queues ?: 1); i++) {
		rt_queue_open(&queue, fixture.cluster, i);
		expected.count = 0;
		expected.from = rt_real_ns();
		rt_send(fixture.sender, &traffic, 0, 500);
		rt_ring_wait(fixture.ring, (i + 1) * 500);
		expected.to = rt_real_ns();
		rt_queue_read(&queue, rt_check_contents, &expected);
		RT_CHECK(expected.count, "queue %u got nothing", i);
		rt_queue_close(&queue);
	}
}

RT_CASE(slot_short)
{
	rt_try_contents(&(struct rt_cluster){}, false);
}

/* Short ones carry the hash that chose their queue. */
RT_CASE(slot_short_hashed)
{
	rt_try_contents(&(struct rt_cluster){ .queues = 3 }, true);
}

/* Nobody asks for a hash where queues take turns. */
RT_CASE(slot_short_turns)
{
	rt_try_contents(&(struct rt_cluster){ .queues = 2, .balance = RINGCAP_BALANCE_ROUND_ROBIN }, false);
}

RT_CASE(slot_metadata)
{
	rt_try_contents(&(struct rt_cluster){ .metadata = 1 }, true);
}

RT_CASE(slot_metadata_queues)
{
	rt_try_contents(&(struct rt_cluster){ .queues = 3, .metadata = 1 }, true);
}

/* Two clusters of one ring, one of each kind, each as it asked. */
RT_CASE(slot_both_kinds)
{
	struct rt_traffic traffic = { .flows = 20, .min_len = 60, .max_len = 400 };
	struct rt_cluster other = { .name = "slots-other", .metadata = 1, .key = rt_key };
	struct rt_expected expected = { .traffic = &traffic };
	struct rt_fixture fixture;
	struct rt_queue queues[2];

	rt_fixture_open(&fixture, &(struct rt_cluster){ .key = rt_key });
	RT_EQUAL(rt_cluster_set(&other), 0);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .outputs = { fixture.cluster, other.name } }), 0);
	rt_queue_open(&queues[0], fixture.cluster, 0);
	rt_queue_open(&queues[1], other.name, 0);
	expected.ifindex = fixture.ifindex;
	expected.from = rt_real_ns();
	rt_send(fixture.sender, &traffic, 0, 500);
	rt_ring_wait(fixture.ring, 500);
	expected.to = rt_real_ns();
	rt_queue_read(&queues[0], rt_check_contents, &expected);
	expected.hashed = expected.metadata = true;
	rt_queue_read(&queues[1], rt_check_contents, &expected);
	RT_EQUAL(expected.count, 1000);
	rt_queue_close(&queues[0]);
	rt_queue_close(&queues[1]);
}

/* ---- switching ---- */

struct rt_switching {
	struct rt_fixture *fixture;
	const struct rt_traffic *traffic;
	u32 count;
	u32 switches;
	bool done;
};

static void *rt_send_slowly(void *arg)
{
	struct rt_switching *switching = arg;
	u32 sent;

	for (sent = 0; sent < switching->count; sent += 50) {
		/* However slow the other thread is: not all is sent before something was switched. */
		while (sent + 50 >= switching->count && __atomic_load_n(&switching->switches, __ATOMIC_RELAXED) < 3)
			sched_yield();
		rt_send(switching->fixture->sender, switching->traffic, sent, 50);
		sched_yield();
	}
	__atomic_store_n(&switching->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* METADATA changes without new queues: each packet's slot is whole under either setting, and none is lost. */
RT_CASE(slot_metadata_switched)
{
	struct rt_traffic traffic = { .flows = 20, .min_len = 60, .max_len = 300 };
	const u32 count = rt_scaled(5000);
	struct rt_cluster shape = { .lanes = 1, .lane_size = 4U << 20 };
	struct rt_switching switching = { .traffic = &traffic, .count = count };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	pthread_t sender;
	u32 i;

	rt_fixture_open(&fixture, &shape);
	switching.fixture = &fixture;
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, count);
	RT_CHECK(!pthread_create(&sender, NULL, rt_send_slowly, &switching), "no thread");
	for (i = 0; !__atomic_load_n(&switching.done, __ATOMIC_ACQUIRE); i++) {
		shape.metadata = i % 2;
		RT_EQUAL(rt_cluster_set(&shape), 0);
		__atomic_store_n(&switching.switches, i + 1, __ATOMIC_RELAXED);
		rt_queue_read(&queue, rt_receive, &receiver);
	}
	pthread_join(sender, NULL);
	rt_ring_wait(fixture.ring, count);
	rt_queue_read(&queue, rt_receive, &receiver);
	RT_EQUAL(receiver.count, count);
	rt_fixture_check(&fixture, count, 0, count, 0, 0);
	rt_queue_close(&queue);
}

/* ---- what no wire has seen ---- */

/*
 * Sends @frame as a virtual machine does: the device is to compute its checksum, and to segment it if @size is not 0.
 */
static void rt_send_offloaded(const struct rt_frame *frame, u16 size)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = (int)rt_ifindex("va") };
	struct virtio_net_hdr head = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 34, .csum_offset = 16,
		.gso_type = size ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_NONE, .gso_size = size, .hdr_len = 54 };
	struct iovec parts[2] = { { &head, sizeof(head) }, { frame->data, frame->len } };
	struct msghdr message = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = parts, .msg_iovlen = 2 };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1;

	RT_CHECK(fd >= 0 && !setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)), "%m");
	RT_EQUAL(sendmsg(fd, &message, 0), sizeof(head) + frame->len);
	close(fd);
}

static void rt_collect_flags(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	u8 **at = arg;

	(void)packet;
	*(*at)++ = slot->flags;
}

/* A packet that is as on the wire, one without its checksum, one of several segments; to and from the interface. */
static void rt_try_offloaded(const struct rt_fixture *fixture, u8 base)
{
	static const struct rt_ends ends = { 0x0a000001, 0x0a000002, 40000, 80 };
	struct rt_frame frame, large;
	u8 flags[8] = {}, *at = flags;
	struct rt_queue queue;

	rt_frame_begin(&frame, 0, 100);
	rt_frame_push_tcp(&frame, &ends);
	rt_frame_push_ipv4(&frame, &ends, 6);
	rt_frame_push_ethernet(&frame, 0x0800);
	rt_frame_begin(&large, 0, 3000);
	rt_frame_push_tcp(&large, &ends);
	rt_frame_push_ipv4(&large, &ends, 6);
	rt_frame_push_ethernet(&large, 0x0800);
	rt_queue_open(&queue, fixture->cluster, 0);
	/* Lanes are read one after the other: the three have an order in one only. */
	rt_pin(0);
	rt_frame_send(fixture->sender, &frame);
	rt_send_offloaded(&frame, 0);
	rt_send_offloaded(&large, 1000);
	RT_EVENTUALLY((rt_queue_read(&queue, rt_collect_flags, &at), at == flags + 3), 5000);
	RT_EQUAL(flags[0], base);
	RT_EQUAL(flags[1], base | RINGCAP_SLOT_CSUM_PARTIAL);
	RT_EQUAL(flags[2], base | RINGCAP_SLOT_CSUM_PARTIAL | RINGCAP_SLOT_MERGED);
	rt_queue_close(&queue);
}

RT_CASE(slot_offloaded)
{
	struct rt_fixture fixture;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .lane_size = RT_LANE_SIZE });
	rt_try_offloaded(&fixture, 0);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .taps = { { rt_ifindex("va"), RINGCAP_DIRECTION_TX } } }), 0);
	rt_try_offloaded(&fixture, RINGCAP_SLOT_OUTGOING);
}
