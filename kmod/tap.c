// SPDX-License-Identifier: GPL-2.0-only

#include "tap.h"

#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <linux/ringcap.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "aware.h"
#include "channels.h"
#include "event.h"
#include "net.h"
#include "proc_device.h"
#include "receive.h"
#include "ring.h"
#include "worker.h"

static LIST_HEAD(rc_tap_followers);
static struct work_struct rc_tap_work;

/*
 * Gives back the reference to @skb that its handler was given.
 *
 * A handler that is not the last one gets a reference of its own on top of that of the stack's frame that calls it (see
 * deliver_skb in net/core/dev.c). If there are two, they are these; whoever wants another one must have one, so nobody
 * else can change their number, and ours is gone without an atomic operation. The last handler is given the frame's
 * reference instead, and with two of them there the other one is anybody's. A received IPv4 packet has IPv4's handler
 * behind us, which is always there; of others, and of those being sent, we don't know.
 */
static __always_inline void rc_tap_put_received(struct sk_buff *skb)
{
	if (likely(refcount_read(&skb->users) == 2 && skb->protocol == htons(ETH_P_IP)))
		refcount_set(&skb->users, 1);
	else
		consume_skb(skb);
}

/* On the CPU that received or sends the packet, with bottom halves off, under RCU. */
static int rc_tap_receive_any(struct sk_buff *skb, struct net_device *dev, struct packet_type *packet_type,
			      struct net_device *orig_dev)
{
	const struct rc_tap *tap = container_of(packet_type, struct rc_tap, packet_type);

	if (rc_tap_wants(tap, skb))
		rc_ring_receive(tap->ring, rcu_dereference(tap->ring->config), skb, tap->ifindex);
	consume_skb(skb);
	return 0;
}

/* The same for a tap that takes what was received, of whichever receive queue. */
static int rc_tap_receive(struct sk_buff *skb, struct net_device *dev, struct packet_type *packet_type,
			  struct net_device *orig_dev)
{
	const struct rc_tap *tap = container_of(packet_type, struct rc_tap, packet_type);

	/* PACKET_HOST and what follows it, but none that come after PACKET_OUTGOING. */
	if (unlikely(skb->pkt_type & PACKET_OUTGOING))
		return rc_tap_receive_any(skb, dev, packet_type, orig_dev);
	if (unlikely(!rc_ring_receive_direct(tap, rcu_dereference(tap->ring->config), skb,
					     rc_skb_rx_queue(skb))))
		rc_ring_receive(tap->ring, rcu_dereference(tap->ring->config), skb, tap->ifindex);
	rc_tap_put_received(skb);
	return 0;
}

/* The same where the driver hands over what is received. */
static int rc_tap_receive_sent(struct sk_buff *skb, struct net_device *dev, struct packet_type *packet_type,
			       struct net_device *orig_dev)
{
	if (skb->pkt_type == PACKET_OUTGOING)
		return rc_tap_receive_any(skb, dev, packet_type, orig_dev);
	consume_skb(skb);
	return 0;
}

/* Of taps in use too: either handler of mode 0 does right by what the other is there for. */
static void rc_tap_set_handler(struct rc_tap *tap)
{
	bool takes_received = (tap->direction & RINGCAP_DIRECTION_RX) && !rcu_access_pointer(tap->channels);

	WRITE_ONCE(tap->takes_received, takes_received);
	if (!tap->mode)
		WRITE_ONCE(tap->packet_type.func, takes_received ? rc_tap_receive : rc_tap_receive_any);
}

struct net_device *rc_tap_device(const struct rc_ring *ring, const struct rc_tap_spec *spec,
				 struct netlink_ext_ack *extack)
{
	struct net_device *dev = __dev_get_by_index(ring->rc_net->net, spec->ifindex);

	ASSERT_RTNL();
	if (!dev) {
		NL_SET_ERR_MSG_ATTR(extack, spec->attr,
				    "RINGCAP_A_TAP_IFINDEX: there is no interface of this index in this network namespace");
		return ERR_PTR(-ENODEV);
	}
	if (dev->type != ARPHRD_ETHER && dev->type != ARPHRD_LOOPBACK) {
		NL_SET_ERR_MSG_ATTR(extack, spec->attr,
				    "RINGCAP_A_TAP_IFINDEX: packets of this interface have no Ethernet header, which ringcap needs");
		return ERR_PTR(-EOPNOTSUPP);
	}
	return dev;
}

