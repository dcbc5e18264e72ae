// SPDX-License-Identifier: GPL-2.0-only
/* ringcap_driver.ko: connects capture-aware network drivers with ringcap.ko. See linux/ringcap_driver.h. */

#include <linux/export.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/ringcap_driver.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/static_call.h>

#include "../version.h"

/**
 * struct rc_device - a device with a capture-aware driver
 * @node: in rc_devices
 * @dev: no reference is held: the entry is removed when the device is
 * @taps: ringcap.ko's, NULL = none; written under RTNL
 * @frame_taps: the same if frames are to be offered too, else NULL
 * @offers: RINGCAP_OFFERS_*
 * @registered: @dev is registered; else its driver is about to register it
 * @rcu: readers may still use the entry when it is removed
 */
struct rc_device {
	struct hlist_node node;
	const struct net_device *dev;
	void __rcu *taps;
	void __rcu *frame_taps;
	unsigned int offers;
	bool registered;
	struct rcu_head rcu;
};

static DEFINE_HASHTABLE(rc_devices, 8);		/* read under RCU */
static DEFINE_MUTEX(rc_devices_lock);		/* held for writing; taken after RTNL, if both are */

DEFINE_STATIC_KEY_FALSE(ringcap_driver_wanted);
EXPORT_SYMBOL_GPL(ringcap_driver_wanted);
DEFINE_STATIC_KEY_FALSE(ringcap_driver_frames_wanted);
EXPORT_SYMBOL_GPL(ringcap_driver_frames_wanted);

static bool rc_hook_no_skb(struct sk_buff *skb, u16 rx_queue, void *taps)
{
	return false;
}

static bool rc_hook_no_frame(struct net_device *dev, const struct ringcap_frame *frame, void *taps)
{
	return false;
}

DEFINE_STATIC_CALL(rc_hook_skb, rc_hook_no_skb);
DEFINE_STATIC_CALL(rc_hook_frame, rc_hook_no_frame);

/* Under RCU, or rc_devices_lock. */
static __always_inline struct rc_device *rc_device_find(const struct net_device *dev)
{
	struct rc_device *device;

	hash_for_each_possible_rcu(rc_devices, device, node, (unsigned long)dev, lockdep_is_held(&rc_devices_lock))
		if (device->dev == dev)
			return device;
	return NULL;
}

/* ---- packets ---- */

/*
 * Accounts and lanes belong to a CPU only while its bottom halves are off. If a driver calls us otherwise, we decline
 * the packet, and it goes to the stack.
 */
static __always_inline bool rc_device_may(void)
{
	return likely(in_softirq() && !in_hardirq());
}

/* A grace period waits for disabled bottom halves as it does for RCU's lock. Only lockdep needs the lock. */
static __always_inline void rc_device_read_lock(void)
{
	if (IS_ENABLED(CONFIG_PROVE_RCU))
		rcu_read_lock();
}

static __always_inline void rc_device_read_unlock(void)
{
	if (IS_ENABLED(CONFIG_PROVE_RCU))
		rcu_read_unlock();
}

bool __ringcap_rx_skb(struct sk_buff *skb, u16 rx_queue)
{
	const struct rc_device *device;
	bool taken = false;
	void *taps;

	if (!rc_device_may())
		return false;
	rc_device_read_lock();
	device = rc_device_find(skb->dev);
	taps = device ? rcu_dereference(device->taps) : NULL;
	if (taps)
		taken = static_call(rc_hook_skb)(skb, rx_queue, taps);
	rc_device_read_unlock();
	return taken;
}
EXPORT_SYMBOL_GPL(__ringcap_rx_skb);

bool __ringcap_rx_frame(struct net_device *dev, const struct ringcap_frame *frame)
{
	const struct rc_device *device;
	bool taken = false;
	void *taps;

	if (!rc_device_may())
		return false;
	rc_device_read_lock();
	device = rc_device_find(dev);
	taps = device ? rcu_dereference(device->frame_taps) : NULL;
	if (taps)
		taken = static_call(rc_hook_frame)(dev, frame, taps);
	rc_device_read_unlock();
	return taken;
}
EXPORT_SYMBOL_GPL(__ringcap_rx_frame);

/* ---- the life of a device ---- */

/* Replaces the pointer at @place by @taps; the drivers' branch @wanted is enabled while there are any. */
static void rc_device_replace(void __rcu **place, void *taps, struct static_key_false *wanted)
{
	void *old = rcu_replace_pointer(*place, taps, lockdep_is_held(&rc_devices_lock));

	if (taps && !old)
		static_branch_inc(wanted);
	else if (old && !taps)
		static_branch_dec(wanted);
}

/* Under rc_devices_lock. */
static void rc_device_set(struct rc_device *device, void *taps, void *frame_taps)
{
	rc_device_replace(&device->taps, taps, &ringcap_driver_wanted);
	rc_device_replace(&device->frame_taps, frame_taps, &ringcap_driver_frames_wanted);
}

