// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transparent modes on emulated network cards: what the ring and what the stack gets of packets that are small, large, tagged or
 * in several buffers; and the accounts under traffic while links flap, lengths change and the driver goes.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "consumer.h"
#include "control.h"
#include "link.h"
#include "nic.h"
#include "stack.h"
#include "traffic.h"

#define COUNT 300U
#define RING "modes-ring"

static const struct rt_traffic mode_kinds[] = {
	{ .flows = 16, .min_len = 60, .max_len = 1514 },
	{ .flows = 16, .min_len = 64, .max_len = 1400, .tpid = { 0x8100 }, .tci = { 42 } },
	{ .flows = 16, .min_len = 1600, .max_len = 8000 },
};

/* Names of clusters are common to all namespaces, and the last case's may still be on its way out. */
static char cluster[RINGCAP_NAME_MAX + 1];

#define KINDS (sizeof(mode_kinds) / sizeof(mode_kinds[0]))

static void ring_on(const char *interface, u32 mode)
{
	RT_CHECK(!rt_ring_set(&(struct rt_ring){ .name = RING, .taps = { { rt_ifindex(interface), RINGCAP_DIRECTION_RX } },
						 .outputs = { cluster }, .transparent = mode, .promiscuous = 1 }),
		 "%s, mode %u: %s", interface, mode, rt_reason);
}

/* Each packet once and whole in the ring; in the stack each, or none. */
static void try_mode(const char *driver, int sender, int stack, struct rt_queue *queue, u32 mode, u32 kind)
{
	u32 first = (mode * (u32)KINDS + kind) * COUNT;
	struct rt_receiver receiver;
	u64 seen;

	ring_on("nic", mode);
	rt_receiver_init(&receiver, &mode_kinds[kind], rt_ifindex("nic"), first + COUNT);
	rt_stack_count(stack);
	seen = rt_ring_seen(RING);
	rt_exchange(sender, &mode_kinds[kind], first, COUNT, queue, 1, &receiver);
	RT_CHECK(receiver.count == COUNT, "%s, mode %u, kind %u: %llu of %u in the ring", driver, mode, kind,
		 (unsigned long long)receiver.count, COUNT);
	RT_EQUAL(rt_ring_seen(RING) - seen, COUNT);
	seen = rt_stack_count(stack);
	RT_CHECK(seen == (mode == 2 ? 0 : COUNT), "%s, mode %u, kind %u: %llu in the stack", driver, mode, kind,
		 (unsigned long long)seen);
	free(receiver.seen);
}

static void open_cluster(void)
{
	rt_control_open();
	snprintf(cluster, sizeof(cluster), "modes-%d", getpid());
	RT_EQUAL(rt_cluster_set(&(struct rt_cluster){ .name = cluster, .lane_size = 1U << 22 }), 0);
}

static void try_driver(u32 slot, const char *stock, u32 peer_slot, const char *peer_stock)
{
	struct rt_nic nic, peer;
	struct rt_queue queue;
	char driver[32];
	int sender, stack;
	u32 kind, mode;

	snprintf(driver, sizeof(driver), "%s_ringcap", stock);
	rt_nic_find(&nic, slot, stock);
	rt_nic_find(&peer, peer_slot, peer_stock);
	open_cluster();
	rt_nic_take(&peer, peer_stock, "peer");
	rt_nic_take(&nic, driver, "nic");
	rt_nic_set_mtu("peer", 9000);
	sender = rt_sender_open("peer");
	stack = rt_stack_open("nic");
	rt_queue_open(&queue, cluster, 0);
	for (kind = 0; kind < KINDS; kind++) {
		if (mode_kinds[kind].max_len > 1514)
			rt_nic_set_mtu("nic", 9000);
		if (kind)
			RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, RING), 0);
		rt_nic_wait_for_link("peer", "nic");
		for (mode = 1; mode <= 2; mode++)
			try_mode(driver, sender, stack, &queue, mode, kind);
	}
	rt_queue_close(&queue);
	rt_nic_release(&nic);
	RT_CHECK(rt_ring_set(&(struct rt_ring){ .name = "other", .outputs = { cluster }, .transparent = 2,
						.taps = { { rt_ifindex("peer"), RINGCAP_DIRECTION_RX } } }) == -EOPNOTSUPP,
		 "%s is not aware", peer_stock);
	rt_nic_release(&peer);
}

RT_CASE(modes_igb)
{
	try_driver(1, "igb", 2, "e1000e");
}

RT_CASE(modes_e1000e)
{
	try_driver(2, "e1000e", 1, "igb");
}

RT_CASE(modes_virtio_net)
{
	try_driver(3, "virtio_net", 4, "vmxnet3");
}

/* ---- under traffic ---- */

struct flood {
	int sender;
	volatile bool stop;
};

static void *flood(void *arg)
{
	struct flood *flood = arg;
	static u8 bytes[RT_PACKET_MAX];
	u32 len = rt_packet_build(&mode_kinds[0], 0, bytes);

	while (!flood->stop)
		if (send(flood->sender, bytes, len, 0) != (ssize_t)len)
			usleep(100);
	return NULL;
}

/* Ring and cluster agree whatever happens to the device. */
static void check_accounts(void)
{
	struct rt_queue_counts queues;
	struct rt_ring_counts ring;
	u64 sum = 0;
	u32 i;

	rt_ring_counts(RING, &ring);
	rt_cluster_counts(cluster, &queues);
	for (i = 0; i < RINGCAP_DROP_REASONS; i++)
		sum += queues.dropped[i];
	RT_CHECK(ring.seen, "nothing came");
	RT_EQUAL(ring.seen, ring.passed);
	RT_EQUAL(ring.passed, queues.delivered + sum);
}

static void churn(u32 slot, const char *stock, u32 peer_slot, const char *peer_stock)
{
	struct rt_nic nic, peer;
	struct flood sender = {};
	char driver[32];
	pthread_t thread;
	u32 round;

	snprintf(driver, sizeof(driver), "%s_ringcap", stock);
	rt_nic_find(&nic, slot, stock);
	rt_nic_find(&peer, peer_slot, peer_stock);
	open_cluster();
	rt_nic_take(&peer, peer_stock, "peer");
	sender.sender = rt_sender_open("peer");
	RT_CHECK(!pthread_create(&thread, NULL, flood, &sender), "no thread");
	for (round = 0; round < 3; round++) {
		rt_nic_take(&nic, driver, "nic");
		ring_on("nic", 1 + round % 2);
		RT_EVENTUALLY(rt_ring_seen(RING) > 20, 10000);
		rt_nic_set_mtu("nic", 4000);
		RT_EQUAL(rt_link_set_up("nic", false), 0);
		RT_EQUAL(rt_link_set_up("nic", true), 0);
		RT_EQUAL(rt_link_rename("nic", "other"), 0);
		RT_EQUAL(rt_link_rename("other", "nic"), 0);
		ring_on("nic", 2 - round % 2);
		/* With the ring on it. */
		rt_nic_release(&nic);
		check_accounts();
		RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, RING), 0);
		RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, cluster), 0);
		open_cluster();
	}
	sender.stop = true;
	pthread_join(thread, NULL);
	rt_nic_release(&peer);
}

RT_CASE(churn_igb)
{
	churn(1, "igb", 2, "e1000e");
}

RT_CASE(churn_e1000e)
{
	churn(2, "e1000e", 1, "igb");
}