struct rc_tap *rc_tap_create(struct rc_ring *ring, const struct rc_tap_spec *spec, struct net_device *dev, u32 mode)
{
	struct rc_tap *tap = kzalloc(sizeof(*tap), GFP_KERNEL_ACCOUNT);

	if (!tap)
		return ERR_PTR(-ENOMEM);
	tap->ring = ring;
	tap->ifindex = spec->ifindex;
	tap->packet_type.type = htons(ETH_P_ALL);
	tap->packet_type.dev = dev;
	tap->packet_type.func = rc_tap_receive_sent;
	tap->mode = mode;
	tap->direction = spec->direction;
	INIT_LIST_HEAD(&tap->followers);
	if (mode)
		rc_aware_hold();
	return tap;
}

/* A hook stays when it has nothing more to do: to put it back is not possible at once. */
void rc_tap_set_direction(struct rc_tap *tap, u32 direction)
{
	bool sent = direction & RINGCAP_DIRECTION_TX;

	WRITE_ONCE(tap->direction, direction);
	rc_tap_set_handler(tap);
	/* Spares the stack a clone of each packet that is sent. */
	WRITE_ONCE(tap->packet_type.ignore_outgoing, !sent);
	if (tap->hooked || (tap->mode && !sent))
		return;
	dev_add_pack(&tap->packet_type);
	tap->hooked = true;
}

void rc_tap_commit_mode(struct rc_tap *tap)
{
	if (tap->mode == tap->new_mode)
		return;
	WRITE_ONCE(tap->mode, tap->new_mode);
	rc_aware_update(tap);
}

void rc_tap_set_follows(struct rc_tap *tap, bool follows)
{
	if (tap->follows == follows)
		return;
	tap->follows = follows;
	if (follows)
		list_add_tail(&tap->followers, &rc_tap_followers);
	else
		list_del_init(&tap->followers);
}

bool rc_tap_is_away(const struct rc_tap *tap)
{
	return !net_eq(dev_net(tap->packet_type.dev), tap->ring->rc_net->net);
}

int rc_tap_set_promiscuous(struct rc_tap *tap, bool promiscuous)
{
	int err;

	if (tap->promiscuous == promiscuous)
		return 0;
	err = dev_set_promiscuity(tap->packet_type.dev, promiscuous ? 1 : -1);
	if (!err)
		tap->promiscuous = promiscuous;
	return err;
}

int rc_tap_prepare_channels(struct rc_tap *tap, const struct rc_tap_spec *spec, struct netlink_ext_ack *extack)
{
	struct rc_channels *channels = NULL;

	if (spec->channels)
		channels = rc_channels_create(spec->channels, tap->packet_type.dev, extack);
	if (IS_ERR(channels))
		return PTR_ERR(channels);
	tap->new_channels = channels;
	return 0;
}

void rc_tap_commit_channels(struct rc_tap *tap)
{
	struct rc_channels *old = rcu_replace_pointer(tap->channels, tap->new_channels, lockdep_rtnl_is_held());

	tap->new_channels = NULL;
	rc_tap_set_handler(tap);
	if (old)
		kfree_rcu(old, rcu);
}

void rc_tap_abandon_channels(struct rc_tap *tap)
{
	kfree(tap->new_channels);
	tap->new_channels = NULL;
}

void rc_tap_free(struct rc_tap *tap)
{
	rc_tap_set_promiscuous(tap, false);
	rc_tap_set_follows(tap, false);
	rc_tap_abandon_channels(tap);
	kfree(rcu_dereference_protected(tap->channels, true));
	if (tap->mode)
		rc_aware_release();
	kfree(tap);
}

void rc_tap_add(struct rc_tap *tap)
{
	if (tap->mode)
		rc_aware_add(tap);
}

static void rc_tap_unhook(struct rc_tap *tap)
{
	if (tap->mode)
		rc_aware_remove(tap);
	if (tap->hooked)
		__dev_remove_pack(&tap->packet_type);
}

