// SPDX-License-Identifier: GPL-2.0-only
/*
 * Virtual functions of an aware igb. They come and go while the physical function is captured. They are also captured
 * themselves.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include "account.h"
#include "control.h"
#include "link.h"
#include "mode.h"
#include "nic.h"
#include "traffic.h"

#define FUNCTIONS 2

/* All cases start with the aware igb as @name, and with an e1000e that sends to it. */
static void take_both(struct rt_nic *igb, struct rt_nic *peer, const char *name)
{
	rt_nic_find(igb, 1, "igb");
	rt_nic_find(peer, 2, "e1000e");
	rt_nic_take(peer, "e1000e", "peer");
	rt_nic_take(igb, "igb_ringcap", name);
	rt_nic_set_mtu("peer", 9000);
	rt_nic_set_functions(igb, 0);
}

static void release_both(const struct rt_nic *igb, const struct rt_nic *peer)
{
	rt_nic_release(igb);
	rt_nic_release(peer);
}

/* When virtual functions are created or removed, the card restarts with other queues and counts from 0. */
static void capture_on_physical(u32 mode)
{
	struct rt_account account;
	struct rt_nic igb, peer;
	u32 round;

	take_both(&igb, &peer, "nic");
	rt_account_open(&account, "nic", RT_COUNTER_RESET, mode, "peer");
	for (round = 0; round < 2; round++) {
		rt_nic_set_functions(&igb, FUNCTIONS);
		rt_account_wait(&account);
		rt_nic_set_functions(&igb, 0);
		rt_account_wait(&account);
	}
	rt_nic_set_functions(&igb, FUNCTIONS);
	rt_account_wait(&account);
	rt_account_close(&account);
	/* This is with virtual functions. */
	RT_EQUAL(rt_link_set_up("nic", true), 0);
	rt_account_open(&account, "nic", RT_COUNTER_EXACT, mode, "peer");
	rt_account_wait(&account);
	rt_account_close(&account);
	rt_nic_set_functions(&igb, 0);
	release_both(&igb, &peer);
}

RT_CASE(sriov_physical_mode1)
{
	capture_on_physical(1);
}

RT_CASE(sriov_physical_mode2)
{
	capture_on_physical(2);
}

/* Takes a function with the destination address of struct rt_traffic, so that the card forwards packets to it. */
static void take_function(const struct rt_nic *igb, struct rt_nic *function)
{
	rt_nic_set_functions(igb, FUNCTIONS);
	rt_ip("link set physical vf 0 mac 02:00:00:00:00:02");
	rt_nic_find_function(function, igb, 0);
	rt_nic_take(function, "igbvf_ringcap", "nic");
}

RT_CASE(sriov_virtual_captured)
{
	struct rt_nic igb, peer, function;

	take_both(&igb, &peer, "physical");
	rt_nic_set_mtu("physical", 9000);
	take_function(&igb, &function);
	/* Without this, the card does not forward tagged packets to it. */
	RT_EQUAL(rt_link_add_vlan("nic", "tagged", 42, 1), 0);
	rt_mode_try_all("igbvf_ringcap", 1);
	rt_nic_release(&function);
	release_both(&igb, &peer);
}

/* The function is removed under traffic, with a ring on it. */
RT_CASE(sriov_virtual_removed)
{
	struct rt_nic igb, peer, function;
	struct rt_account account;
	u32 mode;

	take_both(&igb, &peer, "physical");
	rt_nic_set_mtu("physical", 9000);
	for (mode = 1; mode <= 2; mode++) {
		take_function(&igb, &function);
		rt_nic_set_mtu("nic", 9000);
		rt_account_open(&account, "nic", RT_COUNTER_EXACT, mode, "peer");
		rt_account_leave(&account);
		rt_nic_set_functions(&igb, 0);
		rt_account_close_gone(&account);
	}
	release_both(&igb, &peer);
}

/* Moves the function to the namespace @to and sets it up. The ring's namespace is @home. */
static void move_function(int from, int to, int home)
{
	RT_CHECK(!setns(from, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_move("nic", to), 0);
	RT_CHECK(!setns(to, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_set_up("nic", true), 0);
	RT_EVENTUALLY(rt_link_is_ready("nic"), 30000);
	RT_CHECK(!setns(home, CLONE_NEWNET), "%m");
}

/* The first packet that is seen shows that the card forwards. From then on, every packet is seen. */
static void check_followed(int sender, u32 *next)
{
	const struct rt_traffic traffic = { .flows = 3 };
	u64 before = rt_ring_seen("follow"), seen;
	u32 tries;

	for (tries = 0; rt_ring_seen("follow") == before; tries++) {
		RT_CHECK(tries < 300, "nothing of %u packets arrives", tries);
		rt_send(sender, &traffic, (*next)++, 1);
		usleep(50000);
	}
	/* Other packets of the first ones may still be on their way. */
	do {
		seen = rt_ring_seen("follow");
		usleep(500000);
	} while (rt_ring_seen("follow") != seen);
	rt_send(sender, &traffic, *next, 50);
	*next += 50;
	RT_EVENTUALLY(rt_ring_seen("follow") == seen + 50, 10000);
}

/*
 * A virtual function moves into a container and back, twice, and stays when the container ends. The ring sees its
 * packets in each namespace.
 */
RT_CASE(sriov_virtual_follows)
{
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), pod, sender;
	struct rt_nic igb, peer, function;
	struct rt_ring ring = { .name = "follow", .follows = 1 };
	u32 next = 0, round;

	rt_control_open();
	take_both(&igb, &peer, "physical");
	RT_EQUAL(rt_link_set_up("physical", true), 0);
	take_function(&igb, &function);
	RT_EQUAL(rt_link_set_up("nic", true), 0);
	RT_EVENTUALLY(rt_link_is_ready("nic") && rt_link_is_ready("peer"), 30000);
	RT_CHECK(home >= 0 && !unshare(CLONE_NEWNET), "%m");
	pod = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	RT_CHECK(pod >= 0 && !setns(home, CLONE_NEWNET), "%m");
	sender = rt_sender_open("peer");
	ring.taps[0] = (struct rt_tap){ rt_ifindex("nic"), RINGCAP_DIRECTION_RX };
	RT_CHECK(!rt_ring_set(&ring), "%s", rt_reason);
	for (round = 0; round < 2; round++) {
		check_followed(sender, &next);
		move_function(home, pod, home);
		check_followed(sender, &next);
		move_function(pod, home, home);
	}
	move_function(home, pod, home);
	close(pod);
	pod = open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC);
	RT_CHECK(pod >= 0 && !setns(pod, CLONE_NEWNET), "%m");
	RT_EVENTUALLY(if_nametoindex("nic"), 20000);
	move_function(pod, home, home);
	check_followed(sender, &next);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, "follow"), 0);
	rt_nic_release(&function);
	release_both(&igb, &peer);
}
