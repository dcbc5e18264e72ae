/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets of any kind, built from the inside out: a payload that ends in the packet's number, and headers that are
 * prepended one by one. Also a model of balancing: the queues that a packet belongs to, by the classifier in user
 * space.
 */
#ifndef RT_FRAME_H
#define RT_FRAME_H

#include "../classify/classify.h"
#include "consumer.h"
#include "test.h"

#define RT_FRAME_ROOM 4096

/* @data: the first header so far, within @room. The packet ends at the end of @room. */
struct rt_frame {
	u8 room[RT_FRAME_ROOM];
	u8 *data;
	u32 len;
};

/* The two ends of a flow; IPv6 addresses are made of the same numbers. */
struct rt_ends {
	u32 saddr, daddr;
	u16 sport, dport;
};

void rt_frame_begin(struct rt_frame *frame, u32 number, u32 payload);
void rt_frame_push(struct rt_frame *frame, const void *bytes, u32 len);
void rt_frame_push_tcp(struct rt_frame *frame, const struct rt_ends *ends);
void rt_frame_push_udp(struct rt_frame *frame, const struct rt_ends *ends);
void rt_frame_push_ipv4(struct rt_frame *frame, const struct rt_ends *ends, u8 proto);
void rt_frame_push_ipv6(struct rt_frame *frame, const struct rt_ends *ends, u8 proto);
void rt_frame_push_ethernet(struct rt_frame *frame, u16 type);
void rt_frame_send(int sender, const struct rt_frame *frame);

/* The other direction. */
struct rt_ends rt_ends_reverse(const struct rt_ends *ends);

/*
 * What a cluster should do, and what it did.
 *
 * @cluster: with @name, @balance, @key, @inner and @queues; key NULL = hashes are not looked at
 * @queues: its queues, attached
 * @last: numbers of packets are below this
 * @seen: for each number, bits of the queues that had it; @wanted: those that should have; 0 = not received at all
 * @hash: for each number, of its flow
 */
struct rt_model {
	const struct rt_cluster *cluster;
	struct rt_queue queues[16];
	u32 at;
	u32 last;
	u32 *seen;
	u32 *wanted;
	u32 *hash;
	u64 count;
};

/* Makes the cluster, and attaches to each of its queues. */
void rt_model_open(struct rt_model *model, const struct rt_cluster *cluster, u32 last);

/* Reads all available packets and compares them with the model. */
void rt_model_read(struct rt_model *model);

/* Checks that the right queues received each packet below @last, and that there are no further copies. */
void rt_model_check(struct rt_model *model);
void rt_model_close(struct rt_model *model);

/* The flow by which the model hashes a captured packet. */
void rt_model_flow(const u8 *packet, u32 len, bool inner, struct rc_flow *flow);

#endif /* RT_FRAME_H */
