// SPDX-License-Identifier: BSD-2-Clause
#include "lanes.h"

#include <errno.h>
#include <string.h>

#define LISTED_BELOW 8		/* fewer contiguous packets than this are listed */
#define RUN_BYTES (256U << 10)	/* about so much is read before room is given back; at most an eighth of a lane */

#define HOT static inline __attribute__((always_inline))	/* runs for each packet when lanes alternate */

_Static_assert(RINGCAP_LANE_TAIL >= RINGCAP_SLOT_SHORT + RINGCAP_SLOT_REST_MAX, "the longest slot ends in the tail");

static bool plausible(const struct lanes *l, uint64_t end, uint64_t position)
{
	return position <= end && end - position <= l->lane_size && position % 8 == 0;
}

static uint64_t published(const struct lane *lane)
{
	return __atomic_load_n(lane->producer, __ATOMIC_ACQUIRE);	/* (B) */
}

HOT const struct ringcap_slot *slot_at(const struct lanes *l, const struct lane *lane, uint64_t position)
{
	return (const void *)(lane->data + (position & (l->lane_size - 1)));
}

/* Returns the bytes to the next slot, or 0 if this slot and its packet do not lie in the room published bytes. */
HOT uint32_t slot_size(const struct ringcap_slot *slot, uint64_t room)
{
	uint32_t hdr_len = __atomic_load_n(&slot->hdr_len, __ATOMIC_RELAXED);	/* each field is read once */
	uint32_t caplen = __atomic_load_n(&slot->caplen, __ATOMIC_RELAXED);
	uint32_t size = RINGCAP_SLOT_SIZE(hdr_len, caplen);

	if (hdr_len < RINGCAP_SLOT_SHORT || hdr_len % 8 || caplen > RINGCAP_SNAPLEN_MAX || size > room)
		return 0;
	return size;
}

/* Returns the bytes of a slot and its packet after a short header; more than RINGCAP_SLOT_REST_MAX if it is invalid. */
HOT uint64_t slot_rest(const struct ringcap_slot *slot)
{
	uint64_t hdr_len = __atomic_load_n(&slot->hdr_len, __ATOMIC_RELAXED);
	uint64_t caplen = __atomic_load_n(&slot->caplen, __ATOMIC_RELAXED);

	return (hdr_len + caplen - RINGCAP_SLOT_SHORT + 7) & ~7ULL;
}

static void publish(struct lane *lane)
{
	__atomic_store_n(lane->shared, lane->released, __ATOMIC_RELEASE);	/* (C) */
}

/* ---------------------------------------------------------------- heads */

/*
 * Most heads that are put among the others are the latest, or one of the latest. The heads move up in their array with
 * each that is put there, and back to its start when they have come to its end. heads[0] is never one of them.
 */

static struct head *first_head(struct lanes *l)
{
	return l->heads + l->first_head;
}

/* Puts a head into the array between first and behind, which has room for it. */
HOT void put_head(const struct head *first, struct head *behind, uint64_t ts, struct lane *lane)
{
	for (; __builtin_expect(ts < behind[-1].ts, 0) && behind != first; behind--)
		*behind = behind[-1];
	*behind = (struct head){ ts, lane };
}

/* Moves the heads to the start of their array. Returns the first. */
static struct head *move_back(struct lanes *l)
{
	struct head *first = l->heads + 1;

	memmove(first, first_head(l), l->nr_heads * sizeof(*first));
	l->first_head = 1;
	return first;
}

static void add_head(struct lanes *l, struct lane *lane)
{
	struct head *first = move_back(l);

	put_head(first, first + l->nr_heads, slot_at(l, lane, lane->read)->ts_ns, lane);
	l->nr_heads++;
}

/* Updates the heads after the first one's lane was read further. */
HOT void first_moved(struct lanes *l, struct lane *lane)
{
	const struct head *end = l->heads + sizeof(l->heads) / sizeof(l->heads[0]);
	struct head *first = first_head(l), *behind = first + l->nr_heads;

	if (lane->read == lane->end) {
		l->nr_heads--;
	} else {
		if (behind == end)
			behind = (first = move_back(l)) + l->nr_heads;
		put_head(first + 1, behind, slot_at(l, lane, lane->read)->ts_ns, lane);
	}
	l->first_head++;
}

/* Returns the time of the oldest slot in the other lanes. The first head's slots up to that time come before it. */
static uint64_t next_time(const struct lanes *l)
{
	return l->nr_heads > 1 ? l->heads[l->first_head + 1].ts : UINT64_MAX;
}

