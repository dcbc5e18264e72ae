// SPDX-License-Identifier: BSD-2-Clause
#include "lanes.h"

#include <errno.h>
#include <stdbool.h>

#define RUN_BYTES (256U << 10)	/* about as much is read until room is given back; at most an eighth of a lane */

static bool plausible(const struct lanes *l, uint64_t end, uint64_t position)
{
	return position <= end && end - position <= l->lane_size && position % 8 == 0;
}

static const struct ringcap_slot *slot_at(const struct lanes *l, const struct lane *lane, uint64_t position)
{
	return (const void *)(lane->data + (position & (l->lane_size - 1)));
}

static uint32_t slot_size(const struct ringcap_slot *slot)
{
	return RINGCAP_SLOT_SIZE(slot->hdr_len, slot->caplen);
}

/* Whether the slot and its packet lie in the room bytes that were published. */
static bool slot_fits(const struct ringcap_slot *slot, uint64_t room)
{
	return room >= RINGCAP_SLOT_SHORT && slot->hdr_len >= RINGCAP_SLOT_SHORT && slot->hdr_len % 8 == 0 &&
	       slot->caplen <= RINGCAP_SNAPLEN_MAX && slot_size(slot) <= room;
}

static void publish(struct lane *lane)
{
	__atomic_store_n(lane->shared, lane->released, __ATOMIC_RELEASE);	/* (C) */
}

/* Continues at position, and drops what lies before. Packets still outstanding release nothing then. */
static int skip_to(struct lane *lane, uint64_t position)
{
	lane->read = position;
	lane->released = position;
	lane->end = position;
	publish(lane);
	return -EBADMSG;
}

void lanes_start(struct lanes *l)
{
	l->outstanding = 0;
	l->first = 0;
	l->next = 0;
	for (unsigned int i = 0; i < l->nr; i++) {
		struct lane *lane = &l->lane[i];

		lane->end = __atomic_load_n(lane->producer, __ATOMIC_ACQUIRE);
		lane->read = __atomic_load_n(lane->shared, __ATOMIC_RELAXED);
		if (!plausible(l, lane->end, lane->read))
			lane->read = lane->end;
		lane->released = lane->read;
		publish(lane);
	}
}

uint64_t lanes_skip(struct lanes *l, unsigned int i, uint64_t end)
{
	struct lane *lane = &l->lane[i];
	uint64_t skipped = 0;

	while (lane->read < end && slot_fits(slot_at(l, lane, lane->read), lane->end - lane->read)) {
		lane->read += slot_size(slot_at(l, lane, lane->read));
		skipped++;
	}
	lane->released = lane->read;
	publish(lane);
	return skipped;
}

/*
 * Looks at how far each lane is published; -EBADMSG for an invalid position. The first lane last: from that a processor goes to
 * one of its own, and is not to be seen there without what it had before.
 */
static int refresh(struct lanes *l)
{
	for (unsigned int i = l->nr; i-- > 0;) {
		struct lane *lane = &l->lane[i];

		lane->end = __atomic_load_n(lane->producer, __ATOMIC_ACQUIRE);	/* (B) */
		if (!plausible(l, lane->end, lane->read))
			return skip_to(lane, lane->end);
	}
	return 0;
}

/*
 * The lane whose next slot is the oldest, l->nr = all are empty. Its slots up to the time *until, that of the next in
 * another lane, come before that one; UINT64_MAX = no other lane has any.
 */
static unsigned int oldest(const struct lanes *l, uint64_t *until)
{
	unsigned int best = l->nr;
	uint64_t ts = UINT64_MAX;

	*until = UINT64_MAX;
	for (unsigned int i = 0; i < l->nr; i++) {
		const struct lane *lane = &l->lane[i];
		uint64_t its;

		if (lane->read == lane->end)
			continue;
		its = slot_at(l, lane, lane->read)->ts_ns;
		if (best != l->nr && its >= ts) {
			*until = its < *until ? its : *until;
			continue;
		}
		*until = best != l->nr ? ts : *until;
		best = i;
		ts = its;
	}
	return best;
}

