// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transparent modes 1 and 2, on a capture-aware driver: the ring and the stack each see the packets that they should,
 * once and whole.
 *
 *	va ---- vb	of the test driver; vb is tapped, and a packet socket on it counts the stack's packets
 */
#define _GNU_SOURCE
#include "fixture.h"

#include <fcntl.h>
#include <linux/if_ether.h>
#include <pthread.h>
#include <sys/socket.h>

#include "frame.h"
#include "link.h"
#include "stack.h"

#define RT_OFFERS "/sys/module/ringcap_test_driver/parameters/offers"

struct rt_aware {
	struct rt_fixture fixture;
	int stack;
};

/* @offers is what the driver of both does. */
static void rt_aware_open(struct rt_aware *aware, const char *offers, struct rt_cluster *shape)
{
	RT_CHECK(!setenv("RT_AWARE", "1", 1), "%m");
	RT_CHECK(rt_write_file(RT_OFFERS, offers), "%m");
	rt_fixture_open(&aware->fixture, shape);
	RT_CHECK(rt_write_file(RT_OFFERS, "3"), "%m");
	aware->stack = rt_stack_open("vb");
}

static void rt_aware_mode(const struct rt_aware *aware, u32 mode)
{
	RT_CHECK(!rt_fixture_change(&aware->fixture, &(struct rt_ring){ .transparent = mode }), "%s", rt_reason);
}

/* ---- which packets arrive where ---- */

static void rt_try_mode(const char *offers, u32 mode, const struct rt_traffic *traffic)
{
	const u32 count = rt_scaled(400);
	struct rt_receiver receiver;
	struct rt_aware aware;
	struct rt_queue queue;

	rt_aware_open(&aware, offers, &(struct rt_cluster){});
	if (traffic->max_len > 1514) {
		rt_ip("link set va mtu 9000");
		rt_ip("link set vb mtu 9000");
	}
	rt_aware_mode(&aware, mode);
	rt_queue_open(&queue, aware.fixture.cluster, 0);
	rt_receiver_init(&receiver, traffic, aware.fixture.ifindex, count);
	rt_exchange(aware.fixture.sender, traffic, 0, count, &queue, 1, &receiver);
	rt_fixture_check(&aware.fixture, count, 0, count, 0, 0);
	RT_EQUAL(receiver.bytes, rt_traffic_bytes(traffic, 0, count));
	RT_EQUAL(rt_stack_count(aware.stack), mode == 2 ? 0 : count);
	rt_queue_close(&queue);
}

RT_CASE(aware_mode_0)
{
	rt_try_mode("3", 0, &(struct rt_traffic){ .flows = 10, .max_len = 1514 });
}

RT_CASE(aware_mode_1_skb)
{
	rt_try_mode("1", 1, &(struct rt_traffic){ .flows = 10, .max_len = 1514 });
}

RT_CASE(aware_mode_1_frame)
{
	rt_try_mode("3", 1, &(struct rt_traffic){ .flows = 10, .max_len = 1514 });
}

RT_CASE(aware_mode_2_skb)
{
	rt_try_mode("1", 2, &(struct rt_traffic){ .flows = 10, .max_len = 1514 });
}

RT_CASE(aware_mode_2_frame)
{
	rt_try_mode("3", 2, &(struct rt_traffic){ .flows = 10, .max_len = 1514 });
}

/* Above 2048 bytes they are in several buffers. */
RT_CASE(aware_jumbo)
{
	rt_try_mode("3", 2, &(struct rt_traffic){ .flows = 10, .min_len = 1000, .max_len = 9000 });
}

RT_CASE(aware_vlan)
{
	rt_try_mode("3", 2, &(struct rt_traffic){ .flows = 3, .max_len = 1000, .tpid = { 0x8100 }, .tci = { 0x6005 } });
}

RT_CASE(aware_vlan_twice)
{
	rt_try_mode("3", 2, &(struct rt_traffic){ .flows = 3, .max_len = 1000, .tpid = { 0x8100, 0x8100 }, .tci = { 7, 8 } });
}

