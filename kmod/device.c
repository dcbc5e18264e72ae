// SPDX-License-Identifier: GPL-2.0-only

#include "device.h"

#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "event.h"
#include "hold.h"
#include "net.h"
#include "pair.h"
#include "proc_device.h"
#include "ring.h"
#include "tap.h"
#include "tap_set.h"
#include "worker.h"

static struct work_struct rc_device_work;

static void rc_device_end_tap(struct rc_tap *tap)
{
	struct rc_ring *ring = tap->ring;
	u32 ifindex = tap->ifindex;
	LIST_HEAD(gone);

	list_move(&tap->list, &gone);
	rc_tap_remove_all(&gone);
	rc_event_tap_gone(ring->rc_net->net, ring->name, ifindex);
}

/* A device that moves to another namespace is unregistered from this one too, but its state stays registered. */
static void rc_device_leaves(struct rc_ring *ring, const struct net_device *dev)
{
	bool moves = dev->reg_state == NETREG_REGISTERED;
	struct rc_tap *tap, *next;

	list_for_each_entry_safe(tap, next, &ring->taps, list)
		if (tap->packet_type.dev == dev && !(moves && tap->follows))
			rc_device_end_tap(tap);
}

/* Ends the taps that followed @dev to the namespace in which it is unregistered now. */
static void rc_device_end_followers(const struct net_device *dev)
{
	struct rc_tap *tap, *next;

	list_for_each_entry_safe(tap, next, &rc_tap_followers, followers)
		if (tap->packet_type.dev == dev)
			rc_device_end_tap(tap);
}

/* Whether the tap is back with its device, but the device has another index. Then the tap is not found by the index. */
static bool rc_device_has_lost(const struct rc_tap *tap)
{
	return !rc_tap_is_away(tap) && tap->ifindex != tap->packet_type.dev->ifindex;
}

/*
 * Lost taps end here, not in the notifier. The notifier may hold the lock of the device's operations, and the end of
 * promiscuity takes that lock. A listed tap has a device: both go under RTNL.
 */
static void rc_device_end_lost(struct work_struct *work)
{
	struct rc_tap *tap, *next;

	rtnl_lock();
	list_for_each_entry_safe(tap, next, &rc_tap_followers, followers)
		if (rc_device_has_lost(tap)) {
			rc_proc_devices_follow_later(tap->ring->rc_net);
			rc_device_end_tap(tap);
		}
	rtnl_unlock();
}

static void rc_device_returns(const struct net_device *dev)
{
	const struct rc_tap *tap;

	list_for_each_entry(tap, &rc_tap_followers, followers)
		if (tap->packet_type.dev == dev && rc_device_has_lost(tap))
			rc_worker_schedule(&rc_device_work);
}

static int rc_device_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct net_device *dev = netdev_notifier_info_to_dev(data);
	struct rc_net *this = rc_net(dev_net(dev));
	struct rc_ring *ring;

	if (event == NETDEV_PRECHANGEUPPER)
		return notifier_from_errno(rc_pair_check_upper(data));
	if (event == NETDEV_UNREGISTER)
		list_for_each_entry(ring, &this->rings, list)
			rc_device_leaves(ring, dev);
	/* rc_egress, whose notifier comes first, has seen to it that nothing more is sent there. */
	if (event == NETDEV_UNREGISTER)
		rc_hold_forget_device(dev);
	if (event == NETDEV_UNREGISTER && dev->reg_state != NETREG_REGISTERED)
		rc_device_end_followers(dev);
	if (event == NETDEV_REGISTER)
		rc_device_returns(dev);
	if ((event == NETDEV_REGISTER || event == NETDEV_UNREGISTER || event == NETDEV_CHANGENAME) &&
	    !list_empty(&this->rings))
		rc_proc_devices_follow_later(this);
	return NOTIFY_DONE;
}

static struct notifier_block rc_device_notifier = {
	.notifier_call = rc_device_event,
};

int rc_device_module_init(void)
{
	INIT_WORK(&rc_device_work, rc_device_end_lost);
	return register_netdevice_notifier(&rc_device_notifier);
}

void rc_device_module_exit(void)
{
	struct rc_tap *tap, *next;

	/* Other taps end below: unregistering the notifier reports each device as if it went. */
	rtnl_lock();
	list_for_each_entry_safe(tap, next, &rc_tap_followers, followers)
		rc_device_end_tap(tap);
	rtnl_unlock();
	unregister_netdevice_notifier(&rc_device_notifier);
	cancel_work_sync(&rc_device_work);
}
