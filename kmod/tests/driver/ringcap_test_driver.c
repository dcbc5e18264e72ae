// SPDX-License-Identifier: GPL-2.0-only
/*
 * A capture-aware network driver for tests: two devices and a cable. What one sends the other receives as a network card
 * does: in a NAPI poll, from a buffer of its own, without its VLAN tag if that is switched on, and with the time. Of the
 * devices ('ip link add NAME type aware') each second one is cabled to the one before it.
 *
 * The last byte of the source address selects the receive queue: 1 is the first. Frames of more than RT_BUFFER bytes
 * count as spread over several buffers: they come as skbs only.
 *
 * And devices without a cable ('ip link add NAME type locked'), which ask for the lock around their operations where the
 * kernel has one, as those of the cards do that have queue management.
 */

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/ringcap_driver.h>
#include <net/rtnetlink.h>

#define RT_QUEUES 4
#define RT_BUFFER 2048
#define RT_TIME 1000000007	/* nanoseconds, of every frame */
#define RT_HASH 0x5eed

static unsigned int offers = RINGCAP_OFFERS_SKB | RINGCAP_OFFERS_FRAME;
module_param(offers, uint, 0644);
MODULE_PARM_DESC(offers, "RINGCAP_OFFERS_* of new devices (3)");

struct rt_device {
	struct net_device *dev;
	struct napi_struct napi;
	struct sk_buff_head wire;
	struct rt_device __rcu *peer;
	unsigned int offers;
};

static struct rt_device *rt_device_single;	/* has no peer yet; under RTNL */

static netdev_tx_t rt_device_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct rt_device *this = netdev_priv(dev), *peer;
	struct sk_buff *frame = NULL;

	rcu_read_lock();
	peer = rcu_dereference(this->peer);
	if (peer && netif_running(peer->dev))
		frame = netdev_alloc_skb(peer->dev, skb->len);
	if (frame && !skb_copy_bits(skb, 0, skb_put(frame, skb->len), skb->len)) {
		skb_queue_tail(&peer->wire, frame);
		napi_schedule(&peer->napi);
	} else {
		dev->stats.tx_dropped++;
		kfree_skb(frame);
	}
	rcu_read_unlock();
	dev_consume_skb_any(skb);
	return NETDEV_TX_OK;
}

/* Takes the tag off where the device does that. */
static void rt_device_strip(struct ringcap_frame *frame, const struct net_device *dev)
{
	const struct vlan_ethhdr *eth = frame->data;

	if (!(dev->features & NETIF_F_HW_VLAN_CTAG_RX) || eth->h_vlan_proto != htons(ETH_P_8021Q))
		return;
	frame->vlan_proto = eth->h_vlan_proto;
	frame->vlan_tci = ntohs(eth->h_vlan_TCI);
	memmove(frame->data + VLAN_HLEN, frame->data, 2 * ETH_ALEN);
	frame->data += VLAN_HLEN;
	frame->len -= VLAN_HLEN;
}

static void rt_device_receive(struct rt_device *this, struct sk_buff *skb)
{
	struct ringcap_frame frame = {
		.data = skb->data,
		.len = skb->len,
		.rx_queue = (skb->data[2 * ETH_ALEN - 1] - 1) % RT_QUEUES,
		.hash = RT_HASH,
		.hwtstamp = RT_TIME,
	};

	rt_device_strip(&frame, this->dev);
	this->dev->stats.rx_packets++;
	if ((this->offers & RINGCAP_OFFERS_FRAME) && frame.len <= RT_BUFFER && ringcap_rx_frame(this->dev, &frame)) {
		consume_skb(skb);
		return;
	}
	skb_pull(skb, skb->len - frame.len);
	skb->hash = frame.hash;
	skb_hwtstamps(skb)->hwtstamp = frame.hwtstamp;
	if (frame.vlan_proto)
		__vlan_hwaccel_put_tag(skb, frame.vlan_proto, frame.vlan_tci);
	skb->protocol = eth_type_trans(skb, this->dev);
	if (!ringcap_rx_skb(skb, frame.rx_queue))
		napi_gro_receive(&this->napi, skb);
}

