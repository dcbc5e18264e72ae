// SPDX-License-Identifier: GPL-2.0-only
/* Consumers that send: every packet leaves once and unchanged, only where it may, and invalid input has no effect. */
#define _GNU_SOURCE
#include "faults.h"
#include "fixture.h"
#include "inject.h"
#include "link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define RT_MTU 1500

/**
 * struct rt_wire - a consumer of the fixture's queue, which taps vb, that may send out of va
 * @va: its ifindex
 */
struct rt_wire {
	struct rt_fixture fixture;
	struct rt_cluster shape;
	struct rt_queue queue;
	struct rt_injector injector;
	u32 va;
};

static void rt_wire_open(struct rt_wire *wire)
{
	memset(wire, 0, sizeof(*wire));
	wire->shape.timeout_us = 1000;
	rt_fixture_open(&wire->fixture, &wire->shape);
	wire->va = rt_ifindex("va");
	wire->shape.inject[0] = wire->va;
	RT_EQUAL(rt_cluster_set(&wire->shape), 0);
	rt_queue_open(&wire->queue, wire->fixture.cluster, 0);
	rt_injector_open(&wire->injector, &wire->queue);
}

static void rt_wire_close(struct rt_wire *wire)
{
	rt_injector_close(&wire->injector);
	rt_queue_close(&wire->queue);
}

/* Reads until @receiver has @want packets. */
static void rt_wire_drain(struct rt_wire *wire, struct rt_receiver *receiver, u64 want)
{
	u64 deadline = rt_now() + RT_PATIENCE_NS;

	while (receiver->count < want) {
		if (!rt_queue_read(&wire->queue, rt_receive, receiver))
			rt_queue_poll(&wire->queue, 50);
		RT_CHECK(rt_now() < deadline, "%llu of %llu packets came", (unsigned long long)receiver->count,
			 (unsigned long long)want);
	}
}

/* Injects and reads in turns, a hundred at a time, so that nothing is lost. */
static void rt_wire_exchange(struct rt_wire *wire, const struct rt_traffic *traffic, u32 count,
			     struct rt_receiver *receiver)
{
	u32 from, batch;

	for (from = 0; from < count; from += batch) {
		batch = count - from < 100 ? count - from : 100;
		rt_inject(&wire->injector, wire->va, traffic, from, batch);
		rt_wire_drain(wire, receiver, from + batch);
	}
}

static void rt_wire_check(const struct rt_wire *wire, u64 sent, u64 failed)
{
	struct rt_queue_counts counts;

	rt_queue_counts(wire->fixture.cluster, 0, &counts);
	RT_EQUAL(counts.tx_sent, sent);
	RT_EQUAL(counts.tx_failed, failed);
	RT_EQUAL(wire->injector.index->sent, sent);
	RT_EQUAL(wire->injector.index->failed, failed);
	RT_EQUAL(wire->injector.index->consumed, wire->injector.position);
}

/* More than the area holds several times over, of all lengths. */
RT_CASE(transmit_conservation)
{
	struct rt_traffic traffic = { .flows = 20, .min_len = 60, .max_len = RT_MTU + 14 };
	const u32 count = rt_scaled(6000);
	struct rt_receiver receiver;
	struct rt_wire wire;

	rt_wire_open(&wire);
	rt_receiver_init(&receiver, &traffic, wire.fixture.ifindex, count);
	rt_wire_exchange(&wire, &traffic, count, &receiver);
	rt_wire_check(&wire, count, 0);
	rt_fixture_check(&wire.fixture, count, 0, count, 0, 0);
	RT_EQUAL(receiver.bytes, rt_traffic_bytes(&traffic, 0, count));
	rt_wire_close(&wire);
}

