/* SPDX-License-Identifier: GPL-2.0-only */
/* The consumer's side of a queue, as simply as the protocol in linux/ringcap.h allows, with every field checked. */
#ifndef RT_CONSUMER_H
#define RT_CONSUMER_H

#include <linux/ringcap.h>

#include "test.h"
#include "traffic.h"

struct rt_queue {
	int fd;
	u32 nr_lanes;
	u32 lane_size;
	const struct ringcap_queue_info *info;
	const struct ringcap_lane_kernel *kernel;
	struct ringcap_lane_consumer *consumer;
	size_t kernel_len;
	size_t consumer_len;
	const u8 *data[RINGCAP_LANES_MAX];
	u64 position[RINGCAP_LANES_MAX];	/* next to be read */
	u32 stop_us;	/* rt_queue_read_in_order sometimes pauses this long between reading two lanes */
};

typedef void (*rt_slot_fn)(const struct ringcap_slot *slot, const u8 *packet, void *arg);

/* A file descriptor, or -errno. */
int rt_queue_try_open(const char *cluster, u32 queue);
void rt_queue_open(struct rt_queue *queue, const char *cluster, u32 index);
void rt_queue_close(struct rt_queue *queue);

/* Reads the available packets, calls @fn for each one and releases it; returns how many it read. */
u32 rt_queue_read(struct rt_queue *queue, rt_slot_fn fn, void *arg);

/*
 * The same, with the packets of all lanes in order of time. Packets of one CPU come in the order in which it got them.
 */
u32 rt_queue_read_in_order(struct rt_queue *queue, rt_slot_fn fn, void *arg);

/* The lane of @slot, which was read. */
u32 rt_queue_lane_of(const struct rt_queue *queue, const struct ringcap_slot *slot);

/* The same as rt_queue_read for at most @max packets, without releasing them. */
u32 rt_queue_peek(struct rt_queue *queue, rt_slot_fn fn, void *arg, u32 max);

/* poll(2); returns what it reports, 0 after @milliseconds. */
int rt_queue_poll(const struct rt_queue *queue, int milliseconds);

/**
 * struct rt_receiver - checks packets of one kind of traffic
 * @traffic: as it should arrive
 * @ifindex: tapped interface
 * @outgoing: whether the packets are sent there
 * @snaplen: 0 = packets are captured whole
 * @last: numbers are below this
 * @seen: one byte for each number: how often it arrived
 * @count, @bytes: totals, on the wire
 */
struct rt_receiver {
	const struct rt_traffic *traffic;
	u32 ifindex;
	bool outgoing;
	u32 last;
	u8 *seen;
	u64 count;
	u64 bytes;
};

void rt_receiver_init(struct rt_receiver *receiver, const struct rt_traffic *traffic, u32 ifindex, u32 last);

/* A rt_slot_fn that takes a struct rt_receiver: fails on a packet that is damaged, unknown, or has come before. */
void rt_receive(const struct ringcap_slot *slot, const u8 *packet, void *receiver);

/*
 * Sends packets @from .. @from + @count in batches, and reads each batch from @queues before it sends the next. On
 * return all accounts include all of them.
 */
void rt_exchange(int sender, const struct rt_traffic *traffic, u32 from, u32 count, struct rt_queue *queues,
		 u32 nr_queues, struct rt_receiver *receiver);

#endif /* RT_CONSUMER_H */