/* Puts the lanes in order by the positions that were last seen. */
static void order(struct lanes *l)
{
	l->nr_heads = 0;
	for (unsigned int i = 0; i < l->nr; i++)
		if (l->lane[i].read != l->lane[i].end)
			add_head(l, &l->lane[i]);
}

/* ---------------------------------------------------------------- positions */

/* Continues at position, and drops the packets before it. Packets that are still outstanding then release nothing. */
static __attribute__((cold)) int skip_to(struct lanes *l, struct lane *lane, uint64_t position)
{
	lane->read = position;
	lane->released = position;
	lane->end = position;
	publish(lane);
	order(l);
	return -EBADMSG;
}

/* Starts at the consumer's position in the shared memory. Nothing of the lane has been received yet. */
static void start(const struct lanes *l, struct lane *lane)
{
	uint64_t end = published(lane);

	lane->read = __atomic_load_n(lane->shared, __ATOMIC_RELAXED);
	if (!plausible(l, end, lane->read))
		lane->read = end;
	lane->end = lane->read;
	lane->released = lane->read;
	publish(lane);
}

void lanes_start(struct lanes *l)
{
	l->outstanding = 0;
	l->first = 0;
	l->next = 0;
	for (unsigned int i = 0; i < l->nr; i++)
		start(l, &l->lane[i]);
	order(l);
}

void lanes_resume(struct lanes *l)
{
	for (unsigned int i = 0; i < l->nr; i++)
		if (__atomic_load_n(l->lane[i].shared, __ATOMIC_RELAXED) != l->lane[i].released) {
			start(l, &l->lane[i]);
			if (l->run_lane == &l->lane[i])
				l->run_lane = NULL;
		}
	order(l);
}

void lanes_drop(struct lanes *l)
{
	l->run_lane = NULL;
	if (!l->nr_listed)
		return;
	l->nr_listed = 0;
	for (unsigned int i = 0; i < l->nr; i++)
		l->lane[i].read = l->lane[i].released;
	order(l);
}

uint64_t lanes_skip(struct lanes *l, unsigned int i, uint64_t end)
{
	struct lane *lane = &l->lane[i];
	uint64_t there = published(lane), skipped = 0;
	uint32_t size;

	if (!plausible(l, there, lane->read))
		return 0;
	while (lane->read < end && (size = slot_size(slot_at(l, lane, lane->read), there - lane->read))) {
		lane->read += size;
		skipped++;
	}
	lane->end = lane->read;
	lane->released = lane->read;
	publish(lane);
	return skipped;
}

bool lanes_pending(const struct lanes *l)
{
	if (l->nr_heads)
		return true;
	for (unsigned int i = 0; i < l->nr; i++)
		if (published(&l->lane[i]) != l->lane[i].read)
			return true;
	return false;
}

/*
 * Called when all lanes were read up to end: reads how far they are published now. Returns -EBADMSG for an invalid
 * position. It reads the first lane last, because a CPU moves from that lane to one of its own. So the CPU's later
 * packets are not seen without its earlier ones.
 */
static int look(struct lanes *l)
{
	for (unsigned int i = l->nr; i-- > 0; ) {
		struct lane *lane = &l->lane[i];
		uint64_t end = published(lane);

		if (end == lane->end)
			continue;
		if (!plausible(l, end, lane->read))
			return skip_to(l, lane, end);
		lane->end = end;
		add_head(l, lane);
	}
	return 0;
}

/* ---------------------------------------------------------------- packets one by one */

/*
 * Takes the first slot of a lane that is not empty, and the slots after it up to the time until. Returns their number,
 * 0 if the first slot is invalid.
 */
static unsigned int take(const struct lanes *l, struct lane *lane, uint64_t until, struct ringcap_pkt *pkts, unsigned int max)
{
	const uint8_t *at = (const void *)slot_at(l, lane, lane->read);
	const uint8_t *wrap = lane->data + l->lane_size;
	uint64_t room = lane->end - lane->read;
	unsigned int n = 0;

	while (n < max && room) {
		const struct ringcap_slot *slot = (const void *)at;
		uint32_t size = slot_size(slot, room);

		if (!size || (n && slot->ts_ns > until))
			break;
		pkts[n].slot = slot;
		pkts[n].data = at + slot->hdr_len;
		n++;
		room -= size;
		at += size;
		if (at >= wrap)
			at -= l->lane_size;
	}
	lane->read = lane->end - room;
	return n;
}

