/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a consumer of the eBPF engine sleeps, the consumer's side: see A QUEUE OF THE EBPF ENGINE in linux/ringcap.h.
 *
 *   AWAKE    nobody rings
 *   ASLEEP   the lanes were empty after a number was written: the next packet is announced
 *   STIRRED  packets were received since; those that come are still announced
 *
 * The number stays while its sleep has not been rung in, so that a program that waits for the descriptor by itself may do so
 * at any time. A bell that has rung is left so until the lanes are empty: with the descriptor readable, nobody rings.
 */
#ifndef RINGCAP_DOORBELL_H
#define RINGCAP_DOORBELL_H

#include <stdbool.h>

#include "lanes.h"

enum doorbell_state { DOORBELL_AWAKE, DOORBELL_ASLEEP, DOORBELL_STIRRED };

struct doorbell {
	uint64_t *sleep;		/* in the consumer page */
	uint64_t *heard;		/* the ring buffer's consumer position, and */
	const uint64_t *rung;		/* its producer's */
	int ready_fd;			/* an eventfd: readable while packets are there that nobody announces */
	bool ready;			/* it may be readable */
	enum doorbell_state state;
	uint64_t number;		/* of the last sleep */
};

/* Begins awake. The caller has set the pointers and ready_fd; after a fork again, for what another process did is not known. */
void doorbell_start(struct doorbell *d);

/* To sleep: true = the next packet will be announced, false = one is there already. */
bool doorbell_sleep(struct doorbell *d, const struct lanes *lanes);

/* Packets were received. With fd_given somebody may wait for the descriptor, else the reader is awake from now on. */
void doorbell_stir(struct doorbell *d, bool fd_given);

/* Packets are there, and somebody may wait for the descriptor: makes it readable, unless it is, or will be by the bell. */
void doorbell_show(struct doorbell *d);

#endif
