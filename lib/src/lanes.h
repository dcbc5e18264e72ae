/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The consumer's side of a queue's lanes, for both engines. It merges the lanes by time. linux/ringcap.h describes the
 * protocol and its barriers (A) to (D). The code does not trust the shared memory.
 *
 * The producers' positions of all lanes are read together, once all lanes were read up to the last positions. Packets
 * that came meanwhile are newer. If a lane's CPU publishes an older packet later, that packet comes later.
 * As long as one lane has the oldest packets, they are taken at once: a stretch.
 */
#ifndef RINGCAP_LANES_H
#define RINGCAP_LANES_H

#include <stdbool.h>

#include <ringcap/ringcap.h>

#define LANES_OUTSTANDING_MAX 65536	/* packets received and not released; a power of two */
#define LANES_LISTED_MAX 128	/* packets in a run's list */

struct lane {
	const uint8_t *data;		/* lane_size bytes; the last slot ends in the lane_size or RINGCAP_LANE_TAIL after them */
	const uint64_t *producer;
	uint64_t *shared;		/* where the producer reads released */
	uint64_t end;			/* producer's position as last seen */
	uint64_t read;			/* slots before it were received */
	uint64_t released;		/* slots before it were given back */
	const uint8_t *at;		/* while packets are listed: the next slot, */
	const uint8_t *from;		/* the slot at read, */
	const uint8_t *stop;		/* and where slots end, for now */
};

/* A lane that has slots to receive, and the time of its first slot. */
struct head {
	uint64_t ts;
	struct lane *lane;
};

/* Contiguous packets of one lane that were received and are not all released. */
struct stretch {
	uint64_t end;			/* position after them */
	uint32_t count;			/* packets that are not released */
	uint32_t lane;
};

struct lanes {
	unsigned int nr;
	uint32_t lane_size;		/* a power of two; mapped twice in a row, at least RINGCAP_LANE_SIZE_MIN */
	unsigned int nr_heads;		/* lanes that were not read up to end */
	unsigned int first_head;	/* the oldest one in heads */
	unsigned int outstanding;	/* packets received and not released, without runs */
	struct lane *run_lane;		/* lane of the current run, if its packets are contiguous; NULL = it is over */
	unsigned int nr_listed;		/* listed packets of the current run, 0 = its packets are contiguous */
	unsigned int first, next;	/* stretches outstanding, modulo 2^32 */
	struct stretch *stretches;	/* a ring of LANES_OUTSTANDING_MAX elements */
	/* Sorted by time. The first is taken, and the next of its lane is put behind those that are older. */
	struct head heads[1 + RINGCAP_LANES_MAX + LANES_LISTED_MAX];
	struct lane lane[RINGCAP_LANES_MAX];
	const struct ringcap_slot *listed[LANES_LISTED_MAX];
};

/* Starts where the last consumer stopped. The caller has set nr, lane_size, stretches and each lane's pointers. */
void lanes_start(struct lanes *l);

/*
 * Continues after a fork. Packets that another process has read since then are not read again. If they were in a run,
 * they are not passed either.
 */
void lanes_resume(struct lanes *l);

/* Forgets the current run without telling the producer. Its packets are read again. */
void lanes_drop(struct lanes *l);

/*
 * Gives back, unread, the slots of a lane that start before position end. Returns their number. Nothing was received
 * yet.
 */
uint64_t lanes_skip(struct lanes *l, unsigned int lane, uint64_t end);

/* Returns true if there are packets that were not received. During a run, the result may be either. */
bool lanes_pending(const struct lanes *l);

/*
 * Takes up to max packets, oldest first. Returns their number, 0 when there is none, -ENOBUFS when too many are
 * outstanding, and -EBADMSG when a lane's next slot is invalid. In that case, all packets of that lane are skipped.
 */
int lanes_fetch(struct lanes *l, struct ringcap_pkt *pkts, unsigned int max);

/* Releases the n oldest packets; n is at most the number outstanding. */
void lanes_release(struct lanes *l, unsigned int n);

/*
 * Starts a run with the oldest packet. Nothing is outstanding. Returns 1, 0 when there is no packet, -EBADMSG as above.
 * When a lane has only few contiguous packets that are older than those of other lanes, the packets of all lanes are
 * listed if may_list is true.
 */
int lanes_run(struct lanes *l, struct ringcap_run *run, bool may_list);

/* Releases the packets of the run that ringcap_next passed. */
void lanes_pass(struct lanes *l, const struct ringcap_run *run);

/* Does both: lanes_pass, then lanes_run. */
int lanes_next(struct lanes *l, struct ringcap_run *run, bool may_list);

#endif
