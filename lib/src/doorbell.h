/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleep of a consumer of the eBPF engine, the consumer's side. See A QUEUE OF THE EBPF ENGINE in linux/ringcap.h.
 *
 *   AWAKE    no producer rings
 *   ASLEEP   a number was written and the lanes were empty after that: the next packet is announced
 *   STIRRED  packets were received since then; new packets are still announced
 *
 * A number stays until the doorbell rings in its sleep. So a program may wait for the descriptor itself at any time.
 * After a ring, the doorbell is not emptied until the lanes are empty. While the descriptor is readable, nobody rings.
 */
#ifndef RINGCAP_DOORBELL_H
#define RINGCAP_DOORBELL_H

#include <stdbool.h>

#include "lanes.h"

enum doorbell_state { DOORBELL_AWAKE, DOORBELL_ASLEEP, DOORBELL_STIRRED };

struct doorbell {
	uint64_t *sleep;		/* in the consumer page */
	uint64_t *heard;		/* the ring buffer's consumer position */
	const uint64_t *rung;		/* the ring buffer's producer position */
	int ready_fd;			/* an eventfd: readable while there are packets that nobody announces */
	bool ready;			/* it may be readable */
	enum doorbell_state state;
	uint64_t number;		/* of the last sleep */
};

/*
 * Starts in state AWAKE. The caller has set the pointers and ready_fd. Call it again after a fork, because it is not
 * known what another process did.
 */
void doorbell_start(struct doorbell *d);

/* Goes to sleep. Returns true if the next packet will be announced, false if a packet is already there. */
bool doorbell_sleep(struct doorbell *d, const struct lanes *lanes);

/* Notes that packets were received. Without fd_given nobody waits for the descriptor, so the state becomes AWAKE. */
void doorbell_stir(struct doorbell *d, bool fd_given);

/*
 * Called when there are packets and somebody may wait for the descriptor. Makes the descriptor readable, unless it
 * already is, or will be when the doorbell rings.
 */
void doorbell_show(struct doorbell *d);

#endif
