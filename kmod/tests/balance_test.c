// SPDX-License-Identifier: GPL-2.0-only
/* Balance types: each packet is at least in the queues that the classifier computes in user space. */
#define _GNU_SOURCE
#include "fixture.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include "frame.h"

#define RT_FLOWS	100
#define RT_ROUNDS	8	/* packets of each flow, in turns of both directions */
#define RT_PACKETS	(RT_FLOWS * RT_ROUNDS)

static const u8 rt_keys[5][RINGCAP_KEY_LEN] = { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 }, { 10, 11, 12 }, { 13, 14, 15 } };

static struct rt_ends rt_flow_ends(u32 flow)
{
	return (struct rt_ends){ 0x0a000001 + flow % 13, 0x0a010001 + flow % 5, (u16)(20000 + flow), (u16)(50 + flow % 3) };
}

/* TCP, UDP and ICMP, over IPv4 and IPv6, and what is not IP. */
static void rt_build(struct rt_frame *frame, u32 number)
{
	u32 flow = number % RT_FLOWS, kind = flow % 7;
	struct rt_ends ends = rt_flow_ends(flow);
	u8 proto = kind % 3 == 0 ? 6 : kind % 3 == 1 ? 17 : 1;

	if (number / RT_FLOWS % 2)
		ends = rt_ends_reverse(&ends);
	rt_frame_begin(frame, number, 64);
	if (kind == 6) {
		rt_frame_push_ethernet(frame, 0x88b5);
		return;
	}
	if (proto == 6)
		rt_frame_push_tcp(frame, &ends);
	else if (proto == 17)
		rt_frame_push_udp(frame, &ends);
	else
		rt_frame_push(frame, "\x08\x00\x00\x00\x00\x01\x00\x01", 8);
	if (kind < 3)
		rt_frame_push_ipv4(frame, &ends, proto);
	else
		rt_frame_push_ipv6(frame, &ends, proto);
	rt_frame_push_ethernet(frame, kind < 3 ? 0x0800 : 0x86dd);
}

/* Checks that all of a ring's packets are in a cluster's account, @copies of them twice. */
static void rt_check_cluster(const char *name, u64 passed, u64 copies, u64 spread)
{
	struct rt_queue_counts counts;
	u64 duplicated, went;

	rt_cluster_counts(name, &counts);
	rt_cluster_balance(name, &duplicated, &went);
	RT_EQUAL(duplicated, copies);
	RT_EQUAL(went, spread);
	RT_EQUAL(counts.delivered + counts.dropped[0] + counts.dropped[1] + counts.dropped[2], passed + duplicated);
}

static u64 rt_copies(const struct rt_model *model)
{
	u64 copies = 0;
	u32 number;

	for (number = 0; number < model->last; number++)
		copies += __builtin_popcount(model->wanted[number]) - 1;
	return copies;
}

/* Five clusters with balance types and keys of their own get each packet from one ring. */
RT_CASE(balance_several_clusters)
{
	static const u32 balances[5] = { RINGCAP_BALANCE_FLOW, RINGCAP_BALANCE_TCP_FIVE_TUPLE, RINGCAP_BALANCE_BOTH_ENDS,
					 RINGCAP_BALANCE_RX_QUEUE, RINGCAP_BALANCE_FOUR_TUPLE };
	static const u32 queues[5] = { 5, 4, 7, 3, 1 };
	struct rt_cluster clusters[5];
	static struct rt_model models[5];
	struct rt_fixture fixture;
	struct rt_ring ring = {};
	struct rt_frame frame;
	char names[5][32];
	u32 i, number;

	rt_fixture_open_devices(&fixture);
	for (i = 0; i < 5; i++) {
		snprintf(names[i], sizeof(names[i]), "c%d-%u", getpid(), i);
		clusters[i] = (struct rt_cluster){ .name = names[i], .queues = queues[i], .balance = balances[i],
						   .lane_size = RT_LANE_SIZE, .key = rt_keys[i], .metadata = i != 2 };
		rt_model_open(&models[i], &clusters[i], RT_PACKETS);
		ring.outputs[i] = names[i];
	}
	RT_EQUAL(rt_fixture_change(&fixture, &ring), 0);
	for (number = 0; number < RT_PACKETS; number++) {
		rt_build(&frame, number);
		rt_frame_send(fixture.sender, &frame);
	}
	rt_ring_wait(fixture.ring, RT_PACKETS);
	for (i = 0; i < 5; i++) {
		RT_EVENTUALLY((rt_model_read(&models[i]), models[i].count >= RT_PACKETS + rt_copies(&models[i])), 10000);
		rt_model_check(&models[i]);
		rt_check_cluster(names[i], RT_PACKETS, rt_copies(&models[i]), 0);
		RT_CHECK(i != 2 || rt_copies(&models[i]) > RT_PACKETS / 2, "hardly any copies");
		rt_model_close(&models[i]);
	}
}

