// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes of a network card during capture. Its link flaps, its MTU and its rings change, it is renamed, it moves to
 * another namespace, it loses its driver, or the driver is reloaded. All this happens under traffic, and the counters
 * are exact.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "account.h"
#include "link.h"
#include "nic.h"
#include "stack.h"
#include "traffic.h"

#define LONG_MTU 9000

/**
 * struct cable - an aware driver and the device that sends to it
 * @slot, @stock: its device and the stock driver, see rt_nic_find()
 * @peer_slot, @peer_stock: the other end of the cable
 */
struct cable {
	u32 slot;
	const char *stock;
	u32 peer_slot;
	const char *peer_stock;
	enum rt_counter counter;
};

static const struct cable igb = { 1, "igb", 2, "e1000e", RT_COUNTER_EXACT };
static const struct cable e1000e = { 2, "e1000e", 1, "igb", RT_COUNTER_DEVICE };
static const struct cable virtio_net = { 3, "virtio_net", 4, "vmxnet3", RT_COUNTER_EXACT };
static const struct cable vmxnet3 = { 4, "vmxnet3", 3, "virtio_net", RT_COUNTER_RESET };

static void driver_name(const struct cable *cable, char name[32])
{
	snprintf(name, 32, "%s_ringcap", cable->stock);
}

static void take_peer(const struct cable *cable, struct rt_nic *peer)
{
	rt_nic_find(peer, cable->peer_slot, cable->peer_stock);
	rt_nic_take(peer, cable->peer_stock, "peer");
	rt_nic_set_mtu("peer", LONG_MTU);
}

/* Takes the card, and puts a ring with @mode on it. */
static void take(const struct cable *cable, struct rt_nic *nic, struct rt_account *account, u32 mode)
{
	char driver[32];

	driver_name(cable, driver);
	rt_nic_find(nic, cable->slot, cable->stock);
	rt_nic_take(nic, driver, "nic");
	rt_account_open(account, "nic", cable->counter, mode, "peer");
}

/* ---- what happens to it ---- */

static void flap(struct rt_account *account)
{
	RT_EQUAL(rt_link_set_up("nic", false), 0);
	RT_EQUAL(rt_link_set_up("nic", true), 0);
	rt_account_wait(account);
}

static void change_mtu(struct rt_account *account)
{
	rt_nic_set_mtu("nic", LONG_MTU);
	rt_account_wait(account);
	rt_nic_set_mtu("nic", 1500);
	rt_account_wait(account);
}

static void change_descriptors(struct rt_account *account)
{
	rt_nic_set_descriptors("nic", 128);
	rt_account_wait(account);
	rt_nic_set_descriptors("nic", 256);
	rt_account_wait(account);
}

static void rename_to(struct rt_account *account, const char *name)
{
	RT_EQUAL(rt_link_rename(account->interface, name), 0);
	account->interface = name;
	rt_account_wait(account);
}

static void everything(struct rt_account *account)
{
	flap(account);
	change_mtu(account);
	change_descriptors(account);
	rename_to(account, "other");
	rename_to(account, "nic");
	rt_account_leave(account);
}

/* Unloads the driver's module and loads it again, which binds it to the device. */
static void reload(const struct cable *cable)
{
	char driver[32], path[64];
	int fd;

	driver_name(cable, driver);
	RT_CHECK(!syscall(SYS_delete_module, driver, O_NONBLOCK), "%s: %m", driver);
	snprintf(path, sizeof(path), "/drivers/%s.ko", driver);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	RT_CHECK(fd >= 0 && !syscall(SYS_finit_module, fd, "", 0), "%s: %m", path);
	close(fd);
}

static void churn(const struct cable *cable)
{
	struct rt_account account;
	struct rt_nic nic, peer;

	take_peer(cable, &peer);
	take(cable, &nic, &account, 1);
	everything(&account);
	rt_nic_release(&nic);
	rt_account_close_gone(&account);
	take(cable, &nic, &account, 2);
	everything(&account);
	reload(cable);
	rt_account_close_gone(&account);
	rt_nic_release(&nic);
	rt_nic_release(&peer);
}

RT_CASE(churn_igb)
{
	churn(&igb);
}

RT_CASE(churn_e1000e)
{
	churn(&e1000e);
}

RT_CASE(churn_virtio_net)
{
	churn(&virtio_net);
}

RT_CASE(churn_vmxnet3)
{
	churn(&vmxnet3);
}

/* ---- to another namespace ---- */

static int other_namespace(int own)
{
	int other;

	RT_CHECK(!unshare(CLONE_NEWNET), "%m");
	rt_write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	other = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	RT_CHECK(other >= 0 && !setns(own, CLONE_NEWNET), "%m");
	return other;
}

/* There is no ring: the stack gets all packets that the driver receives. */
static void live_elsewhere(enum rt_counter counter)
{
	u64 before = rt_nic_received("nic"), count = 0;
	int stack = rt_stack_open(NULL);

	rt_stack_count(stack);
	RT_EQUAL(rt_link_set_up("nic", true), 0);
	RT_EVENTUALLY((count += rt_stack_count(stack)) > 50 && rt_link_is_ready("nic"), 60000);
	RT_EQUAL(rt_link_set_up("nic", false), 0);
	count += rt_stack_count(stack);
	if (counter == RT_COUNTER_EXACT)
		RT_EQUAL(rt_nic_received("nic") - before, count);
	close(stack);
}

/* The ring's mode also changes meanwhile. */
static void move(const struct cable *cable)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), other = other_namespace(own);
	struct rt_account account;
	struct rt_nic nic, peer;

	take_peer(cable, &peer);
	take(cable, &nic, &account, 1);
	rt_account_change_mode(&account, 2);
	rt_account_wait(&account);
	rt_account_change_mode(&account, 1);
	rt_account_wait(&account);
	rt_account_leave(&account);
	RT_EQUAL(rt_link_move("nic", other), 0);
	RT_CHECK(!setns(other, CLONE_NEWNET), "%m");
	live_elsewhere(cable->counter);
	RT_CHECK(!setns(own, CLONE_NEWNET), "%m");
	rt_account_close_gone(&account);
	rt_nic_release(&nic);
	rt_nic_release(&peer);
}

RT_CASE(move_igb)
{
	move(&igb);
}

RT_CASE(move_e1000e)
{
	move(&e1000e);
}

RT_CASE(move_virtio_net)
{
	move(&virtio_net);
}

RT_CASE(move_vmxnet3)
{
	move(&vmxnet3);
}
