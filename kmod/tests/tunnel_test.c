// SPDX-License-Identifier: GPL-2.0-only
/* Balance by the packets in tunnels, for both of their directions, whatever is around them. */
#define _GNU_SOURCE
#include "fixture.h"

#include <arpa/inet.h>

#include "frame.h"

#define RT_FLOWS	40
#define RT_QUEUES	5

static const u8 rt_key[RINGCAP_KEY_LEN] = { 1, 4, 1, 4, 2, 1, 3, 5, 6, 2, 3, 7 };

/* Puts a tunnel's packet around @frame, which begins at the IP header; @back: as the tunnel's other end sends it. */
typedef void (*rt_wrap_fn)(struct rt_frame *frame, bool back);

/* The tunnel's ends are other ones for each direction: what is around must make no difference. */
static struct rt_ends rt_outer(bool back, u16 port)
{
	return back ? (struct rt_ends){ 0xcb007109, 0xcb007101, 61000, port } : (struct rt_ends){ 0xcb007101, 0xcb007102, 50000, port };
}

static void rt_wrap_udp(struct rt_frame *frame, bool back, u16 port)
{
	struct rt_ends ends = rt_outer(back, port);

	rt_frame_push_udp(frame, &ends);
	rt_frame_push_ipv4(frame, &ends, 17);
	rt_frame_push_ethernet(frame, 0x0800);
}

static void rt_wrap_ip(struct rt_frame *frame, bool back, u8 proto)
{
	struct rt_ends ends = rt_outer(back, 0);

	rt_frame_push_ipv6(frame, &ends, proto);
	rt_frame_push_ethernet(frame, 0x86dd);
}

static void rt_wrap_ipip(struct rt_frame *frame, bool back)
{
	rt_wrap_ip(frame, back, 4);
}

static void rt_wrap_gre(struct rt_frame *frame, bool back)
{
	rt_frame_push(frame, back ? "\x20\x00\x08\x00\x00\x00\x00\x07" : "\x20\x00\x08\x00\x00\x00\x00\x08", 8);
	rt_wrap_ip(frame, back, 47);
}

static void rt_wrap_erspan(struct rt_frame *frame, bool back)
{
	rt_frame_push_ethernet(frame, 0x0800);
	rt_frame_push(frame, "\x10\x64\xe0\x05\x00\x00\x00\x01", 8);
	rt_frame_push(frame, back ? "\x10\x00\x88\xbe\x00\x00\x00\x09" : "\x10\x00\x88\xbe\x00\x00\x10\x09", 8);
	rt_wrap_ip(frame, back, 47);
}

static void rt_wrap_vxlan(struct rt_frame *frame, bool back)
{
	rt_frame_push_ethernet(frame, 0x0800);
	rt_frame_push(frame, "\x08\x00\x00\x00\x00\x12\x34\x00", 8);
	rt_wrap_udp(frame, back, 4789);
}

/* With a tag inside. */
static void rt_wrap_vxlan_vlan(struct rt_frame *frame, bool back)
{
	rt_frame_push(frame, "\x00\x2a\x08\x00", 4);
	rt_frame_push_ethernet(frame, 0x8100);
	rt_frame_push(frame, "\x08\x00\x00\x00\x00\x12\x34\x00", 8);
	rt_wrap_udp(frame, back, 4789);
}

static void rt_wrap_geneve(struct rt_frame *frame, bool back)
{
	rt_frame_push_ethernet(frame, 0x0800);
	rt_frame_push(frame, "\x02\x00\x65\x58\x00\x12\x34\x00\xff\xff\x80\x01\x01\x02\x03\x04", 16);
	rt_wrap_udp(frame, back, 6081);
}

static void rt_wrap_gtpu(struct rt_frame *frame, bool back)
{
	rt_frame_push(frame, "\x00\x00\x00\x85\x01\x00\x05\x00", 8);
	rt_frame_push(frame, back ? "\x34\xff\x00\x60\x00\x00\x00\x02" : "\x34\xff\x00\x60\xde\xad\xbe\xef", 8);
	rt_wrap_udp(frame, back, 2152);
}

static void rt_wrap_mpls(struct rt_frame *frame, bool back)
{
	rt_frame_push(frame, back ? "\x00\x01\x00\x40\x00\x02\x01\x40" : "\x00\x03\x00\x40\x00\x04\x01\x40", 8);
	rt_frame_push_ethernet(frame, 0x8847);
}