RT_CASE(aware_vlan_skb)
{
	rt_try_mode("1", 1, &(struct rt_traffic){ .flows = 3, .max_len = 1000, .tpid = { 0x8100 }, .tci = { 0x6005 } });
}

/* ---- receive queues ---- */

struct rt_queues_seen {
	u64 by_queue[4];
	u64 stamped;
};

static void rt_note_queue(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_queues_seen *seen = arg;

	RT_EQUAL(slot->rx_queue, packet[11] - 1);
	seen->by_queue[slot->rx_queue]++;
	seen->stamped += slot->flags & RINGCAP_SLOT_HWTSTAMP && slot->ts_ns == 1000000007;
}

/* Sends one packet to each of the receive queues, @count times. */
static void rt_send_queues(int sender, u32 count)
{
	struct rt_frame frame;
	u32 i;

	for (i = 0; i < 4 * count; i++) {
		rt_frame_begin(&frame, i, 100);
		rt_frame_push_udp(&frame, &(struct rt_ends){ 1, 2, 3, 4 });
		rt_frame_push_ipv4(&frame, &(struct rt_ends){ 1, 2, 3, 4 }, 17);
		rt_frame_push_ethernet(&frame, ETH_P_IP);
		frame.data[11] = (u8)(1 + i % 4);
		rt_frame_send(sender, &frame);
	}
}

/* The stack gets the packets that the tap does not take. */
static void rt_try_rx_queues(const char *offers, u32 quick)
{
	struct rt_queues_seen seen = { .stamped = 0 };
	struct rt_aware aware;
	struct rt_queue queue;

	rt_aware_open(&aware, offers, &(struct rt_cluster){});
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, aware.fixture.ring), 0);
	RT_CHECK(!rt_fixture_change(&aware.fixture,
				    &(struct rt_ring){ .transparent = 2, .rx_queues = 6, .quick = quick }),
		 "%s", rt_reason);
	rt_queue_open(&queue, aware.fixture.cluster, 0);
	rt_send_queues(aware.fixture.sender, 100);
	rt_fixture_check(&aware.fixture, 200, 0, 200, 0, 0);
	RT_EQUAL(rt_queue_read(&queue, rt_note_queue, &seen), 200);
	RT_EQUAL(seen.by_queue[1], 100);
	RT_EQUAL(seen.by_queue[2], 100);
	RT_EVENTUALLY((seen.by_queue[0] += rt_stack_count(aware.stack)) >= 200, 5000);
	RT_EQUAL(seen.by_queue[0], 200);
	rt_queue_close(&queue);
}

RT_CASE(aware_rx_queues_frame)
{
	rt_try_rx_queues("3", 0);
}

RT_CASE(aware_rx_queues_skb)
{
	rt_try_rx_queues("1", 0);
}

RT_CASE(aware_rx_queues_quick)
{
	rt_try_rx_queues("3", 1);
}

static void rt_want_hwtstamp(struct rt_message *message, const void *arg)
{
	rt_message_put_u32(message, RINGCAP_A_HWTSTAMP, 1);
	(void)arg;
}

static void rt_try_hwtstamp(const char *offers, u32 mode)
{
	struct rt_queues_seen seen = { .stamped = 0 };
	struct rt_aware aware;
	struct rt_queue queue;

	rt_aware_open(&aware, offers, &(struct rt_cluster){});
	RT_EQUAL(rt_fixture_change(&aware.fixture, &(struct rt_ring){ .transparent = mode, .more = rt_want_hwtstamp }), 0);
	rt_queue_open(&queue, aware.fixture.cluster, 0);
	rt_send_queues(aware.fixture.sender, 10);
	rt_fixture_check(&aware.fixture, 40, 0, 40, 0, 0);
	RT_EQUAL(rt_queue_read(&queue, rt_note_queue, &seen), 40);
	RT_EQUAL(seen.stamped, 40);
	rt_queue_close(&queue);
}

RT_CASE(aware_hwtstamp_frame)
{
	rt_try_hwtstamp("3", 2);
}

RT_CASE(aware_hwtstamp_skb)
{
	rt_try_hwtstamp("1", 1);
}

