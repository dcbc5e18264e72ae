// SPDX-License-Identifier: GPL-2.0-only
/* Which packets are captured, which parts of them, and in which queue they arrive. */
#define _GNU_SOURCE
#include "fixture.h"

#include "../classify/classify.h"

static const u8 rt_key[RINGCAP_KEY_LEN] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };

#define RT_FILTER(program) .filter = (program), .filter_len = sizeof(program) / sizeof((program)[0])

/* Passes every packet. */
static const struct sock_filter rt_any_filter[] = {
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
	BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
};

static void rt_add_any_filter(struct rt_ring *ring)
{
	ring->filter = rt_any_filter;
	ring->filter_len = sizeof(rt_any_filter) / sizeof(rt_any_filter[0]);
}

/* ---- VLAN tags ---- */

/* Sends tagged frames; the stack takes the outer tag off before a tap sees them, and the module puts it back. */
static void rt_try_tags(const struct rt_traffic *traffic, u32 metadata, bool filtered)
{
	struct rt_receiver receiver;
	struct rt_ring ring = {};
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .metadata = metadata });
	if (filtered)
		rt_add_any_filter(&ring);
	RT_EQUAL(rt_fixture_change(&fixture, &ring), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, traffic, fixture.ifindex, 300);
	rt_exchange(fixture.sender, traffic, 0, 300, &queue, 1, &receiver);
	rt_fixture_check(&fixture, 300, 0, 300, 0, 0);
	RT_EQUAL(receiver.bytes, rt_traffic_bytes(traffic, 0, 300));
	rt_queue_close(&queue);
}

RT_CASE(vlan_tag_inline)
{
	struct rt_traffic traffic = { .flows = 9, .min_len = 68, .max_len = 1518, .tpid = { 0x8100 }, .tci = { 0x6005 } };

	rt_try_tags(&traffic, 1, false);
}

RT_CASE(vlan_tag_short_slots)
{
	struct rt_traffic traffic = { .flows = 9, .min_len = 68, .max_len = 1518, .tpid = { 0x8100 }, .tci = { 0x6005 } };

	rt_try_tags(&traffic, 0, false);
}

RT_CASE(vlan_double_tag_inline)
{
	struct rt_traffic traffic = { .flows = 9, .min_len = 68, .max_len = 1518, .tpid = { 0x88a8, 0x8100 },
				      .tci = { 100, 0x2fff } };

	rt_try_tags(&traffic, 1, false);
}

/* Checks packets of a VLAN interface: those of the plain traffic with a tag of id 5. */
static void rt_receive_tagged(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	static u8 bytes[RT_PACKET_MAX];
	const struct rt_traffic *plain = arg;
	u32 number = rt_packet_number(packet, slot->caplen), len;

	RT_CHECK(number < 200, "a packet that nobody sent");
	len = rt_packet_build(plain, number, bytes);
	RT_EQUAL(slot->len, len + 4);
	RT_EQUAL(slot->caplen, len + 4);
	RT_CHECK(!memcmp(packet, bytes, 12) && !memcmp(packet + 12, "\x81\x00\x00\x05", 4) &&
		 !memcmp(packet + 16, bytes + 12, len - 12), "packet %u is damaged", number);
	RT_EQUAL(slot->flags & ~RINGCAP_SLOT_HASHED, RINGCAP_SLOT_VLAN | RINGCAP_SLOT_OUTGOING);
	RT_EQUAL(slot->vlan_tci, 5);
}

/* The tag of a VLAN interface is in the skb's metadata when the device below sends it, and never in its data. */
RT_CASE(vlan_interface_transmit)
{
	struct rt_traffic plain = { .flows = 9, .min_len = 64, .max_len = 1000 };
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .lanes = 1 });
	rt_ip("link add link va name va.5 type vlan id 5");
	rt_ip("link set va.5 up");
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .taps = { { rt_ifindex("va"), RINGCAP_DIRECTION_TX } } }), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_send(rt_sender_open("va.5"), &plain, 0, 200);
	rt_fixture_check(&fixture, 200, 0, 200, 0, 0);
	RT_EQUAL(rt_queue_read(&queue, rt_receive_tagged, &plain), 200);
	rt_queue_close(&queue);
}

/* ---- directions ---- */

