// SPDX-License-Identifier: GPL-2.0-only

#include "egress.h"

#include <linux/if_arp.h>
#include <linux/netlink.h>
#include <linux/percpu.h>
#include <linux/rtnetlink.h>
#include <linux/spinlock.h>

static LIST_HEAD(rc_egress_list);	/* egresses with a device */
static DEFINE_SPINLOCK(rc_egress_lock);
static DEFINE_PER_CPU(bool, rc_egress_reflecting);

int rc_egress_open(struct rc_egress *egress, struct net *net, u32 ifindex, const struct nlattr *attr,
		   struct netlink_ext_ack *extack)
{
	struct net_device *dev = __dev_get_by_index(net, ifindex);

	ASSERT_RTNL();
	if (!dev) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "there is no interface of this index in this network namespace to send out of");
		return -ENODEV;
	}
	if (dev->type != ARPHRD_ETHER && dev->type != ARPHRD_LOOPBACK) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "packets of this interface have no Ethernet header: nothing can be sent out of it");
		return -EOPNOTSUPP;
	}
	egress->ifindex = ifindex;
	spin_lock(&rc_egress_lock);
	rcu_assign_pointer(egress->dev, dev);
	list_add_tail(&egress->list, &rc_egress_list);
	spin_unlock(&rc_egress_lock);
	return 0;
}

void rc_egress_close(struct rc_egress *egress)
{
	spin_lock(&rc_egress_lock);
	if (rcu_access_pointer(egress->dev)) {
		RCU_INIT_POINTER(egress->dev, NULL);
		list_del(&egress->list);
	}
	spin_unlock(&rc_egress_lock);
}

/* Packets that hardware has merged without a GSO type cannot be segmented again. */
static bool rc_egress_is_lro(const struct sk_buff *skb)
{
	return skb_is_gso(skb) && !skb_shinfo(skb)->gso_type;
}

bool rc_egress_reflect(const struct rc_egress *egress, struct sk_buff *skb)
{
	struct net_device *dev = rcu_dereference(egress->dev);
	struct sk_buff *copy;
	bool sent;

	/* Taps see outgoing packets under the lock of the device's transmit queue: nothing can be sent from there. */
	if (unlikely(!dev || skb->pkt_type == PACKET_OUTGOING || __this_cpu_read(rc_egress_reflecting)))
		return false;
	if (unlikely(rc_egress_is_lro(skb) || !is_skb_forwardable(dev, skb)))
		return false;
	copy = skb_clone(skb, GFP_ATOMIC);
	if (unlikely(!copy))
		return false;
	/* Drops the findings of the receiving side, and metadata that must not be visible on the other side. */
	skb_forward_csum(copy);
	skb_scrub_packet(copy, true);
	copy->priority = 0;

	__this_cpu_write(rc_egress_reflecting, true);
	sent = rc_egress_send(dev, copy);
	__this_cpu_write(rc_egress_reflecting, false);
	return sent;
}

/* A device that moves to another namespace is unregistered from this one too. */
static int rc_egress_device_event(struct notifier_block *block, unsigned long event, void *data)
{
	const struct net_device *dev = netdev_notifier_info_to_dev(data);
	struct rc_egress *egress, *next;
	bool found = false;

	if (event != NETDEV_UNREGISTER)
		return NOTIFY_DONE;
	spin_lock(&rc_egress_lock);
	list_for_each_entry_safe(egress, next, &rc_egress_list, list) {
		if (rcu_access_pointer(egress->dev) != dev)
			continue;
		RCU_INIT_POINTER(egress->dev, NULL);
		list_del(&egress->list);
		found = true;
	}
	spin_unlock(&rc_egress_lock);
	/* After this, nothing is sent out of it on our behalf. */
	if (found)
		synchronize_net();
	return NOTIFY_DONE;
}

static struct notifier_block rc_egress_notifier = {
	.notifier_call = rc_egress_device_event,
};

int rc_egress_module_init(void)
{
	return register_netdevice_notifier(&rc_egress_notifier);
}

void rc_egress_module_exit(void)
{
	unregister_netdevice_notifier(&rc_egress_notifier);
}
