// SPDX-License-Identifier: BSD-2-Clause
#include "lanes.h"

#include <errno.h>
#include <stdbool.h>

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

/* Goes on at position, and forgets what lies before. Packets still outstanding give nothing back then. */
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
	l->taken = 0;
	l->given = 0;
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

/* Looks at how far each lane is published; -EBADMSG when one says nonsense. */
static int refresh(struct lanes *l)
{
	for (unsigned int i = 0; i < l->nr; i++) {
		struct lane *lane = &l->lane[i];

		lane->end = __atomic_load_n(lane->producer, __ATOMIC_ACQUIRE);	/* (B) */
		if (!plausible(l, lane->end, lane->read))
			return skip_to(lane, lane->end);
	}
	return 0;
}

/* The lane whose next slot is the oldest, l->nr = all are empty. */
static unsigned int oldest(const struct lanes *l)
{
	unsigned int best = l->nr;
	uint64_t ts = UINT64_MAX;

	for (unsigned int i = 0; i < l->nr; i++) {
		const struct lane *lane = &l->lane[i];
		const struct ringcap_slot *slot;

		if (lane->read == lane->end)
			continue;
		slot = slot_at(l, lane, lane->read);
		if (best != l->nr && slot->ts_ns >= ts)
			continue;
		best = i;
		ts = slot->ts_ns;
	}
	return best;
}

int lanes_fetch(struct lanes *l, struct ringcap_pkt *pkts, unsigned int max)
{
	unsigned int room = LANES_OUTSTANDING_MAX - (l->taken - l->given);
	unsigned int n = 0;

	if (refresh(l))
		return -EBADMSG;
	while (n < max && n < room) {
		unsigned int i = oldest(l);
		const struct ringcap_slot *slot;
		struct lane *lane;

		if (i == l->nr)
			break;
		lane = &l->lane[i];
		slot = slot_at(l, lane, lane->read);
		if (!slot_fits(slot, lane->end - lane->read)) {
			if (n)
				break;	/* those before it first */
			return skip_to(lane, lane->end);
		}
		lane->read += slot_size(slot);
		pkts[n].slot = slot;
		pkts[n].data = (const uint8_t *)slot + slot->hdr_len;
		l->order[(l->taken + n) % LANES_OUTSTANDING_MAX] = (uint8_t)i;
		n++;
	}
	l->taken += n;
	return n || room ? (int)n : -ENOBUFS;
}

void lanes_release(struct lanes *l, unsigned int n)
{
	uint64_t touched = 0;

	for (; n; n--, l->given++) {
		unsigned int i = l->order[l->given % LANES_OUTSTANDING_MAX];
		struct lane *lane = &l->lane[i];
		uint64_t left = lane->read - lane->released;
		uint64_t size = left ? slot_size(slot_at(l, lane, lane->released)) : 0;

		lane->released += size > left ? left : size;
		touched |= 1ULL << i;
	}
	for (unsigned int i = 0; i < l->nr; i++)
		if (touched & (1ULL << i))
			publish(&l->lane[i]);
}
