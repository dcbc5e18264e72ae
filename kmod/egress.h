/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Egress: interfaces that packets may be sent out of, because a configurer has named them. An egress belongs to the
 * device that it was opened for. After that device is unregistered or leaves the namespace, nothing can be sent any
 * more, even if another device gets its index.
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
 * @dev: NULL after the device is gone; no reference is held: users are under RCU, and the device waits for that
 * @ifindex: of the device, also after it is gone
 * @list: in the list of all egresses, or empty
 */
struct rc_egress {
	struct net_device __rcu *dev;
	u32 ifindex;
	struct list_head list;
};

int rc_egress_module_init(void);
void rc_egress_module_exit(void);

/*
 * Opens @egress for interface @ifindex of @net, or reports why not. @attr: the attribute that names the interface.
 * Under RTNL.
 */
int rc_egress_open(struct rc_egress *egress, struct net *net, u32 ifindex, const struct nlattr *attr,
		   struct netlink_ext_ack *extack);

/* Closes @egress, which no reader under RCU uses any more. May be called for a zeroed one that was never opened. */
void rc_egress_close(struct rc_egress *egress);

/*
 * Sends a copy of @skb, a received packet. The caller keeps @skb, which is not changed. Its data begin at the MAC
 * header; a VLAN tag may have been taken off.
 *
 * False if the packet could not be sent:
 * - the device is gone or down, does not take packets of this length, or has a full queue
 * - there is no memory
 * - the packet is itself being sent, or comes from within a device to which this CPU is reflecting at the moment
 *
 * So a packet does not circulate in this machine, and reflecting never takes one device's transmit lock inside
 * another's. Bottom halves off, under RCU.
 */
bool rc_egress_reflect(const struct rc_egress *egress, struct sk_buff *skb);

/* Gives @skb to @dev; false if @dev refuses it. The data begin at the MAC header. @skb is consumed in either case. */
static inline bool rc_egress_send(struct net_device *dev, struct sk_buff *skb)
{
	int err;

	skb->dev = dev;
	err = dev_queue_xmit(skb);
	/* NET_XMIT_CN reports congestion, but the packet was taken. */
	return !err || err == NET_XMIT_CN;
}

#endif /* RC_EGRESS_H */
