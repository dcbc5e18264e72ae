/* SPDX-License-Identifier: GPL-2.0-only */
/* The consumer's side of a transmit area, as simply as the protocol in linux/ringcap.h allows. */
#ifndef RT_INJECT_H
#define RT_INJECT_H

#include <linux/ringcap.h>

#include "consumer.h"
#include "test.h"
#include "traffic.h"

/**
 * struct rt_injector - what a consumer has mapped to send from
 * @fd: the queue's
 * @position: bytes written since it attached, whether the kernel has been told or not
 */
struct rt_injector {
	int fd;
	struct ringcap_tx_index *index;
	u8 *data;
	u64 position;
};

/* Maps the areas of @queue, which must be allowed to send. Call rt_injector_close before @queue is closed. */
void rt_injector_open(struct rt_injector *injector, const struct rt_queue *queue);
void rt_injector_close(struct rt_injector *injector);

/* Writes a packet and publishes it; false if there is no room. @bytes may be NULL. */
bool rt_inject_put(struct rt_injector *injector, u32 ifindex, const u8 *bytes, u32 len);

/* The ioctl: how many slots were taken, or -errno. */
int rt_inject_kick(const struct rt_injector *injector, u32 max);

/* Sends packets @from .. @from + @count of @traffic; all of them are taken when this returns. */
void rt_inject(struct rt_injector *injector, u32 ifindex, const struct rt_traffic *traffic, u32 from, u32 count);

#endif /* RT_INJECT_H */
