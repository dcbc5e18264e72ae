/* SPDX-License-Identifier: BSD-2-Clause */
/* The consumer's side of a module queue's transmit area; see struct ringcap_tx_slot in linux/ringcap.h. */
#ifndef RINGCAP_SENDER_H
#define RINGCAP_SENDER_H

#include <stddef.h>
#include <stdint.h>

#include <linux/ringcap.h>

struct sender {
	struct ringcap_tx_index *index;	/* NULL while nothing is mapped */
	uint8_t *data;
	uint32_t size;			/* bytes of data, a power of two */
	uint64_t position;		/* bytes written since the queue was attached */
	unsigned int waiting;		/* packets written and not known to be taken */
};

/* Copies a packet in and publishes it. Returns 0, -EAGAIN if there is no room, -EMSGSIZE if it can never fit. */
int sender_put(struct sender *s, uint32_t ifindex, const void *packet, size_t len);

#endif
