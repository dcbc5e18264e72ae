// SPDX-License-Identifier: GPL-2.0-only

#include "pair.h"

#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/rtnetlink.h>

#include "deliver.h"
#include "forward.h"
#include "hold.h"
#include "net.h"
#include "ring.h"
#include "spec.h"
#include "stages.h"
#include "tap.h"

/* ---- packets ---- */

static void rc_pair_count(const struct rc_ring *ring, int loss)
{
	struct rc_account *account = this_cpu_ptr(ring->account);

	if (loss)
		rc_account_add(account->lost[loss - RINGCAP_INLINE_TOO_LONG], 1);
	else
		rc_account_add(account->bridged, 1);
}

/* A packet of @len bytes is gone before the ring has looked at it. */
static void rc_pair_lose(const struct rc_ring *ring, u32 len, int loss)
{
	rc_account_packet(ring->account, RC_FATE_FILTERED, len);
	rc_pair_count(ring, loss);
}

/* What the ring does to a packet before its clusters. */
static enum rc_fate rc_pair_decide(struct rc_ring *ring, const struct rc_ring_config *config, struct rc_packet *pkt)
{
	if (config->filter && !bpf_prog_run(config->filter, pkt->skb))
		return RC_FATE_FILTERED;
	return rc_stages_any(config) ? rc_stages_run(ring, config, pkt) : RC_FATE_PASSED;
}

static struct rc_hold *rc_pair_choose(struct rc_cluster *cluster, struct rc_packet *pkt)
{
	const struct rc_cluster_config *config = rcu_dereference(cluster->config);

	return config->queues[rc_balance_home(cluster, config, pkt)]->hold;
}

/* Copies for other clusters come first: the in-line one takes the packet. */
static void rc_pair_deliver(const struct rc_ring_config *config, struct rc_packet *pkt, struct net_device *out)
{
	u32 i;

	for (i = 0; i < config->nr_outputs; i++)
		if (config->outputs[i] != config->in_line)
			rc_cluster_deliver(config->outputs[i], pkt);
	rc_hold_receive(rc_pair_choose(config->in_line, pkt), pkt, out);
}

static void rc_pair_bridge(const struct rc_ring *ring, struct sk_buff *skb, struct net_device *out)
{
	rc_forward_prepare(skb);
	rc_pair_count(ring, rc_forward_send(out, skb));
}

/* @skb is only ours, and its data begin at the MAC header. */
static void rc_pair_pass(const struct rc_tap *tap, struct sk_buff *skb, u32 len, struct net_device *out)
{
	const struct rc_ring_config *config = rcu_dereference(tap->ring->config);
	struct rc_packet pkt rc_uninitialized;
	enum rc_fate fate = RC_FATE_FILTERED;

	rc_packet_init(&pkt, skb, len, config->snaplen, tap->ifindex);
	/* A ring that is being changed may have lost its in-line cluster already. */
	if (likely(config->in_line && skb->len >= ETH_HLEN))
		fate = rc_pair_decide(tap->ring, config, &pkt);
	rc_account_packet(tap->ring->account, fate, len);
	if (fate == RC_FATE_PASSED)
		rc_pair_deliver(config, &pkt, out);
	else
		rc_pair_bridge(tap->ring, skb, out);
}

/* As the packet comes from the stack. */
static void rc_pair_take(const struct rc_tap *tap, struct sk_buff *skb)
{
	u32 len = skb->len + (skb->data - skb_mac_header(skb)) + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0);
	struct net_device *out = rcu_dereference(tap->egress.dev);

	if (unlikely(rc_forward_is_sending())) {
		rc_pair_lose(tap->ring, len, RINGCAP_INLINE_REFUSED);
	} else if (unlikely(!out)) {
		rc_pair_lose(tap->ring, len, RINGCAP_INLINE_DOWN);
	} else {
		skb = skb_share_check(skb, GFP_ATOMIC);
		/* What it points to must not change after the verdict, and may be held for long. */
		if (likely(skb && !skb_orphan_frags_rx(skb, GFP_ATOMIC))) {
			__skb_push(skb, skb->data - skb_mac_header(skb));
			rc_pair_pass(tap, skb, len, out);
			return;
		}
		rc_pair_lose(tap->ring, len, RINGCAP_INLINE_NOMEM);
	}
	kfree_skb(skb);
}

static rx_handler_result_t rc_pair_receive(struct sk_buff **skb)
{
	/* The stack's own copy of a multicast that it sends. */
	if (unlikely((*skb)->pkt_type == PACKET_LOOPBACK))
		return RX_HANDLER_PASS;
	rc_pair_take(rcu_dereference((*skb)->dev->rx_handler_data), *skb);
	return RX_HANDLER_CONSUMED;
}

/* ---- checks ---- */