static void rt_wrap_gtpu_in_vxlan(struct rt_frame *frame, bool back)
{
	struct rt_ends ends = rt_outer(back, 2152);

	rt_frame_push(frame, "\x30\xff\x00\x60\xde\xad\xbe\xef", 8);
	rt_frame_push_udp(frame, &ends);
	rt_frame_push_ipv4(frame, &ends, 17);
	rt_wrap_vxlan(frame, back);
}

static const rt_wrap_fn rt_wraps[] = {
	rt_wrap_ipip, rt_wrap_gre, rt_wrap_erspan, rt_wrap_vxlan, rt_wrap_vxlan_vlan, rt_wrap_geneve, rt_wrap_gtpu, rt_wrap_mpls,
	rt_wrap_gtpu_in_vxlan,
};

#define RT_WRAPS (sizeof(rt_wraps) / sizeof(rt_wraps[0]))

static struct rt_ends rt_inner_ends(u32 flow)
{
	return (struct rt_ends){ 0xc0a80001 + flow, 0x08080808, (u16)(40000 + flow), 443 };
}

static void rt_build_inner(struct rt_frame *frame, u32 number, u32 flow, bool back)
{
	struct rt_ends ends = rt_inner_ends(flow);

	if (back)
		ends = rt_ends_reverse(&ends);
	rt_frame_begin(frame, number, 100);
	rt_frame_push_tcp(frame, &ends);
	rt_frame_push_ipv4(frame, &ends, 6);
}

/* Packet @number: of a flow, a direction and a tunnel. */
static void rt_build_tunnel(struct rt_frame *frame, u32 number)
{
	u32 flow = number % RT_FLOWS, wrap = number / RT_FLOWS / 2;
	bool back = number / RT_FLOWS % 2;

	rt_build_inner(frame, number, flow, back);
	rt_wraps[wrap](frame, back);
}

/* Two clusters of one ring: one by what is inside, one by what is around it. */
static void rt_try_tunnels(u32 balance)
{
	static const u32 last = 2 * RT_FLOWS * RT_WRAPS;
	struct rt_cluster clusters[2] = {
		{ .queues = RT_QUEUES, .balance = balance, .inner = 1, .key = rt_key, .lane_size = RT_LANE_SIZE },
		{ .queues = RT_QUEUES, .balance = balance, .key = rt_key, .lane_size = RT_LANE_SIZE },
	};
	static struct rt_model models[2];
	struct rt_fixture fixture;
	struct rt_ring ring = {};
	struct rt_queue_counts counts;
	struct rt_frame frame;
	char names[2][32];
	u32 i, number, used = 0;

	rt_fixture_open_devices(&fixture);
	for (i = 0; i < 2; i++) {
		snprintf(names[i], sizeof(names[i]), "c%d-%u", getpid(), i);
		clusters[i].name = names[i];
		rt_model_open(&models[i], &clusters[i], last);
		ring.outputs[i] = names[i];
	}
	RT_EQUAL(rt_fixture_change(&fixture, &ring), 0);
	for (number = 0; number < last; number++) {
		rt_build_tunnel(&frame, number);
		rt_frame_send(fixture.sender, &frame);
	}
	rt_ring_wait(fixture.ring, last);
	for (i = 0; i < 2; i++) {
		RT_EVENTUALLY((rt_model_read(&models[i]), models[i].count >= last), 10000);
		rt_model_check(&models[i]);
		rt_cluster_counts(names[i], &counts);
		RT_EQUAL(counts.delivered, last);
	}
	for (number = 0; number < last; number++) {
		/* One VLAN, inside, is a part of FLOW. */
		if (rt_wraps[number / RT_FLOWS / 2] == rt_wrap_vxlan_vlan && balance == RINGCAP_BALANCE_FLOW)
			continue;
		used |= models[0].seen[number];
		RT_CHECK(models[0].seen[number] == models[0].seen[number % RT_FLOWS], "packet %u parts from the flow inside", number);
	}
	RT_EQUAL(used, (1U << RT_QUEUES) - 1);
	for (number = 0; number < last; number++)
		RT_CHECK(models[1].seen[number] == models[1].seen[number / RT_FLOWS * RT_FLOWS] || number / RT_FLOWS / 2 == 7,
			 "packet %u parts from its tunnel", number);
	for (i = 0; i < 2; i++)
		rt_model_close(&models[i]);
}