void rc_tap_remove_all(struct list_head *taps)
{
	struct rc_tap *tap, *next;

	ASSERT_RTNL();
	if (list_empty(taps))
		return;
	list_for_each_entry(tap, taps, list)
		rc_tap_unhook(tap);
	/* After this no CPU receives a packet for one of them. */
	synchronize_net();
	list_for_each_entry_safe(tap, next, taps, list)
		rc_tap_free(tap);
	INIT_LIST_HEAD(taps);
}

static void rc_tap_gone(struct rc_tap *tap)
{
	struct rc_ring *ring = tap->ring;
	u32 ifindex = tap->ifindex;
	LIST_HEAD(gone);

	list_move(&tap->list, &gone);
	rc_tap_remove_all(&gone);
	rc_event_tap_gone(ring->rc_net->net, ring->name, ifindex);
}

/* A device that moves to another namespace is unregistered from this one too, and goes on being registered. */
static void rc_tap_device_leaves(struct rc_ring *ring, const struct net_device *dev)
{
	bool moves = dev->reg_state == NETREG_REGISTERED;
	struct rc_tap *tap, *next;

	list_for_each_entry_safe(tap, next, &ring->taps, list)
		if (tap->packet_type.dev == dev && !(moves && tap->follows))
			rc_tap_gone(tap);
}

/* Those that followed @dev to where it is gone now. */
static void rc_tap_followers_end(const struct net_device *dev)
{
	struct rc_tap *tap, *next;

	list_for_each_entry_safe(tap, next, &rc_tap_followers, followers)
		if (tap->packet_type.dev == dev)
			rc_tap_gone(tap);
}

/* It has come back with its device, and is not found by its index any more. */
static bool rc_tap_is_lost(const struct rc_tap *tap)
{
	return !rc_tap_is_away(tap) && tap->ifindex != tap->packet_type.dev->ifindex;
}

/*
 * Lost taps end here and not in the notifier that tells of them: it may have the lock of the device's operations, which
 * the end of promiscuity takes. A tap that is listed has its device: both go under RTNL.
 */
static void rc_tap_end_lost(struct work_struct *work)
{
	struct rc_tap *tap, *next;

	rtnl_lock();
	list_for_each_entry_safe(tap, next, &rc_tap_followers, followers)
		if (rc_tap_is_lost(tap)) {
			rc_proc_devices_follow_later(tap->ring->rc_net);
			rc_tap_gone(tap);
		}
	rtnl_unlock();
}

static void rc_tap_follower_returns(const struct net_device *dev)
{
	const struct rc_tap *tap;

	list_for_each_entry(tap, &rc_tap_followers, followers)
		if (tap->packet_type.dev == dev && rc_tap_is_lost(tap))
			rc_worker_schedule(&rc_tap_work);
}

static int rc_tap_device_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct net_device *dev = netdev_notifier_info_to_dev(data);
	struct rc_net *this = rc_net(dev_net(dev));
	struct rc_ring *ring;

	if (event == NETDEV_UNREGISTER)
		list_for_each_entry(ring, &this->rings, list)
			rc_tap_device_leaves(ring, dev);
	if (event == NETDEV_UNREGISTER && dev->reg_state != NETREG_REGISTERED)
		rc_tap_followers_end(dev);
	if (event == NETDEV_REGISTER)
		rc_tap_follower_returns(dev);
	if ((event == NETDEV_REGISTER || event == NETDEV_UNREGISTER || event == NETDEV_CHANGENAME) &&
	    !list_empty(&this->rings))
		rc_proc_devices_follow_later(this);
	return NOTIFY_DONE;
}

static struct notifier_block rc_tap_notifier = {
	.notifier_call = rc_tap_device_event,
};

int rc_tap_module_init(void)
{
	INIT_WORK(&rc_tap_work, rc_tap_end_lost);
	return register_netdevice_notifier(&rc_tap_notifier);
}

void rc_tap_module_exit(void)
{
	struct rc_tap *tap, *next;

	/* Others are told of all devices as if they went. */
	rtnl_lock();
	list_for_each_entry_safe(tap, next, &rc_tap_followers, followers)
		rc_tap_gone(tap);
	rtnl_unlock();
	unregister_netdevice_notifier(&rc_tap_notifier);
	cancel_work_sync(&rc_tap_work);
}