static void rc_device_remove(struct rc_device *device)
{
	hash_del_rcu(&device->node);
	rc_device_set(device, NULL, NULL);
	kfree_rcu(device, rcu);
}

void ringcap_device_register(struct net_device *dev, unsigned int offers)
{
	struct rc_device *device = kzalloc(sizeof(*device), GFP_KERNEL);

	if (!device)
		return;
	device->dev = dev;
	device->offers = offers;
	mutex_lock(&rc_devices_lock);
	hash_add_rcu(rc_devices, &device->node, (unsigned long)dev);
	mutex_unlock(&rc_devices_lock);
}
EXPORT_SYMBOL_GPL(ringcap_device_register);

void ringcap_device_forget(struct net_device *dev)
{
	struct rc_device *device;

	mutex_lock(&rc_devices_lock);
	device = rc_device_find(dev);
	if (device)
		rc_device_remove(device);
	mutex_unlock(&rc_devices_lock);
}
EXPORT_SYMBOL_GPL(ringcap_device_forget);

/* A device that moves to another namespace is unregistered there and registered here. It remains the same device. */
static int rc_device_event(struct notifier_block *notifier, unsigned long event, void *data)
{
	const struct net_device *dev = netdev_notifier_info_to_dev(data);
	struct rc_device *device;

	if (event != NETDEV_REGISTER && event != NETDEV_UNREGISTER)
		return NOTIFY_DONE;
	mutex_lock(&rc_devices_lock);
	device = rc_device_find(dev);
	if (device && event == NETDEV_REGISTER)
		device->registered = true;
	else if (device && dev->reg_state != NETREG_REGISTERED)
		rc_device_remove(device);
	mutex_unlock(&rc_devices_lock);
	return NOTIFY_DONE;
}

static struct notifier_block rc_device_notifier = {
	.notifier_call = rc_device_event,
};

/* ---- ringcap.ko ---- */

static void rc_device_attach(const struct ringcap_hooks *hooks)
{
	ASSERT_RTNL();
	static_call_update(rc_hook_skb, hooks->rx_skb);
	static_call_update(rc_hook_frame, hooks->rx_frame);
}

static void rc_device_detach(void)
{
	ASSERT_RTNL();
	static_call_update(rc_hook_skb, rc_hook_no_skb);
	static_call_update(rc_hook_frame, rc_hook_no_frame);
	/* After this no CPU is in a hook. */
	synchronize_net();
}

static unsigned int rc_device_offers(const struct net_device *dev)
{
	const struct rc_device *device;
	unsigned int offers;

	mutex_lock(&rc_devices_lock);
	device = rc_device_find(dev);
	offers = device && device->registered ? device->offers : 0;
	mutex_unlock(&rc_devices_lock);
	return offers;
}

static void rc_device_set_taps(const struct net_device *dev, void *taps, bool frames)
{
	struct rc_device *device;

	ASSERT_RTNL();
	mutex_lock(&rc_devices_lock);
	device = rc_device_find(dev);
	if (device)
		rc_device_set(device, taps, frames ? taps : NULL);
	mutex_unlock(&rc_devices_lock);
}

static void *rc_device_get_taps(const struct net_device *dev)
{
	const struct rc_device *device;
	void *taps;

	mutex_lock(&rc_devices_lock);
	device = rc_device_find(dev);
	taps = device ? rcu_dereference_protected(device->taps, lockdep_is_held(&rc_devices_lock)) : NULL;
	mutex_unlock(&rc_devices_lock);
	return taps;
}

const struct ringcap_driver_api ringcap_driver_api = {
	.abi = RINGCAP_DRIVER_ABI,
	.attach = rc_device_attach,
	.detach = rc_device_detach,
	.offers = rc_device_offers,
	.set_taps = rc_device_set_taps,
	.taps = rc_device_get_taps,
};
EXPORT_SYMBOL_GPL(ringcap_driver_api);

static int __init rc_driver_init(void)
{
	return register_netdevice_notifier(&rc_device_notifier);
}

/*
 * There is no driver and no ringcap.ko any more: both hold the module. The remaining entries are of drivers that did
 * not remove them.
 */
static void __exit rc_driver_exit(void)
{
	struct rc_device *device;
	struct hlist_node *next;
	int bucket;

	unregister_netdevice_notifier(&rc_device_notifier);
	mutex_lock(&rc_devices_lock);
	hash_for_each_safe(rc_devices, bucket, next, device, node)
		rc_device_remove(device);
	mutex_unlock(&rc_devices_lock);
}

module_init(rc_driver_init);
module_exit(rc_driver_exit);
MODULE_DESCRIPTION("Where capture-aware network drivers and ringcap meet");
MODULE_AUTHOR("The ringcap authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(RC_VERSION);