/* ---- several rings ---- */

static int rt_ring_of(const struct rt_aware *aware, const char *name, u32 mode, u32 direction)
{
	return rt_ring_set(&(struct rt_ring){ .name = name, .outputs = { aware->fixture.cluster }, .transparent = mode,
					      .taps = { { aware->fixture.ifindex, direction } } });
}

/* A ring of mode 2 takes the packets from the stack, and thereby from rings of mode 0; rings of mode 1 see them too. */
RT_CASE(aware_rings)
{
	struct rt_traffic traffic = { .flows = 3, .max_len = 500 };
	struct rt_aware aware;

	rt_aware_open(&aware, "3", &(struct rt_cluster){});
	RT_EQUAL(rt_ring_of(&aware, "one", 1, RINGCAP_DIRECTION_BOTH), 0);
	RT_EQUAL(rt_ring_of(&aware, "two", 2, RINGCAP_DIRECTION_RX), 0);
	RT_EQUAL(rt_ring_of(&aware, "sent", 2, RINGCAP_DIRECTION_TX), 0);
	rt_send(aware.fixture.sender, &traffic, 0, 300);
	rt_ring_wait("two", 300);
	rt_send(aware.fixture.back, &traffic, 0, 50);
	rt_ring_wait("sent", 50);
	RT_EQUAL(rt_ring_seen("one"), 350);
	RT_EQUAL(rt_ring_seen("two"), 300);
	RT_EQUAL(rt_ring_seen("sent"), 50);
	RT_EQUAL(rt_ring_seen(aware.fixture.ring), 0);
	RT_EQUAL(rt_stack_count(aware.stack), 0);
	/* Without it the stack and the ring of mode 0 get them again; of two rings of mode 2 each gets them. */
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, "two"), 0);
	rt_send(aware.fixture.sender, &traffic, 300, 100);
	rt_ring_wait(aware.fixture.ring, 100);
	RT_EQUAL(rt_ring_seen(aware.fixture.ring), 100);
	RT_EQUAL(rt_ring_seen("one"), 450);
	RT_EQUAL(rt_stack_count(aware.stack), 100);
	RT_EQUAL(rt_ring_of(&aware, "one", 2, RINGCAP_DIRECTION_RX), 0);
	RT_EQUAL(rt_ring_of(&aware, "sent", 2, RINGCAP_DIRECTION_BOTH), 0);
	rt_send(aware.fixture.sender, &traffic, 400, 100);
	rt_ring_wait("sent", 150);
	RT_EQUAL(rt_ring_seen("one"), 550);
	RT_EQUAL(rt_ring_seen("sent"), 150);
	RT_EQUAL(rt_stack_count(aware.stack), 0);
}

/* ---- rights ---- */

static void rt_want_fallback(struct rt_message *message, const void *arg)
{
	rt_message_put_u32(message, RINGCAP_A_TRANSPARENT_FALLBACK, 1);
	(void)arg;
}

static void rt_note_offers(const struct rt_answer *answer, void *arg)
{
	*(u32 *)arg = rt_answer_u32(answer, RINGCAP_A_OFFERS);
}

static u32 rt_offers(const char *interface)
{
	static struct rt_message message;
	u32 offers = ~0U;

	rt_message_init(&message, RINGCAP_CMD_DEVICE_GET, 0);
	rt_message_put_u32(&message, RINGCAP_A_TAP_IFINDEX, rt_ifindex(interface));
	RT_CHECK(!rt_call(&message, rt_note_offers, &offers), "%s", rt_reason);
	return offers;
}

/* Whether a ring's tap has mode @wanted by /proc/net/ringcap/dev/<interface>. */
static bool rt_mode_shown(const char *interface, u32 wanted)
{
	char path[64], line[256], mode[16];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/net/ringcap/dev/%s", interface);
	snprintf(mode, sizeof(mode), " mode %u\n", wanted);
	file = fopen(path, "re");
	RT_CHECK(file, "%s: %m", path);
	while (fgets(line, sizeof(line), file))
		found |= !strncmp(line, "Ring:", 5) && strstr(line, mode);
	fclose(file);
	return found;
}