static int rc_pair_check_handler(const struct rc_ring *ring, const struct rc_tap_spec *spec,
				 const struct net_device *dev, struct netlink_ext_ack *extack)
{
	const struct rc_tap *other;

	if (dev->priv_flags & IFF_NO_RX_HANDLER) {
		NL_SET_ERR_MSG_ATTR(extack, spec->attr, "RINGCAP_A_TAP_PEER: this kind of interface cannot be in a pair");
		return -EOPNOTSUPP;
	}
	if (!rtnl_dereference(dev->rx_handler))
		return 0;
	if (rtnl_dereference(dev->rx_handler) != rc_pair_receive) {
		NL_SET_ERR_MSG_ATTR(extack, spec->attr,
				    "RINGCAP_A_TAP_PEER: this interface belongs to a bridge, bond, team or macvlan, which takes its packets");
		return -EBUSY;
	}
	other = rtnl_dereference(dev->rx_handler_data);
	if (other->ring == ring)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, spec->attr, "RINGCAP_A_TAP_PEER: another ring has this interface in a pair");
	return -EBUSY;
}

/* Every interface that is up has an IPv6 address for its link. */
static bool rc_pair_has_ipv6(const struct net_device *dev)
{
#if IS_ENABLED(CONFIG_IPV6)
	const struct inet6_dev *inet6 = __in6_dev_get(dev);
	const struct inet6_ifaddr *address;

	if (inet6)
		list_for_each_entry(address, &inet6->addr_list, if_list)
			if (!(ipv6_addr_type(&address->addr) & IPV6_ADDR_LINKLOCAL))
				return true;
#endif
	return false;
}

static bool rc_pair_has_address(const struct net_device *dev)
{
	const struct in_device *inet = __in_dev_get_rtnl(dev);

	return (inet && rtnl_dereference(inet->ifa_list)) || rc_pair_has_ipv6(dev);
}

/* Whether @dev is one end of a cable whose other end is interface @ifindex here, or is a virtual interface of that. */
static bool rc_pair_is_linked(const struct net_device *dev, u32 ifindex)
{
	const struct rtnl_link_ops *ops = dev->rtnl_link_ops;
	const struct net *net = ops && ops->get_link_net ? ops->get_link_net(dev) : dev_net(dev);

	return net_eq(net, dev_net(dev)) && (u32)dev_get_iflink(dev) == ifindex;
}

int rc_pair_check(const struct rc_ring *ring, const struct rc_tap_spec *spec, const struct net_device *dev,
		  bool addressed, struct netlink_ext_ack *extack)
{
	ASSERT_RTNL();
	if (dev->type != ARPHRD_ETHER) {
		NL_SET_ERR_MSG_ATTR(extack, spec->attr, "RINGCAP_A_TAP_PEER: both interfaces of a pair are Ethernet");
		return -EOPNOTSUPP;
	}
	if (rc_pair_is_linked(dev, spec->peer)) {
		NL_SET_ERR_MSG_ATTR(extack, spec->attr,
				    "RINGCAP_A_TAP_PEER: what leaves by one of these interfaces comes in by the other: packets would go round for ever");
		return -ELOOP;
	}
	if (vlan_uses_dev(dev)) {
		NL_SET_ERR_MSG_ATTR(extack, spec->attr,
				    "RINGCAP_A_TAP_PEER: this interface has VLAN interfaces, which take packets before the pair");
		return -EBUSY;
	}
	if (!addressed && rc_pair_has_address(dev)) {
		NL_SET_ERR_MSG_ATTR(extack, spec->attr,
				    "RINGCAP_A_TAP_PEER: this interface has an IP address, which could not be reached any more; RINGCAP_A_ADDRESSED 1 allows it");
		return -EADDRINUSE;
	}
	return rc_pair_check_handler(ring, spec, dev, extack);
}

/* Other kinds of interfaces that take packets before the pair need its rx_handler, so the kernel refuses them. */
int rc_pair_check_upper(const struct netdev_notifier_info *info)
{
	const struct netdev_notifier_changeupper_info *change =
		container_of(info, const struct netdev_notifier_changeupper_info, info);

	if (!change->linking || !is_vlan_dev(change->upper_dev) ||
	    rtnl_dereference(info->dev->rx_handler) != rc_pair_receive)
		return 0;
	NL_SET_ERR_MSG(info->extack,
		       "ringcap: a pair has this interface, so that a VLAN interface on it would take packets past the pair: delete the ring first");
	return -EBUSY;
}

/* ---- life ---- */

bool rc_pair_is(const struct rc_tap *tap, const struct rc_tap_spec *spec)
{
	if (tap->peer != spec->peer)
		return false;
	if (!spec->peer)
		return true;
	return rtnl_dereference(tap->egress.dev) == __dev_get_by_index(tap->ring->rc_net->net, spec->peer);
}

int rc_pair_open(struct rc_tap *tap, const struct rc_tap_spec *spec, struct netlink_ext_ack *extack)
{
	tap->peer = spec->peer;
	return rc_egress_open(&tap->egress, tap->ring->rc_net->net, spec->peer, spec->attr, extack);
}

void rc_pair_hook(struct rc_tap *tap)
{
	struct net_device *dev = tap->packet_type.dev;

	/* Packets that hardware merges cannot be split again. */
	dev_disable_lro(dev);
	/* rc_pair_check has seen that nothing else has it, and RTNL was held since. */
	WARN_ON(netdev_rx_handler_register(dev, rc_pair_receive, tap));
}

void rc_pair_unhook(struct rc_tap *tap)
{
	struct net_device *dev = tap->packet_type.dev;

	if (rtnl_dereference(dev->rx_handler) == rc_pair_receive && rtnl_dereference(dev->rx_handler_data) == tap)
		netdev_rx_handler_unregister(dev);
}
