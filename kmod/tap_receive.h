/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A tap's hook in the stack: the handlers of its packet_type. In mode 0 each of the first three also handles the packets
 * of the others correctly. They run on the CPU that received or sends the packet, with bottom halves off, under RCU.
 */
#ifndef RC_TAP_RECEIVE_H
#define RC_TAP_RECEIVE_H

struct net_device;
struct packet_type;
struct sk_buff;

/* Takes the packets that the tap wants. */
int rc_tap_receive_any(struct sk_buff *skb, struct net_device *dev, struct packet_type *packet_type,
		       struct net_device *orig_dev);

/* The same for a tap that takes received packets of any receive queue. */
int rc_tap_receive(struct sk_buff *skb, struct net_device *dev, struct packet_type *packet_type,
		   struct net_device *orig_dev);

/* The same for a ring with a filter: it saves the others' tests. */
int rc_tap_receive_filtered(struct sk_buff *skb, struct net_device *dev, struct packet_type *packet_type,
			    struct net_device *orig_dev);

/* The same if the driver passes received packets to us. */
int rc_tap_receive_sent(struct sk_buff *skb, struct net_device *dev, struct packet_type *packet_type,
			struct net_device *orig_dev);

#endif /* RC_TAP_RECEIVE_H */