RT_CASE(aware_refused)
{
	struct rt_aware aware;
	struct rt_fixture *fixture = &aware.fixture;
	u64 before;

	rt_aware_open(&aware, "0", &(struct rt_cluster){});
	RT_EQUAL(rt_offers("vb"), 0);
	before = rt_control_digest();
	RT_EQUAL(rt_fixture_change(fixture, &(struct rt_ring){ .transparent = 2 }), -EOPNOTSUPP);
	RT_CHECK(strstr(rt_reason, "RINGCAP_A_TRANSPARENT"), "%s", rt_reason);
	RT_CHECK(rt_control_digest() == before, "refused, but something changed");
	RT_CHECK(!rt_fixture_change(fixture, &(struct rt_ring){ .transparent = 2, .more = rt_want_fallback }), "%s", rt_reason);
	RT_CHECK(rt_mode_shown("vb", 0), "not the active mode");
	rt_send(fixture->sender, &(struct rt_traffic){ .flows = 2 }, 0, 10);
	rt_ring_wait(fixture->ring, 10);
	RT_EQUAL(rt_stack_count(aware.stack), 10);
}

RT_CASE(aware_offers)
{
	struct rt_aware aware;

	rt_aware_open(&aware, "3", &(struct rt_cluster){});
	RT_EQUAL(rt_offers("vb"), 3);
	RT_CHECK(!rt_fixture_change(&aware.fixture, &(struct rt_ring){ .transparent = 2, .more = rt_want_fallback }), "%s",
		 rt_reason);
	RT_CHECK(rt_mode_shown("vb", 2), "not the active mode");
}

/* ---- under traffic ---- */

struct rt_flood {
	int sender;
	volatile bool stop;
	u64 sent;
};

/* Packets that a device refuses because it is down, or gone, are not counted. */
static void *rt_flood(void *arg)
{
	struct rt_flood *flood = arg;
	u8 bytes[RT_PACKET_MAX];
	u32 len = rt_packet_build(&(struct rt_traffic){ .flows = 1 }, 0, bytes);

	while (!flood->stop) {
		if (send(flood->sender, bytes, len, 0) == (ssize_t)len)
			__atomic_store_n(&flood->sent, flood->sent + 1, __ATOMIC_RELAXED);
		else
			usleep(100);
	}
	return NULL;
}

static pthread_t rt_flood_start(struct rt_flood *flood, int sender)
{
	pthread_t thread;

	*flood = (struct rt_flood){ .sender = sender };
	RT_CHECK(!pthread_create(&thread, NULL, rt_flood, flood), "no thread");
	return thread;
}

/* Waits until a packet has been sent completely after this call. */
static void rt_flood_wait(const struct rt_flood *flood)
{
	u64 before = __atomic_load_n(&flood->sent, __ATOMIC_RELAXED);

	RT_EVENTUALLY(__atomic_load_n(&flood->sent, __ATOMIC_RELAXED) >= before + 2, 10000);
}

static void rt_flood_end(struct rt_flood *flood, pthread_t thread)
{
	flood->stop = true;
	RT_CHECK(!pthread_join(thread, NULL), "no end");
}

/* No packet is missed between modes 1 and 2; the stack has the packets of mode 1. */
RT_CASE(aware_modes_under_traffic)
{
	struct rt_flood flood;
	struct rt_aware aware;
	pthread_t thread;
	u64 stack;
	u32 i;

	rt_aware_open(&aware, "3", &(struct rt_cluster){});
	rt_aware_mode(&aware, 1);
	thread = rt_flood_start(&flood, aware.fixture.sender);
	for (i = 0; i < rt_scaled(40); i++) {
		rt_aware_mode(&aware, 1 + i % 2);
		rt_flood_wait(&flood);
	}
	rt_flood_end(&flood, thread);
	rt_ring_wait(aware.fixture.ring, flood.sent);
	stack = rt_stack_count(aware.stack);
	RT_CHECK(stack && stack < flood.sent, "%llu", (unsigned long long)stack);
}