static int rt_device_poll(struct napi_struct *napi, int budget)
{
	struct rt_device *this = container_of(napi, struct rt_device, napi);
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = skb_dequeue(&this->wire))) {
		rt_device_receive(this, skb);
		done++;
	}
	if (done < budget && napi_complete_done(napi, done) && !skb_queue_empty(&this->wire))
		napi_schedule(napi);
	return done;
}

static int rt_device_init(struct net_device *dev)
{
	struct rt_device *this = netdev_priv(dev);

	this->dev = dev;
	this->offers = offers;
	skb_queue_head_init(&this->wire);
	netif_napi_add(dev, &this->napi, rt_device_poll);
	netif_carrier_off(dev);
	ringcap_device_register(dev, offers);
	if (!rt_device_single) {
		rt_device_single = this;
		return 0;
	}
	rcu_assign_pointer(this->peer, rt_device_single);
	rcu_assign_pointer(rt_device_single->peer, this);
	rt_device_single = NULL;
	return 0;
}

static void rt_device_uninit(struct net_device *dev)
{
	struct rt_device *this = netdev_priv(dev), *peer = rtnl_dereference(this->peer);

	if (peer)
		RCU_INIT_POINTER(peer->peer, NULL);
	if (rt_device_single == this)
		rt_device_single = NULL;
	synchronize_net();
	netif_napi_del(&this->napi);
	skb_queue_purge(&this->wire);
	/* Also called when the device could not be registered. */
	ringcap_device_forget(dev);
}

static int rt_device_open(struct net_device *dev)
{
	struct rt_device *this = netdev_priv(dev);

	napi_enable(&this->napi);
	netif_tx_start_all_queues(dev);
	netif_carrier_on(dev);
	return 0;
}

static int rt_device_stop(struct net_device *dev)
{
	struct rt_device *this = netdev_priv(dev);

	netif_carrier_off(dev);
	netif_tx_stop_all_queues(dev);
	napi_disable(&this->napi);
	skb_queue_purge(&this->wire);
	return 0;
}

static const struct net_device_ops rt_device_ops = {
	.ndo_init = rt_device_init,
	.ndo_uninit = rt_device_uninit,
	.ndo_open = rt_device_open,
	.ndo_stop = rt_device_stop,
	.ndo_start_xmit = rt_device_xmit,
	.ndo_set_mac_address = eth_mac_addr,
};

static void rt_device_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &rt_device_ops;
	dev->needs_free_netdev = true;
	dev->hw_features = NETIF_F_HW_VLAN_CTAG_RX;
	dev->features = NETIF_F_HW_VLAN_CTAG_RX;
	dev->max_mtu = 9000;
	dev->flags |= IFF_NOARP;
	eth_hw_addr_random(dev);
}

static unsigned int rt_device_queues(void)
{
	return RT_QUEUES;
}

static struct rtnl_link_ops rt_device_link_ops = {
	.kind = "aware",
	.priv_size = sizeof(struct rt_device),
	.setup = rt_device_setup,
	.get_num_rx_queues = rt_device_queues,
	.get_num_tx_queues = rt_device_queues,
};

/* ---- without a cable ---- */

static netdev_tx_t rt_locked_xmit(struct sk_buff *skb, struct net_device *dev)
{
	dev_consume_skb_any(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops rt_locked_ops = {
	.ndo_start_xmit = rt_locked_xmit,
};

static void rt_locked_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &rt_locked_ops;
	dev->needs_free_netdev = true;
	dev->flags |= IFF_NOARP;
#ifdef RT_HAVE_OPS_LOCK
	dev->request_ops_lock = true;
#endif
	eth_hw_addr_random(dev);
}

static struct rtnl_link_ops rt_locked_link_ops = {
	.kind = "locked",
	.setup = rt_locked_setup,
};

static int __init rt_driver_init(void)
{
	int err = rtnl_link_register(&rt_device_link_ops);

	if (err)
		return err;
	err = rtnl_link_register(&rt_locked_link_ops);
	if (err)
		rtnl_link_unregister(&rt_device_link_ops);
	return err;
}

static void __exit rt_driver_exit(void)
{
	rtnl_link_unregister(&rt_locked_link_ops);
	rtnl_link_unregister(&rt_device_link_ops);
}

module_init(rt_driver_init);
module_exit(rt_driver_exit);
MODULE_DESCRIPTION("A capture-aware network device, for tests");
MODULE_LICENSE("GPL");
MODULE_ALIAS_RTNL_LINK("aware");