/* As many slots as the area has, handed over at once; then one at a time. */
RT_CASE(transmit_batches)
{
	struct rt_traffic traffic = { .flows = 5 };
	const u32 count = 900;
	struct rt_receiver receiver;
	u8 bytes[RT_PACKET_MAX];
	struct rt_wire wire;
	u32 i;

	rt_wire_open(&wire);
	rt_receiver_init(&receiver, &traffic, wire.fixture.ifindex, count);
	for (i = 0; i < count; i++)
		RT_CHECK(rt_inject_put(&wire.injector, wire.va, bytes, rt_packet_build(&traffic, i, bytes)), "no room");
	RT_EQUAL(rt_inject_kick(&wire.injector, 1), 1);
	RT_EQUAL(rt_inject_kick(&wire.injector, 100), 100);
	rt_wire_drain(&wire, &receiver, 101);
	RT_EQUAL(rt_inject_kick(&wire.injector, 0), count - 101);
	RT_EQUAL(rt_inject_kick(&wire.injector, 0), 0);
	rt_wire_drain(&wire, &receiver, count);
	rt_wire_check(&wire, count, 0);
	rt_wire_close(&wire);
}

/* Tags arrive where they were, and make room for themselves above the MTU. */
static void rt_transmit_tagged(struct rt_wire *wire, const struct rt_traffic *traffic)
{
	struct rt_receiver receiver;

	rt_receiver_init(&receiver, traffic, wire->fixture.ifindex, 200);
	rt_wire_exchange(wire, traffic, 200, &receiver);
}

RT_CASE(transmit_vlan)
{
	struct rt_traffic one = { .flows = 5, .min_len = RT_MTU, .max_len = RT_MTU + 18, .tpid = { 0x8100 }, .tci = { 0x2123 } };
	struct rt_traffic two = { .flows = 5, .max_len = RT_MTU, .tpid = { 0x88a8, 0x8100 }, .tci = { 7, 9 } };
	struct rt_wire wire;

	rt_wire_open(&wire);
	/* The contents of a tagged packet's slot are only known with them. */
	rt_transmit_tagged(&wire, &one);
	rt_transmit_tagged(&wire, &two);
	rt_wire_check(&wire, 400, 0);
	rt_wire_close(&wire);
}

/* A tap of direction TX on the interface sees these packets as it sees those of any sender. */
RT_CASE(transmit_tapped)
{
	struct rt_traffic traffic = { .flows = 5, .max_len = 1000 };
	struct rt_receiver receiver;
	struct rt_wire wire;

	rt_wire_open(&wire);
	RT_EQUAL(rt_fixture_change(&wire.fixture, &(struct rt_ring){ .taps = { { wire.va, RINGCAP_DIRECTION_TX } } }), 0);
	rt_receiver_init(&receiver, &traffic, wire.va, 500);
	receiver.outgoing = true;
	rt_wire_exchange(&wire, &traffic, 500, &receiver);
	rt_wire_check(&wire, 500, 0);
	rt_wire_close(&wire);
}

/* A group of packet sockets beside it, which asks each packet's socket whether it is one of its own. */
RT_CASE(transmit_fanout)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct rt_traffic traffic = { .flows = 5 };
	int group = 42 | PACKET_FANOUT_HASH << 16, fd;
	struct rt_receiver receiver;
	struct rt_wire wire;

	rt_wire_open(&wire);
	address.sll_ifindex = (int)wire.va;
	fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	RT_CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)), "%m");
	RT_CHECK(!setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)), "%m");
	rt_receiver_init(&receiver, &traffic, wire.fixture.ifindex, 500);
	rt_wire_exchange(&wire, &traffic, 500, &receiver);
	rt_wire_check(&wire, 500, 0);
	RT_CHECK(recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT) == 1, "the group sees nothing of it");
	close(fd);
	rt_wire_close(&wire);
}

/* ---- rights ---- */

RT_CASE(transmit_off_by_default)
{
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(queue.info->tx_size, 0);
	RT_CHECK(ioctl(queue.fd, RINGCAP_IOC_TX, 0) < 0 && errno == EPERM, "%m");
	RT_CHECK(ioctl(queue.fd, RINGCAP_IOC_TX + 1, 0) < 0 && errno == ENOTTY, "%m");
	RT_CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, queue.fd, RINGCAP_MMAP_TX_INDEX) == MAP_FAILED,
		 "an index page is there");
	RT_CHECK(mmap(NULL, RINGCAP_TX_SIZE, PROT_READ, MAP_SHARED, queue.fd, RINGCAP_MMAP_TX_DATA) == MAP_FAILED,
		 "an area is there");
	rt_queue_close(&queue);
}

