/* SPDX-License-Identifier: GPL-2.0-only */
/* Answers to requests: one message, or a dump of several. */
#ifndef RC_ANSWER_H
#define RC_ANSWER_H

#include <net/genetlink.h>

struct net_device;
struct rc_cluster;
struct rc_ring;

/* A ring with all taps, RX queues, outputs, plugins and VLANs takes 20 kB: see rc_ring_netlink_max. */
#define RC_ANSWER_MAX 24576U

/* The objects that a message describes. @queue is used only for messages about a queue. */
struct rc_answer_subject {
	struct rc_cluster *cluster;
	struct rc_ring *ring;
	const struct net_device *dev;
	u32 queue;
};

typedef int (*rc_answer_fill_t)(struct sk_buff *msg, const struct rc_answer_subject *subject);

/* Answers @info with a message that @fill fills. */
int rc_answer_reply(struct genl_info *info, rc_answer_fill_t fill, const struct rc_answer_subject *subject);

/* Begins a message of a dump. Marks it if something changed since the last one. NULL if there is no room. */
void *rc_answer_dump_begin(struct sk_buff *skb, struct netlink_callback *cb);

/* Adds one message to a dump. 0, or -EMSGSIZE if it has to go into the next buffer. */
int rc_answer_dump_one(struct sk_buff *skb, struct netlink_callback *cb, rc_answer_fill_t fill,
		       const struct rc_answer_subject *subject);

#endif /* RC_ANSWER_H */
