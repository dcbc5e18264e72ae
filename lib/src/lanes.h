/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The consumer's side of a queue's lanes, of either engine, merged by time. The protocol and its barriers (A) to (D) are
 * described in linux/ringcap.h. Nothing here trusts the memory.
 *
 * How far the lanes are published is looked at together, whenever all of them were read that far: what came meanwhile is
 * newer, and an older packet that a lane's CPU publishes later comes then. As long as one lane has the oldest packets they
 * are taken in one go: a stretch.
 */
#ifndef RINGCAP_LANES_H
#define RINGCAP_LANES_H

#include <stdbool.h>

#include <ringcap/ringcap.h>

#define LANES_OUTSTANDING_MAX 65536	/* packets received and not released; a power of two */
#define LANES_LISTED_MAX 64	/* packets of a run that are listed */

struct lane {
	const uint8_t *data;		/* lane_size bytes, and as many again or RINGCAP_LANE_TAIL, in which the last slot ends */
	const uint64_t *producer;
	uint64_t *shared;		/* where the producer looks for released */
	uint64_t end;			/* producer's position as last seen */
	uint64_t read;			/* slots before it were received */
	uint64_t released;		/* slots before it were given back */
};

/* A lane that has slots to be received, and the time of the first one. */
struct head {
	uint64_t ts;
	struct lane *lane;
};

/* Packets that lie in a row in one lane, were received and are not all released. */
struct stretch {
	uint64_t end;			/* position behind them */
	uint32_t count;			/* of those not released */
	uint32_t lane;
};

struct lanes {
	unsigned int nr;
	uint32_t lane_size;		/* a power of two; mapped twice in a row, at least RINGCAP_LANE_SIZE_MIN */
	unsigned int nr_heads;		/* lanes that were not read as far as was seen */
	unsigned int outstanding;	/* packets received and not released, runs apart */
	struct lane *run_lane;		/* of the run that was begun, if its packets lie in a row; NULL = it is over */
	unsigned int nr_listed;		/* of the run that was begun, 0 = its packets lie in a row */
	unsigned int first, next;	/* stretches outstanding, modulo 2^32 */
	struct stretch *stretches;	/* LANES_OUTSTANDING_MAX of them, used in a circle */
	/* A binary heap from heads[1] on, which is the oldest. Unused ones have UINT64_MAX. */
	struct head heads[2 * RINGCAP_LANES_MAX + 2];
	struct lane lane[RINGCAP_LANES_MAX];
	const struct ringcap_slot *listed[LANES_LISTED_MAX];
};

/* Begins where the last consumer stopped. The caller has set nr, lane_size, stretches and each lane's pointers. */
void lanes_start(struct lanes *l);

/* Goes on after a fork: what another process has read since is not read again, nor passed if a run had it. */
void lanes_resume(struct lanes *l);

/* Forgets the run that was begun, without a word to the producer: its packets are read again. */
void lanes_drop(struct lanes *l);

/* Gives back, unread, the slots of a lane that begin before position end; their number. Nothing was received yet. */
uint64_t lanes_skip(struct lanes *l, unsigned int lane, uint64_t end);

/* Whether something is there that was not received; for a run that was begun, either. */
bool lanes_pending(const struct lanes *l);

/*
 * Takes up to max packets, oldest first. Returns their number, 0 when there is none, -ENOBUFS when too many are
 * outstanding, -EBADMSG when a lane's next slot is nonsense: then what that lane has is skipped.
 */
int lanes_fetch(struct lanes *l, struct ringcap_pkt *pkts, unsigned int max);

/* Releases the n oldest packets; n is at most the number outstanding. */
void lanes_release(struct lanes *l, unsigned int n);

/*
 * Begins a run with the oldest packet; nothing is outstanding. Returns 1, 0 when there is none, -EBADMSG as above. Where lanes
 * have few packets in a row that are older than what others have, the packets of all are listed, if the caller's run may.
 */
int lanes_run(struct lanes *l, struct ringcap_run *run, bool may_list);

/* Releases what ringcap_next has passed of the run. */
void lanes_pass(struct lanes *l, const struct ringcap_run *run);

/* Both: releases that, and begins another one. */
int lanes_next(struct lanes *l, struct ringcap_run *run, bool may_list);

#endif