/* Only out of what is granted, as long as it is. */
RT_CASE(transmit_grants)
{
	struct rt_traffic traffic = { .flows = 5 };
	u8 bytes[RT_PACKET_MAX];
	struct rt_wire wire;
	u32 len = rt_packet_build(&traffic, 0, bytes), loopback, vc;

	rt_wire_open(&wire);
	rt_veth_create("vc", "vd");
	vc = rt_ifindex("vc");
	loopback = rt_ifindex("lo");
	RT_EQUAL(rt_fixture_change(&wire.fixture, &(struct rt_ring){ .taps = { { rt_ifindex("vd"), RINGCAP_DIRECTION_RX } } }),
		 0);
	RT_CHECK(rt_inject_put(&wire.injector, vc, bytes, len), "no room");
	RT_CHECK(rt_inject_put(&wire.injector, loopback, bytes, len), "no room");
	RT_CHECK(rt_inject_put(&wire.injector, UINT32_MAX, bytes, len), "no room");
	RT_EQUAL(rt_inject_kick(&wire.injector, 0), 3);
	rt_wire_check(&wire, 0, 3);

	/* Another one is granted, and the first is not any more, with the consumer attached. */
	wire.shape.inject[0] = vc;
	RT_EQUAL(rt_cluster_set(&wire.shape), 0);
	/* 0 is the only one that is granted. */
	rt_inject(&wire.injector, vc, &traffic, 0, 5);
	rt_inject(&wire.injector, 0, &traffic, 5, 5);
	rt_inject(&wire.injector, wire.va, &traffic, 10, 10);
	rt_wire_check(&wire, 10, 13);
	rt_ring_wait(wire.fixture.ring, 10);

	/* Nothing is. */
	wire.shape.inject[0] = 0;
	RT_EQUAL(rt_cluster_set(&wire.shape), 0);
	RT_CHECK(rt_inject_put(&wire.injector, vc, bytes, len), "no room");
	RT_EQUAL(rt_inject_kick(&wire.injector, 0), -EPERM);
	RT_EQUAL(wire.injector.index->failed, 13);

	/* Both are; the waiting packets leave now. */
	wire.shape.inject[0] = wire.va;
	wire.shape.inject[1] = vc;
	RT_EQUAL(rt_cluster_set(&wire.shape), 0);
	RT_EQUAL(rt_inject_kick(&wire.injector, 0), 1);
	rt_wire_check(&wire, 11, 13);
	rt_ring_wait(wire.fixture.ring, 11);
	/* Which one is 0 now? */
	rt_inject(&wire.injector, 0, &traffic, 0, 1);
	rt_wire_check(&wire, 11, 14);
	rt_wire_close(&wire);

	/* Totals are the queue's, the index page is the next consumer's own. */
	rt_queue_open(&wire.queue, wire.fixture.cluster, 0);
	rt_injector_open(&wire.injector, &wire.queue);
	RT_EQUAL(wire.injector.index->sent, 0);
	RT_EQUAL(wire.injector.data[8], 0);
	rt_wire_close(&wire);
}

static void rt_take_inject(const struct rt_answer *answer, void *arg)
{
	*(u32 *)arg = rt_answer_u32(answer, RINGCAP_A_INJECT);
}

/* The last interface that consumers of @cluster may send out of; 0 = none. */
static u32 rt_last_inject(const char *cluster)
{
	static struct rt_message message;
	u32 ifindex = 0;

	rt_message_init(&message, RINGCAP_CMD_CLUSTER_GET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, cluster);
	RT_EQUAL(rt_call(&message, rt_take_inject, &ifindex), 0);
	return ifindex;
}

static int rt_grant_seventeen(const char *cluster)
{
	static struct rt_message message;
	u32 i;

	rt_message_init(&message, RINGCAP_CMD_CLUSTER_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, cluster);
	for (i = 0; i <= RINGCAP_INJECT_MAX; i++)
		rt_message_put_u32(&message, RINGCAP_A_INJECT, i + 1);
	return rt_call(&message, NULL, NULL);
}

