// SPDX-License-Identifier: GPL-2.0-only

#include "tap_set.h"

#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "driver_hook.h"
#include "net.h"
#include "pair.h"
#include "ring.h"
#include "rx_queues.h"
#include "spec.h"
#include "tap.h"
#include "tap_receive.h"

LIST_HEAD(rc_tap_followers);

/* Also for taps in use: each handler of mode 0 also handles the packets of the others correctly. */
static void rc_tap_set_handler(struct rc_tap *tap)
{
	bool takes_received = (tap->direction & RINGCAP_DIRECTION_RX) && !rcu_access_pointer(tap->rx_queues);

	WRITE_ONCE(tap->takes_received, takes_received);
	if (tap->mode)
		return;
	if (!takes_received)
		WRITE_ONCE(tap->packet_type.func, rc_tap_receive_any);
	else if (rc_ring_config(tap->ring)->filter)
		WRITE_ONCE(tap->packet_type.func, rc_tap_receive_filtered);
	else
		WRITE_ONCE(tap->packet_type.func, rc_tap_receive);
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

struct rc_tap *rc_tap_create(struct rc_ring *ring, const struct rc_tap_spec *spec, struct net_device *dev, u32 mode,
			     struct netlink_ext_ack *extack)
{
	struct rc_tap *tap = kzalloc(sizeof(*tap), GFP_KERNEL_ACCOUNT);
	int err;

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
		rc_driver_hook_hold();
	err = spec->peer ? rc_pair_open(tap, spec, extack) : 0;
	if (!err)
		return tap;
	rc_tap_free(tap);
	return ERR_PTR(err);
}

/* A hook stays even if it has nothing more to do: it could not be put back at once. */
void rc_tap_set_direction(struct rc_tap *tap, u32 direction)
{
	bool sent = direction & RINGCAP_DIRECTION_TX;

	WRITE_ONCE(tap->direction, direction);
	rc_tap_set_handler(tap);
	/* Saves the stack a clone of each packet that is sent. */
	WRITE_ONCE(tap->packet_type.ignore_outgoing, !sent);
	if (tap->peer || tap->hooked || (tap->mode && !sent))
		return;
	dev_add_pack(&tap->packet_type);
	tap->hooked = true;
}

void rc_tap_commit_mode(struct rc_tap *tap)
{
	if (tap->mode == tap->new_mode)
		return;
	WRITE_ONCE(tap->mode, tap->new_mode);
	rc_driver_hook_update(tap);
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

int rc_tap_prepare_rx_queues(struct rc_tap *tap, const struct rc_tap_spec *spec, struct netlink_ext_ack *extack)
{
	struct rc_rx_queues *rx_queues = NULL;

	if (spec->rx_queues)
		rx_queues = rc_rx_queues_create(spec->rx_queues, tap->packet_type.dev, extack);
	if (IS_ERR(rx_queues))
		return PTR_ERR(rx_queues);
	tap->new_rx_queues = rx_queues;
	return 0;
}

void rc_tap_commit_rx_queues(struct rc_tap *tap)
{
	struct rc_rx_queues *old = rcu_replace_pointer(tap->rx_queues, tap->new_rx_queues, lockdep_rtnl_is_held());

	tap->new_rx_queues = NULL;
	rc_tap_set_handler(tap);
	if (old)
		kfree_rcu(old, rcu);
}

void rc_tap_abandon_rx_queues(struct rc_tap *tap)
{
	kfree(tap->new_rx_queues);
	tap->new_rx_queues = NULL;
}

void rc_tap_free(struct rc_tap *tap)
{
	rc_tap_set_promiscuous(tap, false);
	rc_tap_set_follows(tap, false);
	rc_tap_abandon_rx_queues(tap);
	rc_egress_close(&tap->egress);
	kfree(rcu_dereference_protected(tap->rx_queues, true));
	if (tap->mode)
		rc_driver_hook_release();
	kfree(tap);
}

void rc_tap_add(struct rc_tap *tap)
{
	if (tap->mode)
		rc_driver_hook_add(tap);
	if (tap->peer)
		rc_pair_hook(tap);
}

static void rc_tap_unhook(struct rc_tap *tap)
{
	if (tap->mode)
		rc_driver_hook_remove(tap);
	if (tap->peer)
		rc_pair_unhook(tap);
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
	/* After this no CPU receives a packet for one of these taps. */
	synchronize_net();
	list_for_each_entry_safe(tap, next, taps, list)
		rc_tap_free(tap);
	INIT_LIST_HEAD(taps);
}