/* Both directions of a flow, whichever the balance type. */
static void rt_try_directions(u32 balance)
{
	struct rt_cluster cluster = { .queues = 6, .balance = balance, .lane_size = RT_LANE_SIZE, .key = rt_keys[0] };
	static struct rt_model model;
	struct rt_fixture fixture;
	struct rt_frame frame;
	u32 number, used = 0;

	rt_fixture_open_devices(&fixture);
	cluster.name = fixture.cluster;
	rt_model_open(&model, &cluster, RT_PACKETS);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
	for (number = 0; number < RT_PACKETS; number++) {
		rt_build(&frame, number);
		rt_frame_send(fixture.sender, &frame);
	}
	rt_ring_wait(fixture.ring, RT_PACKETS);
	RT_EVENTUALLY((rt_model_read(&model), model.count >= RT_PACKETS + rt_copies(&model)), 10000);
	rt_model_check(&model);
	for (number = 0; number < RT_PACKETS; number++) {
		used |= model.seen[number];
		RT_CHECK(model.seen[number] == model.seen[number % RT_FLOWS], "packet %u parts from its flow", number);
	}
	RT_EQUAL(used, 0x3f);
	rt_check_cluster(cluster.name, RT_PACKETS, rt_copies(&model), 0);
	rt_model_close(&model);
}

RT_CASE(balance_tcp_five_tuple)
{
	rt_try_directions(RINGCAP_BALANCE_TCP_FIVE_TUPLE);
}

RT_CASE(balance_both_ends)
{
	rt_try_directions(RINGCAP_BALANCE_BOTH_ENDS);
}

/* One queue of a tap device with several. */
static int rt_tap_open(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		rt_skip("no tap devices here: %m");
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	RT_CHECK(!ioctl(fd, TUNSETIFF, &request), "%s: %m", name);
	return fd;
}

/* Four receive queues over three queues, by their numbers. */
RT_CASE(balance_rx_queue)
{
	struct rt_cluster cluster = { .queues = 3, .balance = RINGCAP_BALANCE_RX_QUEUE, .lane_size = RT_LANE_SIZE };
	struct rt_ring ring = { .taps = { { .direction = RINGCAP_DIRECTION_RX } } };
	static struct rt_model model;
	struct rt_fixture fixture;
	struct rt_frame frame;
	u32 number, i;
	int taps[4];

	rt_fixture_open_devices(&fixture);
	for (i = 0; i < 4; i++)
		taps[i] = rt_tap_open("tapq");
	rt_ip("link set tapq up");
	ring.taps[0].ifindex = rt_ifindex("tapq");
	cluster.name = fixture.cluster;
	rt_model_open(&model, &cluster, RT_PACKETS);
	RT_EQUAL(rt_fixture_change(&fixture, &ring), 0);
	for (number = 0; number < RT_PACKETS; number++) {
		rt_build(&frame, number);
		RT_EQUAL(write(taps[number % 4], frame.data, frame.len), frame.len);
	}
	RT_EVENTUALLY((rt_model_read(&model), model.count >= RT_PACKETS), 10000);
	rt_model_check(&model);
	for (number = 0; number < RT_PACKETS; number++)
		RT_EQUAL(model.seen[number], 1U << number % 4 % 3);
	rt_check_cluster(cluster.name, RT_PACKETS, 0, 0);
	rt_model_close(&model);
}

