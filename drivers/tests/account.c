// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "account.h"

#include <linux/filter.h>
#include <sched.h>
#include <unistd.h>

#include "control.h"
#include "link.h"
#include "nic.h"
#include "stack.h"
#include "traffic.h"
#include "watch.h"

#define RING "account"
#define SOME_PACKETS 30
#define TIMEOUT_MS 60000
#define CARRIER_MS 30000
#define LOOK_US 10000
#define SHORT 200U	/* shorter packets are filtered out */
#define SAMPLE 4U	/* one in so many of the others is kept */

static const struct sock_filter not_short[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SHORT, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	BPF_STMT(BPF_RET | BPF_K, 0),
};

static void put_sample(struct rt_message *message, const void *arg)
{
	(void)arg;
	rt_message_put_u32(message, RINGCAP_A_SAMPLE, SAMPLE);
}

static void set_ring(const struct rt_account *account, u32 mode)
{
	const struct rt_ring ring = {
		.name = RING, .taps = { { rt_ifindex(account->interface), RINGCAP_DIRECTION_RX } }, .transparent = mode,
		.outputs = { account->cluster }, .promiscuous = 1, .more = put_sample, .filter = not_short,
		.filter_len = sizeof(not_short) / sizeof(not_short[0]),
	};

	RT_CHECK(!rt_ring_set(&ring), "%s, mode %u: %s", account->interface, mode, rt_reason);
}

/* The following functions leave the CPU to the traffic for a moment. */
static bool is_ready(const char *interface)
{
	usleep(LOOK_US);
	return rt_link_is_ready(interface);
}

static bool has_seen(u64 packets)
{
	usleep(LOOK_US);
	return rt_ring_seen(RING) >= packets;
}

void rt_account_open(struct rt_account *account, const char *interface, enum rt_counter counter, u32 mode, const char *peer)
{
	static u32 number;

	*account = (struct rt_account){ .interface = interface, .counter = counter, .mode = mode };
	/* All namespaces share the cluster names, and the last cluster may not be freed yet. So each gets another name. */
	snprintf(account->cluster, sizeof(account->cluster), "account-%d-%u", getpid(), number++);
	RT_EVENTUALLY(is_ready(interface), CARRIER_MS);
	RT_EQUAL(rt_link_set_up(interface, false), 0);
	account->before = rt_nic_received(interface);
	rt_control_open();
	RT_EQUAL(rt_cluster_set(&(struct rt_cluster){ .name = account->cluster, .lane_size = 1U << 20 }), 0);
	set_ring(account, mode);
	rt_queue_open(&account->queue, account->cluster, 0);
	account->watch = rt_watch_open();
	account->stack = rt_stack_open(NULL);
	rt_stack_count(account->stack);
	rt_flood_start(&account->flood, peer, &account->queue);
	RT_EQUAL(rt_link_set_up(interface, true), 0);
	rt_account_wait(account);
}

void rt_account_change_mode(struct rt_account *account, u32 mode)
{
	set_ring(account, mode);
	account->mode = 0;
}

void rt_account_wait(const struct rt_account *account)
{
	u64 before = rt_ring_seen(RING);

	if (account->counter == RT_COUNTER_DEVICE)
		rt_account_leave(account);
	RT_EVENTUALLY(has_seen(before + SOME_PACKETS), TIMEOUT_MS);
}

static void check_ring(const struct rt_account *account, const struct rt_ring_counts *ring)
{
	struct rt_queue_counts queues;
	u64 dropped = 0;
	u32 i;

	rt_cluster_counts(account->cluster, &queues);
	for (i = 0; i < RINGCAP_DROP_REASONS; i++)
		dropped += queues.dropped[i];
	RT_CHECK(ring->filtered && ring->sampled_out && queues.delivered, "hardly anything came");
	RT_EQUAL(ring->seen, ring->filtered + ring->sampled_out + ring->passed);
	RT_EQUAL(ring->passed, queues.delivered + dropped);
	RT_EQUAL(account->flood.read, queues.delivered);
}

static void check_others(const struct rt_account *account, u64 seen, u64 received, u64 stack)
{
	if (account->counter == RT_COUNTER_EXACT)
		RT_EQUAL(received, seen);
	else if (account->counter == RT_COUNTER_DEVICE)
		RT_CHECK(received >= seen, "the device took %llu, the ring has seen %llu", (unsigned long long)received,
			 (unsigned long long)seen);
	if (account->mode)
		RT_EQUAL(stack, account->mode == 2 ? 0 : seen);
}

static void settle(struct rt_account *account, u64 received)
{
	struct rt_ring_counts ring;

	rt_flood_stop(&account->flood);
	rt_ring_counts(RING, &ring);
	check_ring(account, &ring);
	check_others(account, ring.seen, received - account->before, rt_stack_count(account->stack));
	printf("# %s, mode %u: %llu seen, %llu received, %llu read\n", account->interface, account->mode,
	       (unsigned long long)ring.seen, (unsigned long long)(received - account->before),
	       (unsigned long long)account->flood.read);
	close(account->stack);
	rt_queue_close(&account->queue);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, RING), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, account->cluster), 0);
}

void rt_account_leave(const struct rt_account *account)
{
	RT_EVENTUALLY(is_ready(account->interface), CARRIER_MS);
}

void rt_account_close_gone(struct rt_account *account)
{
	settle(account, rt_watch_received(account->watch, account->interface));
}

void rt_account_close(struct rt_account *account)
{
	rt_account_leave(account);
	RT_EQUAL(rt_link_set_up(account->interface, false), 0);
	close(account->watch);
	settle(account, rt_nic_received(account->interface));
}
