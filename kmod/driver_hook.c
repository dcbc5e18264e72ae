// SPDX-License-Identifier: GPL-2.0-only

#include "driver_hook.h"

#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/ringcap.h>
#include <linux/ringcap_driver.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>

#include "receive.h"
#include "scratch.h"
#include "tap.h"

/* At most so many rings get a device's frames before there is an skb. If there are more, they get skbs. */
#define RC_DRIVER_HOOK_SCRATCH_MAX 4

static const struct ringcap_driver_api *rc_driver_hook_api;	/* while there are users */
static unsigned int rc_driver_hook_users;			/* number of taps */

/* ---- packets ---- */

#define rc_driver_hook_for_each(tap, taps) \
	for ((tap) = (taps); tap; (tap) = rcu_dereference((tap)->next_hooked))

static __always_inline bool rc_driver_hook_wants(const struct rc_tap *tap, const struct sk_buff *skb)
{
	return likely(READ_ONCE(tap->takes_received)) || rc_tap_wants(tap, skb);
}

/* Whether the tap is the only one of its device and takes all received packets. */
static __always_inline bool rc_driver_hook_is_alone(const struct rc_tap *tap)
{
	return !rcu_access_pointer(tap->next_hooked) && READ_ONCE(tap->takes_received);
}

static __always_inline void rc_driver_hook_receive(const struct rc_tap *tap, const struct rc_ring_config *config,
						   struct sk_buff *skb)
{
	if (unlikely(!rc_ring_receive_fast_skb(tap, config, skb)))
		rc_ring_receive(tap->ring, config, skb, tap->ifindex);
}

/*
 * Takes out a tag that the device has left in the packet, as the stack is about to do. So rings see the same in all
 * modes. With these checks, skb_vlan_untag cannot fail.
 */
static void rc_driver_hook_untag(struct sk_buff *skb)
{
	if (!skb_vlan_tag_present(skb) && !skb_shared(skb) && !skb_cloned(skb) &&
	    pskb_may_pull(skb, VLAN_HLEN + sizeof(__be16)))
		skb_vlan_untag(skb);
}

/*
 * Called before the driver gives a packet to the stack. The packet may have a clone that was reflected, or that waits
 * for reassembly. GRO takes packets apart without checking for clones, so the packet is uncloned here. Without memory
 * for that, the stack gets the packet past GRO: returns true.
 */
static bool rc_driver_hook_hand_on(struct sk_buff *skb)
{
	if (likely(!skb_unclone(skb, GFP_ATOMIC)))
		return false;
	netif_receive_skb(skb);
	return true;
}

/* Bottom halves are off: napi_consume_skb needs no more to keep the memory for the next packet. */
static __always_inline void rc_driver_hook_consume(struct sk_buff *skb)
{
	napi_consume_skb(skb, 1);
}

/*
 * A packet that a tap of mode 2 takes is consumed, whether its ring's filters pass it or not. The stack gets all others
 * unchanged.
 */
static noinline bool rc_driver_hook_offer_skb(const struct rc_tap *taps, struct sk_buff *skb, u16 rx_queue)
{
	u16 queue_mapping = skb->queue_mapping;
	const struct rc_tap *tap;
	bool take = false;

	if (unlikely(eth_type_vlan(skb->protocol)))
		rc_driver_hook_untag(skb);
	skb_record_rx_queue(skb, rx_queue);
	skb_reset_network_header(skb);
	rc_driver_hook_for_each(tap, taps) {
		if (!rc_driver_hook_wants(tap, skb))
			continue;
		take |= READ_ONCE(tap->mode) == 2;
		rc_driver_hook_receive(tap, rcu_dereference(tap->ring->config), skb);
	}
	if (!take) {
		skb->queue_mapping = queue_mapping;
		return rc_driver_hook_hand_on(skb);
	}
	rc_driver_hook_consume(skb);
	return true;
}

/* Tries the fast path first. */
static bool rc_driver_hook_rx_skb(struct sk_buff *skb, u16 rx_queue, void *taps)
{
	const struct rc_tap *tap = taps;

	if (unlikely(eth_type_vlan(skb->protocol) || !rc_driver_hook_is_alone(tap) ||
		     !rc_ring_receive_fast(tap, rcu_dereference(tap->ring->config), skb, rx_queue)))
		return rc_driver_hook_offer_skb(tap, skb, rx_queue);
	if (READ_ONCE(tap->mode) != 2)
		return false;
	rc_driver_hook_consume(skb);
	return true;
}

/*
 * Whether all taps that want a frame can use it without an skb, and the stack does not get it. Collects these taps and
 * their number. If the stack is to see the frame, or a ring needs a real skb, the frame comes again as an skb.
 */
static __always_inline bool rc_driver_hook_can(const struct rc_tap *taps, const struct sk_buff *skb,
					       const struct rc_tap **takers, const struct rc_ring_config **configs,
					       u32 *nr)
{
	const struct rc_tap *tap;

	rc_driver_hook_for_each(tap, taps) {
		const struct rc_ring_config *config = rcu_dereference(tap->ring->config);

		if (!rc_driver_hook_wants(tap, skb))
			continue;
		if (unlikely(READ_ONCE(tap->mode) != 2 || config->needs_skb || *nr == RC_DRIVER_HOOK_SCRATCH_MAX))
			return false;
		takers[*nr] = tap;
		configs[(*nr)++] = config;
	}
	return *nr;
}