/* Several rings feed one cluster: a flow that all of them see is in one queue. */
RT_CASE(balance_several_rings)
{
	struct rt_cluster cluster = { .queues = 4, .lane_size = RT_LANE_SIZE, .key = rt_keys[0] };
	static struct rt_model model;
	struct rt_ring_counts counts;
	struct rt_fixture fixture;
	struct rt_frame frame;
	u32 number, i;
	u64 passed = 0;
	int sender[3];
	char name[32];

	rt_fixture_open_devices(&fixture);
	cluster.name = fixture.cluster;
	rt_model_open(&model, &cluster, RT_PACKETS);
	for (i = 0; i < 3; i++) {
		struct rt_ring ring = { .name = name, .outputs = { fixture.cluster } };
		char a[8], b[8];

		snprintf(name, sizeof(name), "r%d-%u", getpid(), i);
		snprintf(a, sizeof(a), "wa%u", i);
		snprintf(b, sizeof(b), "wb%u", i);
		rt_veth_create(a, b);
		sender[i] = rt_sender_open(a);
		ring.taps[0] = (struct rt_tap){ rt_ifindex(b), RINGCAP_DIRECTION_RX };
		RT_EQUAL(rt_ring_set(&ring), 0);
	}
	for (number = 0; number < RT_PACKETS; number++) {
		rt_build(&frame, number);
		rt_frame_send(sender[number / RT_FLOWS % 3], &frame);
	}
	RT_EVENTUALLY((rt_model_read(&model), model.count >= RT_PACKETS), 10000);
	rt_model_check(&model);
	for (number = 0; number < RT_PACKETS; number++)
		RT_EQUAL(model.seen[number], model.seen[number % RT_FLOWS]);
	rt_settle();
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "r%d-%u", getpid(), i);
		rt_ring_counts(name, &counts);
		passed += counts.passed;
	}
	RT_EQUAL(passed, RT_PACKETS);
	rt_check_cluster(cluster.name, passed, 0, 0);
	rt_model_close(&model);
}

/* The balance type is changed under traffic, with consumers: every packet is where the old or the new type puts it. */
RT_CASE(balance_changed_under_traffic)
{
	struct rt_cluster cluster = { .queues = 4, .lane_size = RT_LANE_SIZE, .key = rt_keys[0] };
	static struct rt_model model;
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	struct rt_frame frame;
	u64 duplicated, spread;
	u32 number;

	rt_fixture_open_devices(&fixture);
	cluster.name = fixture.cluster;
	rt_model_open(&model, &cluster, RT_PACKETS);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
	for (number = 0; number < RT_PACKETS; number++) {
		if (number % 50 == 0) {
			cluster.balance = number / 50 % __RINGCAP_BALANCE_MAX;
			cluster.inner = number / 50 % 2;
			cluster.fragments = number / 50 % 3 == 0;
			cluster.when_full = number / 50 % 5 == 0;
			RT_EQUAL(rt_cluster_set(&cluster), 0);
		}
		rt_build(&frame, number);
		rt_frame_send(fixture.sender, &frame);
	}
	rt_ring_wait(fixture.ring, RT_PACKETS);
	rt_cluster_counts(cluster.name, &counts);
	rt_cluster_balance(cluster.name, &duplicated, &spread);
	RT_CHECK(duplicated > 0, "BOTH_ENDS made no copies");
	RT_EQUAL(spread, 0);
	RT_EQUAL(counts.delivered, RT_PACKETS + duplicated);
	rt_model_close(&model);
}
