/* SPDX-License-Identifier: GPL-2.0-only */
/* Objects as netlink attributes. All functions return -EMSGSIZE if the message is full. All under rc_net.control. */
#ifndef RC_MESSAGE_H
#define RC_MESSAGE_H

#include <linux/types.h>

struct rc_cluster;
struct rc_ring;
struct sk_buff;

int rc_message_put_cluster(struct sk_buff *msg, const struct rc_cluster *cluster);

/* Under RTNL too, for the taps. */
int rc_message_put_ring(struct sk_buff *msg, const struct rc_ring *ring);

/* Called in the requesting process: the consumer's pid is translated into its pid namespace. */
int rc_message_put_queue(struct sk_buff *msg, struct rc_cluster *cluster, u32 index);

#endif /* RC_MESSAGE_H */
