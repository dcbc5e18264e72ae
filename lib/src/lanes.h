/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The consumer's side of a kernel module queue's lanes, merged by time. The protocol and its barriers (A) to (D) are
 * described in linux/ringcap.h. Nothing here trusts the memory.
 *
 * What is visible at a call is merged; a lane whose CPU publishes later may still have an older packet. It comes then.
 * As long as one lane has the oldest packets they are taken in one go: a stretch. Most queues have one busy lane.
 */
#ifndef RINGCAP_LANES_H
#define RINGCAP_LANES_H

#include <ringcap/ringcap.h>

#define LANES_OUTSTANDING_MAX 65536	/* packets received and not released; a power of two */

struct lane {
	const uint8_t *data;		/* lane_size bytes, mapped twice in a row */
	const uint64_t *producer;
	uint64_t *shared;		/* where the kernel looks for released */
	uint64_t end;			/* producer's position as last seen */
	uint64_t read;			/* slots before it were received */
	uint64_t released;		/* slots before it were given back */
};

/* Packets that lie in a row in one lane, were received and are not all released. */
struct stretch {
	uint64_t end;			/* position behind them */
	uint32_t count;			/* of those not released */
	uint32_t lane;
};

struct lanes {
	unsigned int nr;
	uint32_t lane_size;		/* a power of two, at least RINGCAP_LANE_SIZE_MIN where runs are read */
	unsigned int outstanding;	/* packets received and not released, runs apart */
	unsigned int first, next;	/* stretches outstanding, modulo 2^32 */
	unsigned int running;		/* the lane of the run that was begun */
	struct stretch *stretches;	/* LANES_OUTSTANDING_MAX of them, used in a circle */
	struct lane lane[RINGCAP_LANES_MAX];
};

/* Begins where the last consumer stopped. The caller has set nr, lane_size, stretches and each lane's pointers. */
void lanes_start(struct lanes *l);

/* Gives back, unread, the slots of a lane that begin before position end; their number. Nothing is outstanding. */
uint64_t lanes_skip(struct lanes *l, unsigned int lane, uint64_t end);

/*
 * Takes up to max packets, oldest first. Returns their number, 0 when there is none, -ENOBUFS when too many are
 * outstanding, -EBADMSG when a lane's next slot is nonsense: then what that lane has is skipped.
 */
int lanes_fetch(struct lanes *l, struct ringcap_pkt *pkts, unsigned int max);

/* Releases the n oldest packets; n is at most the number outstanding. */
void lanes_release(struct lanes *l, unsigned int n);

/* Begins a run with the oldest packet; nothing is outstanding. Returns 1, 0 when there is none, -EBADMSG as above. */
int lanes_run(struct lanes *l, struct ringcap_run *run);

/* Releases what ringcap_next has passed of the run. */
void lanes_pass(struct lanes *l, const struct ringcap_run *run);

#endif