static noinline bool rc_driver_hook_offer_frame(const struct rc_tap *taps, struct net_device *dev,
						const struct ringcap_frame *frame)
{
	const struct rc_ring_config *configs[RC_DRIVER_HOOK_SCRATCH_MAX] rc_uninitialized;
	const struct rc_tap *takers[RC_DRIVER_HOOK_SCRATCH_MAX] rc_uninitialized;
	struct sk_buff *skb;
	u32 i, nr = 0;
	bool can;

	skb = rc_scratch_lend(dev, frame);
	if (unlikely(!skb))
		return false;
	can = rc_driver_hook_can(taps, skb, takers, configs, &nr);
	for (i = 0; can && i < nr; i++)
		rc_driver_hook_receive(takers[i], configs[i], skb);
	rc_scratch_give_back(skb);
	return can;
}

/* The fast path. It does not even need to fill a scratch skb: the one that it passes on is empty. */
static __always_inline bool rc_driver_hook_take_frame(const struct rc_tap *tap, const struct ringcap_frame *frame)
{
	const struct rc_ring_config *config = rcu_dereference(tap->ring->config);
	struct rc_cluster *cluster = READ_ONCE(config->fast);
	struct rc_packet pkt rc_uninitialized;

	if (unlikely(!cluster || frame->vlan_proto || READ_ONCE(tap->mode) != 2 || !rc_driver_hook_is_alone(tap)))
		return false;
	rc_packet_init_plain(&pkt, rc_scratch_skb(), frame->data, frame->len, config->snaplen, frame->rx_queue);
	return rc_ring_receive_plain(tap, cluster, &pkt);
}

static bool rc_driver_hook_rx_frame(struct net_device *dev, const struct ringcap_frame *frame, void *taps)
{
	if (unlikely(frame->len < ETH_HLEN))
		return false;
	/* Taking the tag out would write to the frame. */
	if (unlikely(!frame->vlan_proto && eth_type_vlan(((const struct ethhdr *)frame->data)->h_proto)))
		return false;
	return likely(rc_driver_hook_take_frame(taps, frame)) || rc_driver_hook_offer_frame(taps, dev, frame);
}

/* ---- taps ---- */

static const struct ringcap_hooks rc_driver_hook_hooks = {
	.rx_skb = rc_driver_hook_rx_skb,
	.rx_frame = rc_driver_hook_rx_frame,
};

unsigned int rc_driver_hook_offers(const struct net_device *dev)
{
	const struct ringcap_driver_api *api = symbol_get(ringcap_driver_api);
	unsigned int offers = 0;

	ASSERT_RTNL();
	if (!api)
		return 0;
	if (api->abi == RINGCAP_DRIVER_ABI)
		offers = api->offers(dev);
	else
		pr_warn_once("ringcap: the loaded ringcap_driver.ko is of another version (ABI %u, not %u): transparent modes 1 and 2 don't work until it is replaced\n",
			     api->abi, RINGCAP_DRIVER_ABI);
	symbol_put(ringcap_driver_api);
	return offers;
}

int rc_driver_hook_mode(const struct net_device *dev, u32 mode, bool fallback, const struct nlattr *attr,
			struct netlink_ext_ack *extack)
{
	if (!mode || rc_driver_hook_offers(dev))
		return mode;
	if (fallback)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "RINGCAP_A_TRANSPARENT: modes 1 and 2 need a capture-aware driver, which this interface's is not: use one, or mode 0, or RINGCAP_A_TRANSPARENT_FALLBACK (the module's transparent_mode is the default)");
	return -EOPNOTSUPP;
}

/* ringcap_driver.ko is loaded: the driver of a registered device holds it. */
void rc_driver_hook_hold(void)
{
	ASSERT_RTNL();
	if (rc_driver_hook_users++)
		return;
	rc_driver_hook_api = symbol_get(ringcap_driver_api);
	rc_driver_hook_api->attach(&rc_driver_hook_hooks);
}

void rc_driver_hook_release(void)
{
	ASSERT_RTNL();
	if (--rc_driver_hook_users)
		return;
	rc_driver_hook_api->detach();
	rc_driver_hook_api = NULL;
	symbol_put(ringcap_driver_api);
}

/* Frames are only of use if a tap takes packets away from the stack. Otherwise an skb is needed anyway. */
static void rc_driver_hook_set(const struct net_device *dev, struct rc_tap *taps)
{
	const struct rc_tap *tap;
	bool frames = false;

	for (tap = taps; tap; tap = rtnl_dereference(tap->next_hooked))
		frames |= tap->mode == 2;
	rc_driver_hook_api->set_taps(dev, taps, frames);
}

void rc_driver_hook_add(struct rc_tap *tap)
{
	const struct net_device *dev = tap->packet_type.dev;

	RCU_INIT_POINTER(tap->next_hooked, rc_driver_hook_api->taps(dev));
	rc_driver_hook_set(dev, tap);
}

void rc_driver_hook_update(const struct rc_tap *tap)
{
	const struct net_device *dev = tap->packet_type.dev;

	rc_driver_hook_set(dev, rc_driver_hook_api->taps(dev));
}

void rc_driver_hook_remove(struct rc_tap *tap)
{
	const struct net_device *dev = tap->packet_type.dev;
	struct rc_tap *next = rtnl_dereference(tap->next_hooked);
	struct rc_tap *first = rc_driver_hook_api->taps(dev);
	struct rc_tap *at;

	/* If the device is being unregistered, ringcap_driver.ko may already have forgotten it and its taps. */
	for (at = first; at; at = rtnl_dereference(at->next_hooked))
		if (rtnl_dereference(at->next_hooked) == tap)
			rcu_assign_pointer(at->next_hooked, next);
	rc_driver_hook_set(dev, first == tap ? next : first);
}