/* Takes the first slot of a lane that is not empty, and what follows it up to the time until. 0 = it is invalid. */
static unsigned int take(const struct lanes *l, struct lane *lane, uint64_t until, struct ringcap_pkt *pkts, unsigned int max)
{
	const uint8_t *at = (const void *)slot_at(l, lane, lane->read);
	uint64_t room = lane->end - lane->read;
	unsigned int n = 0;

	while (n < max && room) {
		const struct ringcap_slot *slot = (const void *)at;
		uint32_t size;

		if (!slot_fits(slot, room) || (n && slot->ts_ns > until))
			break;
		size = slot_size(slot);
		pkts[n].slot = slot;
		pkts[n].data = at + slot->hdr_len;
		n++;
		at += size;
		room -= size;
	}
	lane->read = lane->end - room;
	return n;
}

int lanes_fetch(struct lanes *l, struct ringcap_pkt *pkts, unsigned int max)
{
	unsigned int room = LANES_OUTSTANDING_MAX - l->outstanding;
	unsigned int n = 0, got;

	if (refresh(l))
		return -EBADMSG;
	for (max = max < room ? max : room; n < max; n += got) {
		uint64_t until;
		unsigned int i = oldest(l, &until);

		if (i == l->nr)
			break;
		got = take(l, &l->lane[i], until, pkts + n, max - n);
		if (!got) {
			if (n)
				break;	/* those before it first */
			return skip_to(&l->lane[i], l->lane[i].end);
		}
		l->stretches[l->next++ % LANES_OUTSTANDING_MAX] = (struct stretch){ l->lane[i].read, got, i };
	}
	l->outstanding += n;
	return n || room ? (int)n : -ENOBUFS;
}

/* The position behind the n oldest packets of a lane that are not released. */
static uint64_t position_behind(const struct lanes *l, const struct lane *lane, unsigned int n)
{
	uint64_t position = lane->released;

	while (n-- && position != lane->read) {
		uint32_t size = slot_size(slot_at(l, lane, position));

		position = size > lane->read - position ? lane->read : position + size;
	}
	return position;
}

void lanes_release(struct lanes *l, unsigned int n)
{
	l->outstanding -= n;
	while (n) {
		struct stretch *s = &l->stretches[l->first % LANES_OUTSTANDING_MAX];
		struct lane *lane = &l->lane[s->lane];
		unsigned int here = n < s->count ? n : s->count;
		uint64_t end = here < s->count ? position_behind(l, lane, here) : s->end;

		if (end - lane->released <= lane->read - lane->released) {	/* not skipped */
			lane->released = end;
			publish(lane);
		}
		n -= here;
		s->count -= here;
		l->first += !s->count;
	}
	if (l->first == l->next)
		l->first = l->next = 0;	/* the same few stay in the cache */
}

/* How many bytes from the lane's next slot on come before what other lanes have; at most about limit bytes. */
static uint64_t run_bytes(const struct lanes *l, const struct lane *lane, uint64_t until, uint64_t limit)
{
	uint64_t position = lane->read;

	while (position != lane->end && position - lane->read < limit) {
		const struct ringcap_slot *slot = slot_at(l, lane, position);

		if (!slot_fits(slot, lane->end - position) || (position != lane->read && slot->ts_ns > until))
			break;
		position += slot_size(slot);
	}
	return position - lane->read;
}

int lanes_run(struct lanes *l, struct ringcap_run *run)
{
	uint64_t until, room, bytes, ahead;
	unsigned int i;
	struct lane *lane;

	if (refresh(l))
		return -EBADMSG;
	i = oldest(l, &until);
	if (i == l->nr)
		return 0;
	lane = &l->lane[i];
	room = lane->end - lane->read;
	if (!slot_fits(slot_at(l, lane, lane->read), room))
		return skip_to(lane, lane->end);
	bytes = l->lane_size / 8 < RUN_BYTES ? l->lane_size / 8 : RUN_BYTES;
	if (bytes > room)
		bytes = room;
	if (until != UINT64_MAX)
		bytes = run_bytes(l, lane, until, bytes);
	/* It ends where the first mapping does, so that no slot that begins in it can reach beyond the second. */
	ahead = l->lane_size - (lane->read & (l->lane_size - 1));
	run->next = (const void *)slot_at(l, lane, lane->read);
	run->stop = run->next + (bytes < ahead ? bytes : ahead);
	l->running = i;
	return 1;
}

void lanes_pass(struct lanes *l, const struct ringcap_run *run)
{
	struct lane *lane = &l->lane[l->running];
	uint64_t passed = (uint64_t)(run->next - (const uint8_t *)slot_at(l, lane, lane->read));

	/* Beyond the end: the last slot's length was nonsense. */
	lane->read = passed > lane->end - lane->read ? lane->end : lane->read + passed;
	lane->released = lane->read;
	publish(lane);
}
