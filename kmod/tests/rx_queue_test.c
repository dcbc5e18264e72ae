// SPDX-License-Identifier: GPL-2.0-only
/* What of a device's packets a tap takes: receive queues, direction, and what is not addressed to it. */
#define _GNU_SOURCE
#include "fixture.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "link.h"

#define RT_RX_QUEUES 4
#define RT_EACH 50

/* An Ethernet device with RT_RX_QUEUES receive queues: what is written to descriptor N comes in by queue N. */
static u32 rt_multiqueue_open(int *fds)
{
	struct ifreq request = { .ifr_name = "mq", .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE };
	u32 i;

	for (i = 0; i < RT_RX_QUEUES; i++) {
		fds[i] = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
		RT_CHECK(fds[i] >= 0, "/dev/net/tun: %m");
		RT_CHECK(!ioctl(fds[i], TUNSETIFF, &request), "%m");
	}
	RT_EQUAL(rt_link_set_up("mq", true), 0);
	return rt_ifindex("mq");
}

/* RT_EACH packets into each queue; queue N gets numbers from @from + N * RT_EACH on. */
static void rt_multiqueue_send(const int *fds, const struct rt_traffic *traffic, u32 from)
{
	u8 bytes[RT_PACKET_MAX];
	u32 i, number, len;

	for (i = 0; i < RT_RX_QUEUES; i++) {
		for (number = 0; number < RT_EACH; number++) {
			len = rt_packet_build(traffic, from + i * RT_EACH + number, bytes);
			RT_CHECK(write(fds[i], bytes, len) == (ssize_t)len, "%m");
		}
	}
}

struct rt_rx_queue_count {
	u64 packets[RT_RX_QUEUES];
};

static void rt_count_rx_queue(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_rx_queue_count *count = arg;

	RT_CHECK(slot->rx_queue < RT_RX_QUEUES, "receive queue %u", slot->rx_queue);
	RT_EQUAL(rt_packet_number(packet, slot->caplen) / RT_EACH % RT_RX_QUEUES, slot->rx_queue);
	count->packets[slot->rx_queue]++;
}

static void rt_expect_rx_queues(struct rt_queue *queue, u64 mask)
{
	struct rt_rx_queue_count count = {};
	u32 i;

	rt_queue_read(queue, rt_count_rx_queue, &count);
	for (i = 0; i < RT_RX_QUEUES; i++)
		RT_EQUAL(count.packets[i], mask >> i & 1 ? RT_EACH : 0);
}

/* Checks a ring that takes @mask after everything was sent @rounds times. */
static void rt_try_mask(struct rt_fixture *fixture, const int *fds, struct rt_queue *queue, u64 mask)
{
	struct rt_ring change = { .rx_queues = mask };
	u64 seen = rt_ring_seen(fixture->ring);
	struct rt_traffic traffic = { .flows = 5 };
	u32 wanted = mask ? (u32)__builtin_popcountll(mask) : RT_RX_QUEUES;

	RT_EQUAL(rt_fixture_change(fixture, &change), 0);
	rt_multiqueue_send(fds, &traffic, 0);
	RT_EVENTUALLY(rt_ring_seen(fixture->ring) >= seen + wanted * RT_EACH, 5000);
	/* Time for what should not come. */
	usleep(20000);
	RT_EQUAL(rt_ring_seen(fixture->ring), seen + wanted * RT_EACH);
	rt_expect_rx_queues(queue, mask ?: UINT64_MAX);
}

RT_CASE(rx_queues_mask)
{
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	struct rt_queue queue;
	int fds[RT_RX_QUEUES];

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	fixture.ifindex = rt_multiqueue_open(fds);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_try_mask(&fixture, fds, &queue, 0xa);
	rt_try_mask(&fixture, fds, &queue, 0x1);
	rt_try_mask(&fixture, fds, &queue, 0);
	rt_try_mask(&fixture, fds, &queue, 0x8);
	rt_cluster_counts(fixture.cluster, &counts);
	RT_EQUAL(counts.delivered, (2 + 1 + 4 + 1) * RT_EACH);
	rt_queue_close(&queue);
}