RT_CASE(tunnel_flow)
{
	rt_try_tunnels(RINGCAP_BALANCE_FLOW);
}

RT_CASE(tunnel_tcp_five_tuple)
{
	rt_try_tunnels(RINGCAP_BALANCE_TCP_FIVE_TUPLE);
}

RT_CASE(tunnel_two_tuple)
{
	rt_try_tunnels(RINGCAP_BALANCE_TWO_TUPLE);
}

/*
 * Fragments of a tunnel's packet, and packets that are truncated inside, go by the tunnel's own flow: all to one queue.
 */
RT_CASE(tunnel_falls_back)
{
	struct rt_cluster cluster = { .queues = RT_QUEUES, .inner = 1, .key = rt_key, .lane_size = RT_LANE_SIZE,
				      .balance = RINGCAP_BALANCE_TWO_TUPLE };
	static struct rt_model model;
	struct rt_fixture fixture;
	struct rt_frame frame;
	u32 number;

	rt_fixture_open_devices(&fixture);
	cluster.name = fixture.cluster;
	rt_model_open(&model, &cluster, RT_FLOWS * 2);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
	for (number = 0; number < RT_FLOWS * 2; number++) {
		if (number < RT_FLOWS) {
			/* The first fragment has all of the headers inside, and the others none. */
			rt_build_inner(&frame, number, number, false);
			rt_wrap_vxlan(&frame, false);
			frame.data[20] = 0x20;
			frame.data[21] = (u8)(number % 3);
		} else {
			/* Too little for the header inside. */
			rt_frame_begin(&frame, number, 12);
			rt_frame_push(&frame, "\x45\x00\x00\x30", 4);
			rt_frame_push_ethernet(&frame, 0x0800);
			rt_frame_push(&frame, "\x08\x00\x00\x00\x00\x12\x34\x00", 8);
			rt_wrap_udp(&frame, false, 4789);
		}
		rt_frame_send(fixture.sender, &frame);
	}
	RT_EVENTUALLY((rt_model_read(&model), model.count >= RT_FLOWS * 2), 10000);
	rt_model_check(&model);
	for (number = 0; number < RT_FLOWS * 2; number++)
		RT_EQUAL(model.seen[number], model.seen[0]);
	rt_model_close(&model);
}

/* The datagram is cut outside, and put together by the ring: then the flow inside counts again. */
RT_CASE(tunnel_defragmented)
{
	struct rt_cluster cluster = { .queues = RT_QUEUES, .inner = 1, .key = rt_key, .lane_size = RT_LANE_SIZE };
	static struct rt_model model;
	static struct rt_frame frame, part;
	struct rt_ring_counts counts;
	struct rt_fixture fixture;
	u32 number, from;

	rt_fixture_open_devices(&fixture);
	cluster.name = fixture.cluster;
	rt_model_open(&model, &cluster, RT_FLOWS);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .defrag = 1 }), 0);
	for (number = 0; number < RT_FLOWS; number++) {
		rt_build_inner(&frame, number, number, false);
		rt_wrap_vxlan(&frame, false);
		for (from = 34; from < frame.len; from += 96) {
			u32 len = frame.len - from < 96 ? frame.len - from : 96;
			u16 word = htons((u16)((from - 34) / 8 | (from + 96 < frame.len ? 0x2000 : 0)));
			struct rt_ends ends = rt_outer(false, 4789);

			part.data = part.room + sizeof(part.room);
			part.len = 0;
			rt_frame_push(&part, frame.data + from, len);
			rt_frame_push_ipv4(&part, &ends, 17);
			memcpy(part.data + 6, &word, 2);
			word = htons((u16)(number + 1));
			memcpy(part.data + 4, &word, 2);
			rt_frame_push_ethernet(&part, 0x0800);
			rt_frame_send(fixture.sender, &part);
		}
	}
	RT_EVENTUALLY((rt_model_read(&model), model.count >= RT_FLOWS), 10000);
	rt_model_check(&model);
	rt_settle();
	rt_ring_counts(fixture.ring, &counts);
	RT_EQUAL(counts.passed, RT_FLOWS);
	RT_EQUAL(counts.absorbed, RT_FLOWS * ((frame.len - 34 + 95) / 96 - 1));
	rt_model_close(&model);
}
