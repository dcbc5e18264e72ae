// SPDX-License-Identifier: GPL-2.0-only
/* Transparent modes on emulated network cards, polled by softirqs and by threads. */
#define _GNU_SOURCE
#include "control.h"
#include "mode.h"
#include "nic.h"
#include "polling.h"
#include "traffic.h"

/* The card is polled by threads or by softirqs. */
static void try_driver(u32 slot, const char *stock, u32 queues, u32 peer_slot, const char *peer_stock, bool threads)
{
	struct rt_nic nic, peer;
	char driver[32];
	u64 waits;

	snprintf(driver, sizeof(driver), "%s_ringcap", stock);
	rt_nic_find(&nic, slot, stock);
	rt_nic_find(&peer, peer_slot, peer_stock);
	rt_nic_take(&peer, peer_stock, "peer");
	rt_nic_take(&nic, driver, "nic");
	if (threads)
		rt_polling_by_threads("nic");
	waits = rt_polling_waits("nic");
	rt_mode_try_all(driver, queues);
	waits = rt_polling_waits("nic") - waits;
	RT_CHECK(threads ? waits > 20 : !waits, "threads polled %llu times", (unsigned long long)waits);
	RT_CHECK(rt_ring_set(&(struct rt_ring){ .name = "other", .transparent = 2,
						.taps = { { rt_ifindex("peer"), RINGCAP_DIRECTION_RX } } }) == -EOPNOTSUPP,
		 "%s is not aware", peer_stock);
	rt_nic_release(&nic);
	rt_nic_release(&peer);
}

RT_CASE(modes_igb)
{
	try_driver(1, "igb", 2, 2, "e1000e", false);
}

RT_CASE(modes_e1000e)
{
	try_driver(2, "e1000e", 1, 1, "igb", false);
}

RT_CASE(modes_virtio_net)
{
	try_driver(3, "virtio_net", 1, 4, "vmxnet3", false);
}

RT_CASE(modes_virtio_queues)
{
	try_driver(5, "virtio_net", 2, 6, "virtio_net", false);
}

RT_CASE(modes_vmxnet3)
{
	try_driver(4, "vmxnet3", 1, 3, "virtio_net", false);
}

RT_CASE(threaded_igb)
{
	try_driver(1, "igb", 2, 2, "e1000e", true);
}

RT_CASE(threaded_virtio_net)
{
	try_driver(3, "virtio_net", 1, 4, "vmxnet3", true);
}