/* A ring for each queue: every packet is one's, and one's only. */
RT_CASE(rx_queues_ring_each)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_queue queues[RT_RX_QUEUES];
	struct rt_fixture fixture;
	char names[RT_RX_QUEUES][40];
	struct rt_ring ring;
	int fds[RT_RX_QUEUES];
	u32 i;

	rt_fixture_open_devices(&fixture);
	fixture.ifindex = rt_multiqueue_open(fds);
	for (i = 0; i < RT_RX_QUEUES; i++) {
		snprintf(names[i], sizeof(names[i]), "%s-%u", fixture.cluster, i);
		RT_EQUAL(rt_cluster_set(&(struct rt_cluster){ .name = names[i], .lane_size = RINGCAP_LANE_SIZE_MIN }), 0);
		ring = (struct rt_ring){ .name = names[i], .outputs = { names[i] }, .rx_queues = 1ULL << i };
		ring.taps[0] = (struct rt_tap){ fixture.ifindex, RINGCAP_DIRECTION_RX };
		RT_EQUAL(rt_ring_set(&ring), 0);
		rt_queue_open(&queues[i], names[i], 0);
	}
	rt_multiqueue_send(fds, &traffic, 0);
	for (i = 0; i < RT_RX_QUEUES; i++) {
		rt_ring_wait(names[i], RT_EACH);
		RT_EQUAL(rt_ring_seen(names[i]), RT_EACH);
		rt_expect_rx_queues(&queues[i], 1ULL << i);
		rt_queue_close(&queues[i]);
	}
}

static void rt_refused_rx_queues(const struct rt_fixture *fixture, const void *mask, u32 len, u32 direction)
{
	static struct rt_message message;
	u64 before = rt_control_digest();
	u32 nest;

	rt_message_init(&message, RINGCAP_CMD_RING_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, fixture->ring);
	nest = rt_message_nest(&message, RINGCAP_A_TAP);
	rt_message_put_u32(&message, RINGCAP_A_TAP_IFINDEX, fixture->ifindex);
	rt_message_put_u32(&message, RINGCAP_A_TAP_DIRECTION, direction);
	rt_message_put(&message, RINGCAP_A_TAP_RX_QUEUES, mask, len);
	rt_message_nest_end(&message, nest);
	rt_message_put_name(&message, RINGCAP_A_OUTPUT, fixture->cluster);
	RT_EQUAL(rt_call(&message, NULL, NULL), -EINVAL);
	RT_CHECK(strstr(rt_reason, "RINGCAP_A_TAP_RX_QUEUES"), "%s", rt_reason);
	RT_CHECK(rt_control_digest() == before, "refused, but something changed");
}

RT_CASE(rx_queues_refused)
{
	static const u64 none[16], beyond = 1ULL << RT_RX_QUEUES, first = 1;
	struct rt_fixture fixture;
	int fds[RT_RX_QUEUES];

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	fixture.ifindex = rt_multiqueue_open(fds);
	rt_refused_rx_queues(&fixture, none, sizeof(none), RINGCAP_DIRECTION_RX);
	rt_refused_rx_queues(&fixture, none, 0, RINGCAP_DIRECTION_RX);
	rt_refused_rx_queues(&fixture, &first, 7, RINGCAP_DIRECTION_RX);
	rt_refused_rx_queues(&fixture, &first, sizeof(first), RINGCAP_DIRECTION_TX);
	/* The queues that a tun may have are more than those that were asked for. */
	fixture.ifindex = rt_ifindex("vb");
	rt_refused_rx_queues(&fixture, &beyond, sizeof(beyond), RINGCAP_DIRECTION_RX);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .transparent = 1 }), -EOPNOTSUPP);
	RT_CHECK(strstr(rt_reason, "RINGCAP_A_TRANSPARENT"), "%s", rt_reason);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .transparent = 2 }), -EOPNOTSUPP);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .transparent = 3 }), -EINVAL);
	RT_CHECK(strstr(rt_reason, "RINGCAP_A_TRANSPARENT"), "%s", rt_reason);
}

/* ---- several rings on one device ---- */