int lanes_fetch(struct lanes *l, struct ringcap_pkt *pkts, unsigned int max)
{
	unsigned int room = LANES_OUTSTANDING_MAX - l->outstanding;
	unsigned int n = 0, got;

	if (!l->nr_heads && look(l))
		return -EBADMSG;
	for (max = max < room ? max : room; n < max && l->nr_heads; n += got) {
		struct lane *lane = first_head(l)->lane;

		got = take(l, lane, next_time(l), pkts + n, max - n);
		if (!got) {
			if (n)
				break;	/* hand on the packets before it first */
			return skip_to(l, lane, lane->end);
		}
		l->stretches[l->next++ % LANES_OUTSTANDING_MAX] = (struct stretch){ lane->read, got, (uint32_t)(lane - l->lane) };
		first_moved(l, lane);
	}
	l->outstanding += n;
	return n || room ? (int)n : -ENOBUFS;
}

/* Returns the position after the n oldest packets of a lane that are not released. */
static uint64_t position_behind(const struct lanes *l, const struct lane *lane, unsigned int n)
{
	uint64_t position = lane->released;

	while (n-- && position != lane->read) {
		uint32_t size = slot_size(slot_at(l, lane, position), lane->read - position);

		position = size ? position + size : lane->read;
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

		if (end - lane->released <= lane->read - lane->released) {	/* it was not skipped */
			lane->released = end;
			publish(lane);
		}
		n -= here;
		s->count -= here;
		l->first += !s->count;
	}
	if (l->first == l->next)
		l->first = l->next = 0;	/* reuse the same few, which are in the cache */
}

/* ---------------------------------------------------------------- runs */

/*
 * Returns how many bytes of the lane come before the slots of the other lanes, at most about limit. The first slot has
 * size bytes. *n is the number of these slots, which is exact up to LISTED_BELOW.
 */
static uint64_t run_bytes(const struct lanes *l, const struct lane *lane, uint32_t size, uint64_t limit, unsigned int *n)
{
	uint64_t bytes = 0, until = next_time(l);

	for (*n = 1; ; ++*n) {
		const struct ringcap_slot *slot = slot_at(l, lane, lane->read + (bytes += size));

		if (bytes >= limit || slot->ts_ns > until)
			return bytes;
		size = slot_size(slot, lane->end - lane->read - bytes);
		if (!size)
			return bytes;
	}
}

/* Prepares a lane for the list: its slots up to its end, the end of its memory, or about limit bytes. */
static void aim(const struct lanes *l, struct lane *lane, uint64_t limit)
{
	uint64_t bytes = lane->end - lane->read, ahead = l->lane_size - (lane->read & (l->lane_size - 1));

	bytes = bytes < ahead ? bytes : ahead;
	lane->from = lane->at = (const void *)slot_at(l, lane, lane->read);
	lane->stop = lane->at + (bytes < limit ? bytes : limit);
}

/* Moves a lane's read position up to the slots that were listed. */
static void reach(struct lane *lane, const uint8_t *at)
{
	lane->read += (uint64_t)(at - lane->from);
	lane->from = lane->at = at;
}

/* Why a lane's slots end at its stop. */
enum stop { STOP_HERE, STOP_MEMORY, STOP_LIMIT, STOP_INVALID };

/* Called when the slot before at ends at or behind its lane's stop. Sets the next stop unless the slot is invalid. */
static __attribute__((noinline))
enum stop stopped(const struct lanes *l, struct lane *lane, const uint8_t *at, uint64_t limit)
{
	if ((uint64_t)(at - lane->from) > lane->end - lane->read)
		return STOP_INVALID;
	reach(lane, at);
	aim(l, lane, limit);
	if (lane->read == lane->end)
		return STOP_HERE;
	return at < lane->data + l->lane_size ? STOP_LIMIT : STOP_MEMORY;
}

/* Lists the packets of the lanes, oldest first, and moves the lanes' read positions. The first slot is valid. */
static __attribute__((noinline)) int list(struct lanes *l, struct ringcap_run *run, uint64_t limit)
{
	const struct ringcap_slot **next = l->listed, **end = l->listed + LANES_LISTED_MAX;
	struct head *first = move_back(l), *behind = first + l->nr_heads;

	for (const struct head *head = first; head < behind; head++)
		aim(l, head->lane, limit);
	do {
		struct lane *lane = first->lane;
		const struct ringcap_slot *slot = (const void *)lane->at;
		uint64_t rest = slot_rest(slot);
		const uint8_t *at = lane->at + RINGCAP_SLOT_SHORT + rest;

		if (rest > RINGCAP_SLOT_REST_MAX)
			break;	/* hand on the packets before it first */
		if (at >= lane->stop) {
			enum stop why = stopped(l, lane, at, limit);

			if (why == STOP_INVALID)
				break;
			if (why == STOP_LIMIT)
				end = next + 1;
			at = lane->at;
		}
		*next++ = slot;
		first++;
		if (at != lane->stop) {
			lane->at = at;
			put_head(first, behind++, ((const struct ringcap_slot *)(const void *)at)->ts_ns, lane);
		} else if (first == behind) {
			break;
		}
	} while (next < end);
	for (const struct head *head = first; head < behind; head++)
		reach(head->lane, head->lane->at);
	l->first_head = (unsigned int)(first - l->heads);
	l->nr_heads = (unsigned int)(behind - first);
	l->nr_listed = (unsigned int)(next - l->listed);
	run->next = run->stop = NULL;
	run->listed = l->listed;
	run->listed_end = next;
	return 1;
}