/* A refusal has its reason and no effect. */
RT_CASE(transmit_grant_refusals)
{
	struct rt_cluster shape = {};
	struct rt_fixture fixture;
	u64 digest;

	rt_fixture_open(&fixture, &shape);
	shape.inject[0] = rt_ifindex("va");
	shape.inject[1] = rt_ifindex("vb");
	RT_EQUAL(rt_cluster_set(&shape), 0);
	RT_EQUAL(rt_last_inject(fixture.cluster), rt_ifindex("vb"));
	digest = rt_control_digest();
	shape.inject[1] = 4711;
	RT_EQUAL(rt_cluster_set(&shape), -ENODEV);
	RT_CHECK(strstr(rt_reason, "no interface"), "%s", rt_reason);
	shape.inject[1] = shape.inject[0];
	RT_EQUAL(rt_cluster_set(&shape), -EINVAL);
	RT_CHECK(strstr(rt_reason, "named twice"), "%s", rt_reason);
	RT_EQUAL(rt_grant_seventeen(fixture.cluster), -EINVAL);
	RT_CHECK(strstr(rt_reason, "at most 16"), "%s", rt_reason);
	RT_EQUAL(rt_control_digest(), digest);
	RT_EQUAL(rt_last_inject(fixture.cluster), rt_ifindex("vb"));
}

/* ---- what is refused packet by packet ---- */

struct rt_length {
	u32 len;
	u16 tpid;
	bool sent;
};

RT_CASE(transmit_lengths)
{
	static const struct rt_length lengths[] = {
		{ 0, 0, false }, { 1, 0, false }, { 13, 0, false }, { 14, 0, true }, { 60, 0, true },
		{ 19, 0x8100, false }, { 19, 0x88a8, false }, { 20, 0x8100, true },
		{ RT_MTU + 14, 0, true }, { RT_MTU + 15, 0, false }, { RT_MTU + 18, 0, false }, { RT_MTU + 18, 0x8100, true },
		{ RT_MTU + 18, 0x88a8, true }, { RT_MTU + 19, 0x8100, false }, { 4096, 0, false }, { 9000, 0, false },
		{ 65536 + 18, 0, false }, { 65536 + 19, 0, false }, { 500000, 0, false },
	};
	static u8 bytes[500000];
	struct rt_wire wire;
	u32 i, sent = 0, n = sizeof(lengths) / sizeof(lengths[0]);

	rt_wire_open(&wire);
	for (i = 0; i < n; i++) {
		bytes[12] = (u8)(lengths[i].tpid >> 8);
		bytes[13] = (u8)lengths[i].tpid;
		RT_CHECK(rt_inject_put(&wire.injector, wire.va, bytes, lengths[i].len), "no room");
		RT_EQUAL(rt_inject_kick(&wire.injector, 0), 1);
		sent += lengths[i].sent;
		RT_CHECK(wire.injector.index->sent == sent, "%u bytes, tag %#x: sent %llu", lengths[i].len, lengths[i].tpid,
			 (unsigned long long)wire.injector.index->sent);
	}
	rt_wire_check(&wire, sent, n - sent);
	rt_wire_close(&wire);
}

/* Frames of 9000 bytes, in pieces of a page. */
RT_CASE(transmit_jumbo)
{
	struct rt_traffic traffic = { .flows = 5, .min_len = 4000, .max_len = 9000 };
	struct rt_receiver receiver;
	struct rt_wire wire;

	rt_wire_open(&wire);
	rt_ip("link set va mtu 9000");
	rt_ip("link set vb mtu 9000");
	rt_receiver_init(&receiver, &traffic, wire.fixture.ifindex, 500);
	rt_wire_exchange(&wire, &traffic, 500, &receiver);
	rt_wire_check(&wire, 500, 0);
	rt_wire_close(&wire);
}

RT_CASE(transmit_device_down)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_receiver receiver;
	struct rt_wire wire;

	rt_wire_open(&wire);
	RT_EQUAL(rt_link_set_up("va", false), 0);
	rt_inject(&wire.injector, wire.va, &traffic, 0, 100);
	rt_wire_check(&wire, 0, 100);
	RT_EQUAL(rt_link_set_up("va", true), 0);
	rt_receiver_init(&receiver, &traffic, wire.fixture.ifindex, 100);
	rt_wire_exchange(&wire, &traffic, 100, &receiver);
	rt_wire_check(&wire, 100, 100);
	rt_wire_close(&wire);
}

