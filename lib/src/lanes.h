/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The consumer's side of a kernel module queue's lanes, merged by time. The protocol and its barriers (A) to (D) are
 * described in linux/ringcap.h. Nothing here trusts the memory.
 *
 * What is visible at a call is merged; a lane whose CPU publishes later may still have an older packet. It comes then.
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

struct lanes {
	unsigned int nr;
	uint32_t lane_size;		/* a power of two */
	unsigned int taken, given;	/* numbers of packets received and released, modulo 2^32 */
	uint8_t *order;			/* the lanes that the outstanding packets are in; LANES_OUTSTANDING_MAX entries */
	struct lane lane[RINGCAP_LANES_MAX];
};

/* Begins where the last consumer stopped. The caller has set nr, lane_size, order and each lane's pointers. */
void lanes_start(struct lanes *l);

/*
 * Takes up to max packets, oldest first. Returns their number, 0 when there is none, -ENOBUFS when too many are
 * outstanding, -EBADMSG when a lane's next slot is nonsense: then what that lane has is skipped.
 */
int lanes_fetch(struct lanes *l, struct ringcap_pkt *pkts, unsigned int max);

/* Gives back the n oldest packets, n at most what is outstanding. */
void lanes_release(struct lanes *l, unsigned int n);

#endif