/* Starts a run of contiguous packets. If these are too few, lists packets instead. */
static int in_a_row(struct lanes *l, struct ringcap_run *run, bool may_list)
{
	uint64_t limit = l->lane_size / 8 < RUN_BYTES ? l->lane_size / 8 : RUN_BYTES, ahead;
	struct lane *lane = first_head(l)->lane;
	const struct ringcap_slot *slot = slot_at(l, lane, lane->read);
	uint64_t room = lane->end - lane->read, bytes = limit < room ? limit : room;
	uint32_t size = slot_size(slot, room);
	unsigned int n;

	if (!size)
		return skip_to(l, lane, lane->end);
	if (l->nr_heads > 1) {
		bytes = run_bytes(l, lane, size, bytes, &n);
		if (n < LISTED_BELOW && may_list)
			return list(l, run, limit);
	}
	/* The run ends at the lane's end. So no slot that starts in the run can reach beyond the mapped memory. */
	ahead = l->lane_size - (lane->read & (l->lane_size - 1));
	l->run_lane = lane;
	run->next = (const void *)slot;
	run->stop = run->next + (bytes < ahead ? bytes : ahead);
	if (may_list)
		run->listed = run->listed_end = NULL;
	return 1;
}

int lanes_run(struct lanes *l, struct ringcap_run *run, bool may_list)
{
	if (!l->nr_heads && look(l))
		return -EBADMSG;
	return l->nr_heads ? in_a_row(l, run, may_list) : 0;
}

/* Returns the position that ringcap_next has reached in the contiguous packets. */
static uint64_t passed(const struct lanes *l, const struct lane *lane, const struct ringcap_run *run)
{
	uint64_t bytes = (uint64_t)(run->next - (const uint8_t *)slot_at(l, lane, lane->read));

	/* If it lies beyond the end, the last slot's length was invalid. */
	return bytes > lane->end - lane->read ? lane->end : lane->read + bytes;
}

/* Handles a listed slot that was not passed: moves its lane's read position back to it, unless that is before it. */
static void unread(struct lanes *l, const struct ringcap_slot *slot)
{
	for (unsigned int i = 0; i < l->nr; i++) {
		struct lane *lane = &l->lane[i];
		uint64_t place = (uint64_t)((uintptr_t)slot - (uintptr_t)lane->data), back;

		if (place >= l->lane_size)
			continue;
		back = (lane->read - place) & (l->lane_size - 1);
		if (back <= lane->read - lane->released)
			lane->read -= back;
	}
}

/* Releases the packets of a list that were passed. */
static void pass_list(struct lanes *l, const struct ringcap_run *run)
{
	const struct ringcap_slot *const *end = l->listed + l->nr_listed;
	bool all = run->listed < l->listed || run->listed >= end;

	for (const struct ringcap_slot *const *slot = end; !all && slot > run->listed; )
		unread(l, *--slot);
	for (unsigned int i = 0; i < l->nr; i++) {
		struct lane *lane = &l->lane[i];

		if (lane->released == lane->read)
			continue;
		lane->released = lane->read;
		publish(lane);
	}
	if (!all)
		order(l);
	l->nr_listed = 0;
}

void lanes_pass(struct lanes *l, const struct ringcap_run *run)
{
	struct lane *lane = l->run_lane;

	if (l->nr_listed) {
		pass_list(l, run);
		return;
	}
	if (!lane)
		return;	/* another process has read this lane further */
	lane->read = passed(l, lane, run);
	lane->released = lane->read;
	publish(lane);
	if (lane == first_head(l)->lane)
		first_moved(l, lane);
	else
		order(l);	/* not the first any more: another process read other lanes further */
}

int lanes_next(struct lanes *l, struct ringcap_run *run, bool may_list)
{
	lanes_pass(l, run);
	return lanes_run(l, run, may_list);
}