/* The successor of a deleted interface inherits nothing, even with its index. */
RT_CASE(transmit_device_gone)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_wire wire;
	u32 round;

	rt_wire_open(&wire);
	for (round = 0; round < 3; round++) {
		rt_inject(&wire.injector, wire.va, &traffic, 0, 10);
		rt_link_delete("va");
		RT_EQUAL(rt_last_inject(wire.fixture.cluster), 0);
		rt_inject(&wire.injector, wire.va, &traffic, 0, 10);
		rt_ip("link add va index %u type veth peer name vb", wire.va);
		rt_ip("link set va up");
		rt_ip("link set vb up");
		RT_EQUAL(rt_ifindex("va"), wire.va);
		rt_inject(&wire.injector, wire.va, &traffic, 0, 10);
		rt_wire_check(&wire, 10 * (round + 1), 20 * (round + 1));
		RT_EQUAL(rt_cluster_set(&wire.shape), 0);
		RT_EQUAL(rt_last_inject(wire.fixture.cluster), wire.va);
	}
	rt_wire_close(&wire);
}

/* An interface that moves to another namespace is gone as well. It is no longer granted when it comes back. */
RT_CASE(transmit_device_moved)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_wire wire;
	int here, there;

	rt_wire_open(&wire);
	here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	RT_CHECK(here >= 0 && !unshare(CLONE_NEWNET), "%m");
	there = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	RT_CHECK(there >= 0 && !setns(here, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_move("va", there), 0);
	RT_CHECK(!setns(there, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_set_up("va", true), 0);
	rt_inject(&wire.injector, wire.va, &traffic, 0, 10);
	RT_EQUAL(rt_link_move("va", here), 0);
	RT_CHECK(!setns(here, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_set_up("va", true), 0);
	rt_inject(&wire.injector, wire.va, &traffic, 0, 10);
	rt_wire_check(&wire, 0, 20);
	rt_wire_close(&wire);
}

/* A cluster is not deleted while a consumer that may send is attached, and leaves no trace when it is deleted. */
RT_CASE(transmit_cluster_gone)
{
	struct rt_wire wire;

	rt_wire_open(&wire);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, wire.fixture.ring), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, wire.fixture.cluster), -EBUSY);
	rt_wire_close(&wire);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, wire.fixture.cluster), 0);
}

/* The stack drops a packet whose tag is cut off before a tap sees it. So it is not sent, and counted as failed. */
RT_CASE(transmit_cut_tag)
{
	const u16 types[] = { ETH_P_8021Q, ETH_P_8021AD };
	u8 bytes[ETH_HLEN + 6] = {};
	struct rt_wire wire;
	u32 i, len;

	rt_wire_open(&wire);
	for (i = 0; i < 2; i++) {
		bytes[12] = types[i] >> 8;
		bytes[13] = types[i] & 0xff;
		for (len = ETH_HLEN; len <= sizeof(bytes); len++)
			RT_CHECK(rt_inject_put(&wire.injector, wire.va, bytes, len), "no room");
	}
	RT_EQUAL(rt_inject_kick(&wire.injector, 0), 14);
	rt_wire_check(&wire, 2, 12);
	rt_ring_wait(wire.fixture.ring, 2);
	rt_wire_close(&wire);
}

/* ---- hostile memory ---- */