static void rt_try_direction(u32 direction, u64 received, u64 sent, bool filtered)
{
	struct rt_ring ring = { .taps = { { 0, direction } } };
	struct rt_traffic traffic = { .flows = 7, .max_len = 500 }, back = { .flows = 7, .reverse = true };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	ring.taps[0].ifindex = fixture.ifindex;
	if (filtered)
		rt_add_any_filter(&ring);
	RT_EQUAL(rt_fixture_change(&fixture, &ring), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 300);
	rt_exchange(fixture.sender, &traffic, 0, received, &queue, 1, &receiver);
	if (!received)
		rt_send(fixture.sender, &traffic, 0, 300);
	rt_receiver_init(&receiver, &back, fixture.ifindex, 200);
	receiver.outgoing = true;
	rt_exchange(fixture.back, &back, 0, sent, &queue, 1, &receiver);
	if (!sent)
		rt_send(fixture.back, &back, 0, 200);
	rt_fixture_check(&fixture, received + sent, 0, received + sent, 0, 0);
	rt_queue_close(&queue);
}

RT_CASE(direction_rx)
{
	rt_try_direction(RINGCAP_DIRECTION_RX, 300, 0, false);
}

RT_CASE(direction_tx)
{
	rt_try_direction(RINGCAP_DIRECTION_TX, 0, 200, false);
}

RT_CASE(direction_both)
{
	rt_try_direction(RINGCAP_DIRECTION_BOTH, 300, 200, false);
}

/* ---- filters ---- */

/* Destination port 53 of untagged UDP over IPv4: the even flows. */
static const struct sock_filter rt_port_filter[] = {
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 36),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RT_SERVER_PORT, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
	BPF_STMT(BPF_RET | BPF_K, 0),
};

/* VLAN id 5, wherever the tag is. */
static const struct sock_filter rt_vlan_filter[] = {
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (u32)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 4),
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (u32)(SKF_AD_OFF + SKF_AD_VLAN_TAG)),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfff),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 5, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
	BPF_STMT(BPF_RET | BPF_K, 0),
};

static void rt_check_port(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	(void)arg;
	RT_EQUAL(rt_packet_number(packet, slot->caplen) % 2, 0);
}

RT_CASE(filter_port)
{
	struct rt_traffic traffic = { .flows = 10 };
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ RT_FILTER(rt_port_filter) }), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_send(fixture.sender, &traffic, 0, 1000);
	rt_fixture_check(&fixture, 1000, 500, 500, 0, 0);
	RT_EQUAL(rt_queue_read(&queue, rt_check_port, NULL), 500);
	rt_queue_close(&queue);
}

RT_CASE(filter_vlan_extension)
{
	struct rt_traffic tagged = { .min_len = 68, .tpid = { 0x8100 }, .tci = { 0xe005 } }, plain = { .min_len = 68 };
	struct rt_traffic other = { .min_len = 68, .tpid = { 0x8100 }, .tci = { 6 } };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ RT_FILTER(rt_vlan_filter) }), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &tagged, fixture.ifindex, 100);
	rt_exchange(fixture.sender, &tagged, 0, 100, &queue, 1, &receiver);
	rt_send(fixture.sender, &plain, 0, 70);
	rt_send(fixture.sender, &other, 0, 30);
	rt_fixture_check(&fixture, 200, 100, 100, 0, 0);
	rt_queue_close(&queue);
}

/* What passes a filter arrives as it does without one. */
RT_CASE(filter_tags)
{
	struct rt_traffic traffic = { .flows = 9, .min_len = 68, .max_len = 1518, .tpid = { 0x8100 }, .tci = { 0x6005 } };

	rt_try_tags(&traffic, 0, true);
}

RT_CASE(filter_directions)
{
	rt_try_direction(RINGCAP_DIRECTION_BOTH, 300, 200, true);
}

/* A filter is replaced under traffic: every packet was seen by the old one or the new one, and counted. */
RT_CASE(filter_replaced)
{
	struct rt_traffic traffic = { .flows = 10 };
	struct rt_ring_counts counts;
	struct rt_fixture fixture;
	u32 round;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	for (round = 0; round < 20; round++) {
		const struct rt_ring change = { RT_FILTER(rt_port_filter) };

		RT_EQUAL(rt_fixture_change(&fixture, round % 2 ? &change : &(struct rt_ring){}), 0);
		rt_send(fixture.sender, &traffic, round * 50, 50);
		/* Otherwise the next filter could get packets meant for this one. */
		rt_ring_wait(fixture.ring, (round + 1) * 50);
	}
	rt_fixture_check(&fixture, 1000, 250, 0, 0, 750);
	rt_ring_counts(fixture.ring, &counts);
	RT_EQUAL(counts.taps, 1);
}

/* ---- balance ---- */

#define RT_QUEUES 4

