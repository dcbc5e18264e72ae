/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdicts on packets of an in-line queue, on their way to the kernel. They go there together, because each call costs
 * as much as several packets, but none is kept for long: each is a packet that waits. Only one thread at a time may use
 * a struct verdicts.
 */
#ifndef VERDICTS_H
#define VERDICTS_H

#include <stdbool.h>
#include <stdint.h>

#include <ringcap/ringcap.h>

enum {
	VERDICTS_MAX = 16,
	VERDICTS_NS_MAX = 50000,	/* the age of the oldest one, nanoseconds */
};

struct verdicts {
	struct ringcap_verdict batch[VERDICTS_MAX];
	unsigned int n;
	uint64_t since;			/* when the oldest one was added, nanoseconds of the monotonic clock */
	uint64_t given;
	uint64_t missed;		/* of those: found no packet, because an event had taken it */
	uint64_t unreplaced;		/* of those: blocked instead of replaced, for want of memory */
};

/* Adds a verdict. Gives all of them if they are many or old. Its data stay until the next verdicts_give. */
void verdicts_add(struct verdicts *v, struct ringcap *queue, const struct ringcap_verdict *verdict);

/* Gives all of them. If the queue is gone, they are dropped: the kernel has decided on its packets. */
void verdicts_give(struct verdicts *v, struct ringcap *queue);

/* Injects a packet after the verdicts so far. Returns 0, -ESRCH if the packet that it refers to waits no longer, or -errno. */
int verdicts_inject(struct verdicts *v, struct ringcap *queue, const struct ringcap_verdict *packet);

#endif