/* Invalid positions and slots are rejected, and nothing is skipped. */
RT_CASE(transmit_nonsense)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct ringcap_tx_slot *slot;
	struct rt_receiver receiver;
	struct rt_wire wire;
	u8 bytes[RT_PACKET_MAX];
	u32 i;

	rt_wire_open(&wire);
	slot = (void *)wire.injector.data;
	const u64 produced[] = { 1, 7, 15, RINGCAP_TX_SIZE + 1, RINGCAP_TX_SIZE * 2, UINT64_MAX, UINT64_MAX / 2, 1ULL << 32 };
	const u32 lens[] = { RINGCAP_TX_SIZE - 7, RINGCAP_TX_SIZE, RINGCAP_TX_WRAP - 1, RINGCAP_TX_WRAP - 7, 0x80000000, 100 };

	for (i = 0; i < sizeof(produced) / sizeof(produced[0]); i++) {
		slot->len = 60;
		wire.injector.index->produced = produced[i];
		RT_EQUAL(rt_inject_kick(&wire.injector, 0), -EINVAL);
	}
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		slot->len = lens[i];
		wire.injector.index->produced = 64;
		RT_EQUAL(rt_inject_kick(&wire.injector, 0), -EINVAL);
	}
	/* What the kernel tells is not what it knows. */
	wire.injector.index->consumed = 12345;
	wire.injector.index->sent = UINT64_MAX;
	wire.injector.index->produced = 0;
	RT_EQUAL(rt_inject_kick(&wire.injector, 0), 0);
	rt_wire_check(&wire, 0, 0);
	rt_receiver_init(&receiver, &traffic, wire.fixture.ifindex, 101);
	rt_wire_exchange(&wire, &traffic, 100, &receiver);
	/* Those before nonsense are taken. */
	RT_CHECK(rt_inject_put(&wire.injector, wire.va, bytes, rt_packet_build(&traffic, 100, bytes)), "no room");
	wire.injector.index->produced += 4;
	RT_EQUAL(rt_inject_kick(&wire.injector, 0), 1);
	RT_EQUAL(rt_inject_kick(&wire.injector, 0), -EINVAL);
	wire.injector.index->produced -= 4;
	rt_wire_check(&wire, 101, 0);
	rt_wire_close(&wire);
}

struct rt_scribbler {
	struct rt_wire *wire;
	int stop;
};

/* Writes what is nearly right, and what is not, all over the areas. */
static void *rt_scribble_area(void *arg)
{
	struct rt_scribbler *scribbler = arg;
	struct rt_injector *injector = &scribbler->wire->injector;
	u64 seed = 7;
	u32 at, pick;

	while (!__atomic_load_n(&scribbler->stop, __ATOMIC_RELAXED)) {
		volatile struct ringcap_tx_slot *slot;

		at = rt_random(&seed) % (RINGCAP_TX_SIZE / 8) * 8;
		slot = (void *)(injector->data + at);
		pick = rt_random(&seed) % 256;
		slot->len = !pick ? RINGCAP_TX_WRAP : pick == 1 ? rt_random(&seed) : rt_random(&seed) % 2000;
		slot->ifindex = pick & 1 ? scribbler->wire->va : rt_random(&seed);
		if (pick == 2)
			injector->index->produced += rt_random(&seed) % 20000 * 8;
		if (pick == 3)
			injector->index->produced = rt_random(&seed);
		if (pick == 4)
			injector->index->produced = injector->index->consumed;
	}
	return NULL;
}

static u64 rt_wire_sent(const struct rt_wire *wire)
{
	struct rt_queue_counts counts;

	rt_queue_counts(wire->fixture.cluster, 0, &counts);
	return counts.tx_sent;
}

static void rt_inject_good(struct rt_injector *injector, u32 ifindex, u64 at)
{
	u32 len = RINGCAP_TX_SIZE - at % RINGCAP_TX_SIZE < 64 ? RINGCAP_TX_WRAP : 56;

	*(struct ringcap_tx_slot *)(injector->data + at % RINGCAP_TX_SIZE) = (struct ringcap_tx_slot){ len, ifindex };
}

/*
 * Writes to the area while the kernel reads it do no harm, and packets that the kernel reports as sent have been sent.
 */