/* To and from mode 0: no packet arrives twice. */
RT_CASE(aware_zero_under_traffic)
{
	struct rt_flood flood;
	struct rt_aware aware;
	pthread_t thread;
	u64 seen;
	u32 i;

	rt_aware_open(&aware, "3", &(struct rt_cluster){});
	thread = rt_flood_start(&flood, aware.fixture.sender);
	for (i = 0; i < rt_scaled(8); i++)
		rt_aware_mode(&aware, i % 3);
	RT_EVENTUALLY(rt_ring_seen(aware.fixture.ring), 10000);
	rt_flood_end(&flood, thread);
	usleep(100000);
	seen = rt_ring_seen(aware.fixture.ring);
	RT_CHECK(seen && seen <= flood.sent, "%llu of %llu", (unsigned long long)seen, (unsigned long long)flood.sent);
}

/* The device goes down and up, is renamed, gets another MTU and other rings, is deleted and made again. */
RT_CASE(aware_device_under_traffic)
{
	struct rt_flood flood;
	struct rt_aware aware;
	pthread_t thread;
	u32 i;

	rt_aware_open(&aware, "3", &(struct rt_cluster){});
	for (i = 0; i < rt_scaled(4); i++) {
		thread = rt_flood_start(&flood, aware.fixture.sender);
		rt_aware_mode(&aware, 1 + i % 2);
		RT_EQUAL(rt_link_set_up("vb", false), 0);
		RT_EQUAL(rt_link_set_up("vb", true), 0);
		RT_EQUAL(rt_link_rename("vb", "vz"), 0);
		RT_EQUAL(rt_link_rename("vz", "vb"), 0);
		rt_ip("link set vb mtu %u", 1400 + i);
		RT_EVENTUALLY(rt_ring_seen(aware.fixture.ring), 10000);
		rt_link_delete("vb");
		rt_flood_end(&flood, thread);
		rt_link_delete("va");
		RT_EQUAL(rt_link_add_aware("va", "vb"), 0);
		RT_EVENTUALLY(rt_link_is_ready("va") && rt_link_is_ready("vb"), 30000);
		aware.fixture.ifindex = rt_ifindex("vb");
		close(aware.fixture.sender);
		aware.fixture.sender = rt_sender_open("va");
	}
}

/* It is aware there too; the ring is not there. */
RT_CASE(aware_namespace)
{
	struct rt_flood flood;
	struct rt_aware aware;
	pthread_t thread;
	int home, other;
	u64 seen;

	rt_aware_open(&aware, "3", &(struct rt_cluster){});
	rt_aware_mode(&aware, 2);
	thread = rt_flood_start(&flood, aware.fixture.sender);
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	RT_CHECK(!unshare(CLONE_NEWNET), "%m");
	other = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	RT_CHECK(home >= 0 && other >= 0 && !setns(home, CLONE_NEWNET), "%m");
	RT_EVENTUALLY(rt_ring_seen(aware.fixture.ring) > 10, 5000);
	RT_EQUAL(rt_link_move("vb", other), 0);
	rt_flood_end(&flood, thread);
	seen = rt_ring_seen(aware.fixture.ring);
	RT_CHECK(seen <= flood.sent, "%llu", (unsigned long long)seen);
	RT_CHECK(!setns(other, CLONE_NEWNET), "%m");
	rt_control_open();
	RT_EQUAL(rt_offers("vb"), 3);
	RT_EQUAL(rt_link_set_up("vb", true), 0);
	aware.fixture.ifindex = rt_ifindex("vb");
	snprintf(aware.fixture.cluster, sizeof(aware.fixture.cluster), "o%d", getpid());
	RT_EQUAL(rt_cluster_set(&(struct rt_cluster){ .name = aware.fixture.cluster, .lane_size = RT_LANE_SIZE }), 0);
	rt_aware_mode(&aware, 2);
	RT_EVENTUALLY(rt_link_is_ready("vb"), 30000);
	rt_send(aware.fixture.sender, &(struct rt_traffic){ .flows = 2 }, 0, 20);
	rt_ring_wait(aware.fixture.ring, 20);
}