/**
 * struct rt_spread - what a queue's packets are compared with
 * @queue: the queue that is being read
 * @balance: as configured
 * @count: packets of each queue
 * @owner: queue of each flow, -1 = not seen yet
 * @flows: number of flows
 */
struct rt_spread {
	u32 queue;
	u32 balance;
	u32 count[RT_QUEUES];
	int owner[64];
	u32 flows;
};

/* Checks that the module chose the same queue as the classifier in user space, and the same one for both directions. */
static void rt_check_queue(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_frame_copy { u8 bytes[RC_PARSE_MAX]; } copy = {};
	struct rc_frame frame = { .data = copy.bytes, .avail = slot->caplen < RC_PARSE_MAX ? slot->caplen : RC_PARSE_MAX };
	struct rt_spread *spread = arg;
	struct rc_flow flow;
	rc_u64 key[2];
	u32 number = rt_packet_number(packet, slot->caplen), at = number % spread->flows;

	memcpy(copy.bytes, packet, frame.avail);
	rc_parse(&frame, &flow);
	rc_key_load(rt_key, key);
	RT_EQUAL(slot->hash, rc_flow_hash(&flow, spread->balance, key));
	RT_EQUAL(rc_queue(slot->hash, RT_QUEUES), spread->queue);
	RT_CHECK(spread->owner[at] < 0 || spread->owner[at] == (int)spread->queue, "flow %u in queues %d and %u", at,
		 spread->owner[at], spread->queue);
	spread->owner[at] = (int)spread->queue;
	spread->count[spread->queue]++;
}

static void rt_try_balance(u32 balance, bool filtered)
{
	struct rt_ring ring = { .taps = { { 0, RINGCAP_DIRECTION_BOTH } } };
	struct rt_traffic forth = { .flows = 64 }, back = { .flows = 64, .reverse = true };
	struct rt_spread spread = { .balance = balance, .flows = 64 };
	struct rt_cluster shape = { .queues = RT_QUEUES, .balance = balance, .key = rt_key };
	struct rt_queue queues[RT_QUEUES];
	struct rt_fixture fixture;
	u32 i;

	rt_fixture_open(&fixture, &shape);
	ring.taps[0].ifindex = fixture.ifindex;
	if (filtered)
		rt_add_any_filter(&ring);
	RT_EQUAL(rt_fixture_change(&fixture, &ring), 0);
	memset(spread.owner, -1, sizeof(spread.owner));
	for (i = 0; i < RT_QUEUES; i++)
		rt_queue_open(&queues[i], fixture.cluster, i);
	rt_send(fixture.sender, &forth, 0, 640);
	rt_send(fixture.back, &back, 640, 640);
	rt_fixture_check(&fixture, 1280, 0, 1280, 0, 0);
	for (i = 0; i < RT_QUEUES; i++) {
		spread.queue = i;
		rt_queue_read(&queues[i], rt_check_queue, &spread);
		RT_CHECK(spread.count[i], "queue %u got nothing of 64 flows", i);
		rt_queue_close(&queues[i]);
	}
	RT_EQUAL(spread.count[0] + spread.count[1] + spread.count[2] + spread.count[3], 1280);
}

RT_CASE(balance_flow)
{
	rt_try_balance(RINGCAP_BALANCE_FLOW, false);
}

RT_CASE(balance_five_tuple)
{
	rt_try_balance(RINGCAP_BALANCE_FIVE_TUPLE, false);
}

RT_CASE(balance_two_tuple)
{
	rt_try_balance(RINGCAP_BALANCE_TWO_TUPLE, false);
}

RT_CASE(filter_balance)
{
	rt_try_balance(RINGCAP_BALANCE_FLOW, true);
}

RT_CASE(balance_round_robin)
{
	struct rt_cluster shape = { .queues = RT_QUEUES, .balance = RINGCAP_BALANCE_ROUND_ROBIN };
	struct rt_traffic traffic = { .flows = 1 };
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	u32 i;

	rt_fixture_open(&fixture, &shape);
	rt_send(fixture.sender, &traffic, 0, 1000);
	rt_fixture_check(&fixture, 1000, 0, 0, 0, 1000);
	for (i = 0; i < RT_QUEUES; i++) {
		rt_queue_counts(fixture.cluster, i, &counts);
		/* Each CPU takes its own turns. */
		RT_CHECK(counts.dropped[RINGCAP_DROP_UNATTENDED] >= 240 && counts.dropped[RINGCAP_DROP_UNATTENDED] <= 260,
			 "queue %u got %llu of 1000", i, (unsigned long long)counts.dropped[RINGCAP_DROP_UNATTENDED]);
	}
}