RT_CASE(transmit_hostile)
{
	u64 until, deadline, taken = 0;
	struct rt_scribbler scribbler = {};
	struct rt_queue_counts counts;
	pthread_t thread;
	struct rt_wire wire;
	u32 calls = 0, at;
	int n;

	rt_wire_open(&wire);
	for (at = 0; at < RINGCAP_TX_SIZE; at += 64)
		rt_inject_good(&wire.injector, wire.va, at);
	scribbler.wire = &wire;
	RT_CHECK(!pthread_create(&thread, NULL, rt_scribble_area, &scribbler), "no thread");
	until = rt_now() + 3000000000ULL;
	deadline = rt_now() + RT_PATIENCE_NS;
	while (rt_now() < until || (!rt_wire_sent(&wire) && rt_now() < deadline)) {
		/* A good slot at first, or it would be refused and refused. */
		rt_inject_good(&wire.injector, wire.va, wire.injector.index->consumed);
		wire.injector.index->produced = wire.injector.index->consumed + 4096;
		n = rt_inject_kick(&wire.injector, 50);
		RT_CHECK(n >= 0 || n == -EINVAL, "%s", strerror(-n));
		taken += n > 0 ? (u64)n : 0;
		rt_queue_read(&wire.queue, NULL, NULL);
		calls++;
	}
	__atomic_store_n(&scribbler.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	rt_queue_counts(wire.fixture.cluster, 0, &counts);
	printf("# %u calls, %llu slots: %llu sent, %llu failed\n", calls, (unsigned long long)taken,
	       (unsigned long long)counts.tx_sent, (unsigned long long)counts.tx_failed);
	RT_EQUAL(counts.tx_sent + counts.tx_failed, taken);
	RT_CHECK(counts.tx_sent > 0, "nothing was sent");
	rt_ring_wait(wire.fixture.ring, counts.tx_sent);
	rt_wire_close(&wire);
}

/* A reset leaves nothing of what a consumer wrote to the next one. */
RT_CASE(transmit_reset)
{
	struct rt_wire wire;
	u32 i;

	rt_wire_open(&wire);
	memset(wire.injector.data, 0xaa, RINGCAP_TX_SIZE);
	memset(wire.injector.index, 0xaa, 4096);
	rt_wire_close(&wire);
	RT_EQUAL(rt_queue_reset(wire.fixture.cluster, 0), 0);
	rt_queue_open(&wire.queue, wire.fixture.cluster, 0);
	rt_injector_open(&wire.injector, &wire.queue);
	for (i = 0; i < RINGCAP_TX_SIZE; i++)
		RT_EQUAL(wire.injector.data[i], 0);
	for (i = 0; i < 4096; i++)
		RT_EQUAL(((u8 *)wire.injector.index)[i], 0);
	rt_wire_close(&wire);
}

/* ---- several threads, signals, memory ---- */

struct rt_kicker {
	struct rt_wire *wire;
	const struct rt_traffic *traffic;
	pthread_mutex_t *lock;
	u32 *next, count, cpu;
	u64 *taken;
};

/* Writes under a lock, as the protocol wants, but kicks whenever it likes. */
static void *rt_kick_on(void *arg)
{
	struct rt_kicker *kicker = arg;
	static __thread u8 bytes[RT_PACKET_MAX];
	bool more = true;
	int n;

	rt_pin(kicker->cpu);
	while (more) {
		pthread_mutex_lock(kicker->lock);
		more = *kicker->next < kicker->count;
		if (more && rt_inject_put(&kicker->wire->injector, kicker->wire->va, bytes,
					  rt_packet_build(kicker->traffic, *kicker->next, bytes)))
			++*kicker->next;
		pthread_mutex_unlock(kicker->lock);
		n = rt_inject_kick(&kicker->wire->injector, 0);
		RT_CHECK(n >= 0, "%s", strerror(-n));
		__atomic_fetch_add(kicker->taken, (u64)n, __ATOMIC_RELAXED);
	}
	return NULL;
}

RT_CASE(transmit_threads)
{
	struct rt_traffic traffic = { .flows = 5, .max_len = 500 };
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const u32 count = rt_scaled(2000);
	struct rt_kicker kickers[2];
	struct rt_receiver receiver;
	pthread_t threads[2];
	struct rt_wire wire;
	u32 i, next = 0;
	u64 taken = 0;

	rt_wire_open(&wire);
	rt_receiver_init(&receiver, &traffic, wire.fixture.ifindex, count);
	for (i = 0; i < 2; i++) {
		kickers[i] = (struct rt_kicker){ &wire, &traffic, &lock, &next, count, i, &taken };
		RT_CHECK(!pthread_create(&threads[i], NULL, rt_kick_on, &kickers[i]), "no thread");
	}
	rt_wire_drain(&wire, &receiver, count);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	RT_EQUAL(taken, count);
	rt_wire_check(&wire, count, 0);
	rt_wire_close(&wire);
}

/* Some packets were sent and some were not, however seldom the sender gets a turn. */
static bool rt_both_happened(const struct rt_wire *wire)
{
	const struct ringcap_tx_index *index = wire->injector.index;

	return __atomic_load_n(&index->sent, __ATOMIC_RELAXED) && __atomic_load_n(&index->failed, __ATOMIC_RELAXED);
}

/* Grants change, and the interface goes and comes, while a thread sends. */
static void *rt_grant_and_revoke(void *arg)
{
	struct rt_wire *wire = arg;
	struct rt_cluster shape = wire->shape;
	u64 deadline = rt_now() + RT_PATIENCE_NS;
	u32 i;

	for (i = 0; i < rt_scaled(60) || (!rt_both_happened(wire) && rt_now() < deadline); i++) {
		shape.inject[0] = i % 2 ? wire->va : 0;
		RT_EQUAL(rt_cluster_set(&shape), 0);
		RT_EQUAL(rt_link_set_up("va", i % 4 < 2), 0);
		if (i % 20 == 19) {
			rt_link_delete("va");
			rt_veth_create("va", "vb");
			__atomic_store_n(&wire->va, rt_ifindex("va"), __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

RT_CASE(transmit_churn)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_queue_counts counts;
	u8 bytes[RT_PACKET_MAX];
	u64 taken = 0, put = 0;
	pthread_t thread;
	struct rt_wire wire;
	int n;

	rt_wire_open(&wire);
	RT_CHECK(!pthread_create(&thread, NULL, rt_grant_and_revoke, &wire), "no thread");
	while (pthread_tryjoin_np(thread, NULL)) {
		put += rt_inject_put(&wire.injector, __atomic_load_n(&wire.va, __ATOMIC_RELAXED), bytes,
				     rt_packet_build(&traffic, 0, bytes));
		n = rt_inject_kick(&wire.injector, 0);
		RT_CHECK(n >= 0 || n == -EPERM, "%s", strerror(-n));
		taken += n > 0 ? (u64)n : 0;
	}
	rt_queue_counts(wire.fixture.cluster, 0, &counts);
	printf("# %llu sent, %llu failed\n", (unsigned long long)counts.tx_sent, (unsigned long long)counts.tx_failed);
	RT_EQUAL(counts.tx_sent + counts.tx_failed, taken);
	RT_CHECK(counts.tx_sent && counts.tx_failed, "only one of them happened");
	RT_CHECK(taken <= put, "%llu taken of %llu", (unsigned long long)taken, (unsigned long long)put);
	rt_wire_close(&wire);
}

/* Allocations that fail cost packets, which are counted, and nothing else. */
RT_CASE(transmit_no_memory)
{
	struct rt_traffic traffic = { .flows = 5, .min_len = 5000, .max_len = 8000 };
	struct rt_queue_counts counts;
	u8 bytes[RT_PACKET_MAX];
	struct rt_wire wire;
	u32 n;

	rt_faults_open();
	rt_wire_open(&wire);
	rt_ip("link set va mtu 9000");
	rt_ip("link set vb mtu 9000");
	for (n = 1; n <= 60; n++) {
		RT_CHECK(rt_inject_put(&wire.injector, wire.va, bytes, rt_packet_build(&traffic, n, bytes)), "no room");
		rt_fail_nth(n % 15 + 1);
		RT_EQUAL(rt_inject_kick(&wire.injector, 0), 1);
		rt_fail_nth(0);
	}
	rt_queue_counts(wire.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.tx_sent + counts.tx_failed, 60);
	RT_CHECK(counts.tx_sent && counts.tx_failed, "%llu sent, %llu failed", (unsigned long long)counts.tx_sent,
		 (unsigned long long)counts.tx_failed);
	rt_wire_close(&wire);
}