static const char *const rt_names[] = { "tap-a", "tap-b", "tap-c" };

static int rt_tap_ring(const struct rt_fixture *fixture, u32 which, u32 direction, u32 promiscuous)
{
	return rt_ring_set(&(struct rt_ring){ .name = rt_names[which], .outputs = { fixture->cluster }, .promiscuous = promiscuous,
					      .taps = { { fixture->ifindex, direction } } });
}

RT_CASE(taps_directions)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_ring_counts counts;
	struct rt_fixture fixture;
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_tap_ring(&fixture, 0, RINGCAP_DIRECTION_RX, 0), 0);
	RT_EQUAL(rt_tap_ring(&fixture, 1, RINGCAP_DIRECTION_TX, 0), 0);
	RT_EQUAL(rt_tap_ring(&fixture, 2, RINGCAP_DIRECTION_BOTH, 0), 0);
	rt_send(fixture.sender, &traffic, 0, 30);
	rt_send(fixture.back, &traffic, 30, 70);
	for (i = 0; i < 3; i++) {
		static const u64 want[] = { 30, 70, 100 };

		rt_ring_wait(rt_names[i], want[i]);
		rt_ring_counts(rt_names[i], &counts);
		RT_EQUAL(counts.seen, want[i]);
		RT_EQUAL(counts.passed, want[i]);
	}
}

/* What the kernel itself wants of a device is only in sysfs. */
static bool rt_is_promiscuous(const char *device)
{
	unsigned int flags = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/flags", device);
	file = fopen(path, "r");
	RT_CHECK(file && fscanf(file, "%x", &flags) == 1, "%s: %m", path);
	fclose(file);
	return flags & IFF_PROMISC;
}

RT_CASE(taps_promiscuous)
{
	struct rt_ring refused = { .name = rt_names[1], .promiscuous = 1, .rx_queues = 1ULL << 63 };
	struct rt_fixture fixture;

	RT_CHECK(rt_mount_sysfs(), "%m");
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_tap_ring(&fixture, 0, RINGCAP_DIRECTION_RX, 0), 0);
	RT_CHECK(!rt_is_promiscuous("vb"), "nobody asked for it");
	RT_EQUAL(rt_tap_ring(&fixture, 1, RINGCAP_DIRECTION_RX, 1), 0);
	RT_EQUAL(rt_tap_ring(&fixture, 2, RINGCAP_DIRECTION_RX, 1), 0);
	RT_CHECK(rt_is_promiscuous("vb"), "two rings want it");
	RT_EQUAL(rt_tap_ring(&fixture, 1, RINGCAP_DIRECTION_RX, 0), 0);
	RT_CHECK(rt_is_promiscuous("vb"), "one ring wants it");
	/* Again, which must not count twice. */
	RT_EQUAL(rt_tap_ring(&fixture, 2, RINGCAP_DIRECTION_BOTH, 1), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, rt_names[2]), 0);
	RT_CHECK(!rt_is_promiscuous("vb"), "nobody wants it any more");
	RT_EQUAL(rt_tap_ring(&fixture, 0, RINGCAP_DIRECTION_RX, 1), 0);
	RT_CHECK(rt_is_promiscuous("vb"), "a ring has come to want it");
	/* A refused change keeps what was. */
	refused.outputs[0] = fixture.cluster;
	refused.taps[0] = (struct rt_tap){ fixture.ifindex, RINGCAP_DIRECTION_RX };
	RT_EQUAL(rt_ring_set(&refused), -EINVAL);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, rt_names[0]), 0);
	RT_CHECK(!rt_is_promiscuous("vb"), "nobody wants it any more");
}

/* A tap is the device's, whatever that is called. */
RT_CASE(taps_renamed_device)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(rt_link_rename("vb", "other"), 0);
	/* Its peer takes a while to see that the link is up again. */
	RT_EVENTUALLY(rt_link_is_ready("va"), 30000);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 100);
	rt_exchange(fixture.sender, &traffic, 0, 100, &queue, 1, &receiver);
	rt_fixture_check(&fixture, 100, 0, 100, 0, 0);
	rt_queue_close(&queue);
}
