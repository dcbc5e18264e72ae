// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "mode.h"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "consumer.h"
#include "control.h"
#include "link.h"
#include "nic.h"
#include "stack.h"
#include "traffic.h"

#define COUNT 300U
#define LATE_MS 5000
#define RING "modes-ring"

/*
 * A card's hash key is random, and its hash is linear. With few addresses, and without ports in the hash of UDP
 * packets, all flows came to one queue in one of 32 runs.
 */
static const struct rt_traffic mode_kinds[] = {
	{ .flows = COUNT, .min_len = 60, .max_len = 1514 },
	{ .flows = COUNT, .min_len = 64, .max_len = 1400, .tpid = { 0x8100 }, .tci = { 42 } },
	{ .flows = COUNT, .min_len = 1600, .max_len = 8000 },
};

/* All namespaces share the cluster names, and the last case's cluster may not be freed yet. */
static char cluster[RINGCAP_NAME_MAX + 1];

#define KINDS (sizeof(mode_kinds) / sizeof(mode_kinds[0]))

static void ring_on(const char *interface, u32 mode)
{
	RT_CHECK(!rt_ring_set(&(struct rt_ring){ .name = RING, .taps = { { rt_ifindex(interface), RINGCAP_DIRECTION_RX } },
						 .outputs = { cluster }, .transparent = mode, .promiscuous = 1 }),
		 "%s, mode %u: %s", interface, mode, rt_reason);
}

/* The stack and the driver's counter get the packets at the end of a poll, later than the ring. */
static void check_others(const char *driver, int stack, u64 before, u32 mode, u32 kind)
{
	u64 want = mode == 2 ? 0 : COUNT, count = 0;

	RT_EVENTUALLY((count += rt_stack_count(stack)) >= want, LATE_MS);
	RT_EVENTUALLY(rt_nic_received("nic") - before >= COUNT, LATE_MS);
	RT_EQUAL(rt_nic_received("nic") - before, COUNT);
	count += rt_stack_count(stack);
	RT_CHECK(count == want, "%s, mode %u, kind %u: %llu in the stack", driver, mode, kind, (unsigned long long)count);
}

/* A queue for each of the card's queues. */
struct readers {
	struct rt_queue queues[RT_MODE_QUEUES];
	u32 number;
};

/* Checks that the ring gets each packet once and whole, and the stack each or none. */
static void try_mode(const char *driver, int sender, int stack, struct readers *readers, u32 mode, u32 kind)
{
	u32 first = (mode * (u32)KINDS + kind) * COUNT;
	struct rt_receiver receiver;
	u64 seen, before = rt_nic_received("nic");

	ring_on("nic", mode);
	rt_receiver_init(&receiver, &mode_kinds[kind], rt_ifindex("nic"), first + COUNT);
	rt_stack_count(stack);
	seen = rt_ring_seen(RING);
	rt_exchange(sender, &mode_kinds[kind], first, COUNT, readers->queues, readers->number, &receiver);
	RT_CHECK(receiver.count == COUNT, "%s, mode %u, kind %u: %llu of %u in the ring", driver, mode, kind,
		 (unsigned long long)receiver.count, COUNT);
	RT_EQUAL(rt_ring_seen(RING) - seen, COUNT);
	check_others(driver, stack, before, mode, kind);
	free(receiver.seen);
}

static void open_readers(struct readers *readers, u32 number)
{
	u32 i;

	rt_control_open();
	snprintf(cluster, sizeof(cluster), "modes-%d", getpid());
	RT_EQUAL(rt_cluster_set(&(struct rt_cluster){ .name = cluster, .lane_size = 1U << 22, .queues = number,
						      .balance = RINGCAP_BALANCE_RX_QUEUE }), 0);
	readers->number = number;
	for (i = 0; i < number; i++)
		rt_queue_open(&readers->queues[i], cluster, i);
}

static void close_readers(struct readers *readers, const char *driver)
{
	struct rt_queue_counts counts;
	u32 i;

	for (i = 0; i < readers->number; i++) {
		rt_queue_counts(cluster, i, &counts);
		RT_CHECK(counts.delivered, "%s received nothing by its queue %u", driver, i);
		rt_queue_close(&readers->queues[i]);
	}
}

void rt_mode_try_all(const char *driver, u32 queues)
{
	int sender = rt_sender_open("peer"), stack = rt_stack_open("nic");
	struct readers readers;
	u32 kind, mode;

	open_readers(&readers, queues);
	rt_nic_set_mtu("peer", 9000);
	for (kind = 0; kind < KINDS; kind++) {
		if (mode_kinds[kind].max_len > 1514)
			rt_nic_set_mtu("nic", 9000);
		rt_nic_wait_for_link("peer", "nic");
		for (mode = 1; mode <= 2; mode++)
			try_mode(driver, sender, stack, &readers, mode, kind);
		RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, RING), 0);
	}
	close_readers(&readers, driver);
	close(stack);
	close(sender);
}
