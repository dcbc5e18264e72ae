/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Egress: interfaces that packets may be sent out of, because a configurer has named them. An egress is for the device
 * that it was opened for and no other: when that is unregistered or leaves the namespace nothing can be sent any more,
 * whatever device gets its index next.
 */
#ifndef RC_EGRESS_H
#define RC_EGRESS_H

#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>

struct netlink_ext_ack;
struct nlattr;

/**
 * struct rc_egress - an interface that packets may be sent out of
 * @dev: NULL when it is gone. No reference is held: users are under RCU, which the device waits for
 * @ifindex: of the device, also when it is gone
 * @list: in the list of all of them, or empty
 */
struct rc_egress {
	struct net_device __rcu *dev;
	u32 ifindex;
	struct list_head list;
};

int rc_egress_module_init(void);
void rc_egress_module_exit(void);

/*
 * Opens @egress for interface @ifindex of @net, or reports why not; @attr is where the configurer named it. Under RTNL.
 */
int rc_egress_open(struct rc_egress *egress, struct net *net, u32 ifindex, const struct nlattr *attr,
		   struct netlink_ext_ack *extack);

/* Nobody under RCU uses @egress any more. May be called for one that is zeroed and was never opened. */
void rc_egress_close(struct rc_egress *egress);

/*
 * Sends a copy of @skb, which is a received packet, looks as before and stays the caller's; its data begin at the MAC
 * header, a VLAN tag may be taken off. False if the packet could not be sent: the device is gone, is down, takes no
 * packet of this length or has a full queue; there is no memory; or the packet is itself one that is being sent, or
 * comes from within a device to which this CPU is just reflecting. So a packet does not go round in this machine, and
 * reflecting never takes one device's transmit lock inside another's. Bottom halves off, under RCU.
 */
bool rc_egress_reflect(const struct rc_egress *egress, struct sk_buff *skb);

/* Hands @skb, whose data begin at the MAC header, to @dev; false if that refuses it. @skb is gone in either case. */
static inline bool rc_egress_send(struct net_device *dev, struct sk_buff *skb)
{
	int err;

	skb->dev = dev;
	err = dev_queue_xmit(skb);
	/* With a notice of congestion it was taken all the same. */
	return !err || err == NET_XMIT_CN;
}

#endif /* RC_EGRESS_H */
