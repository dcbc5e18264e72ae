// SPDX-License-Identifier: BSD-2-Clause
#include "lanes.h"

#include <errno.h>

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

static void publish(struct lane *lane)
{
	__atomic_store_n(lane->shared, lane->released, __ATOMIC_RELEASE);	/* (C) */
}

/* ---------------------------------------------------------------- the heap of heads */

static void add_head(struct lanes *l, struct lane *lane)
{
	struct head head = { slot_at(l, lane, lane->read)->ts_ns, lane };
	unsigned int i = ++l->nr_heads;

	for (; i > 1 && head.ts < l->heads[i / 2].ts; i /= 2)
		l->heads[i] = l->heads[i / 2];
	l->heads[i] = head;
}

/*
 * Replaces the first head: puts the new one at the place where its time belongs. The places after the last head have
 * later times.
 */
HOT void replace_first(struct lanes *l, uint64_t ts, struct lane *lane)
{
	struct head *at = l->heads + 1, *child;

	for (;; at = child) {
		child = at + (at - l->heads);	/* number n has children 2n and 2n + 1 */
		if (child[1].ts < child[0].ts)
			child++;
		if (ts <= child->ts)
			break;
		*at = *child;
	}
	*at = (struct head){ ts, lane };
}

/* Removes the first head, because its lane was read up to end. Returns how many heads are left. */
static __attribute__((noinline)) unsigned int remove_first(struct lanes *l)
{
	struct head last = l->heads[l->nr_heads];

	l->heads[l->nr_heads--].ts = UINT64_MAX;
	if (l->nr_heads)
		replace_first(l, last.ts, last.lane);
	return l->nr_heads;
}

/* Updates the heap after the first head's lane was read further. */
HOT void first_moved(struct lanes *l, struct lane *lane)
{
	if (lane->read != lane->end)
		replace_first(l, slot_at(l, lane, lane->read)->ts_ns, lane);
	else
		remove_first(l);
}

/* Returns the time of the oldest slot in the other lanes. The first head's slots up to that time come before it. */
HOT uint64_t next_time(const struct lanes *l)
{
	return l->heads[2].ts < l->heads[3].ts ? l->heads[2].ts : l->heads[3].ts;
}

/* Builds the heap from the positions that were last seen. */
static void order(struct lanes *l)
{
	l->nr_heads = 0;
	for (unsigned int i = 0; i < sizeof(l->heads) / sizeof(l->heads[0]); i++)
		l->heads[i].ts = UINT64_MAX;
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
		struct lane *lane = l->heads[1].lane;

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

/* Lists the packets of the lanes, oldest first, and moves the lanes' read positions. The first slot is valid. */
static __attribute__((noinline)) int list(struct lanes *l, struct ringcap_run *run, uint64_t limit)
{
	const struct ringcap_slot **next = l->listed, **end = l->listed + LANES_LISTED_MAX;
	uint64_t bytes = 0;

	do {
		struct lane *lane = l->heads[1].lane;
		uint64_t read = lane->read;
		const struct ringcap_slot *slot = slot_at(l, lane, read);
		uint32_t size = slot_size(slot, lane->end - read);

		if (!size)
			break;	/* hand on the packets before it first */
		*next++ = slot;
		bytes += size;
		lane->read = read += size;
		if (read != lane->end)
			replace_first(l, slot_at(l, lane, read)->ts_ns, lane);
		else if (!remove_first(l))
			break;
	} while (next < end && bytes < limit);
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
	struct lane *lane = l->heads[1].lane;
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
	if (lane == l->heads[1].lane)
		first_moved(l, lane);
	else
		order(l);	/* not the first any more: another process read other lanes further */
}

int lanes_next(struct lanes *l, struct ringcap_run *run, bool may_list)
{
	lanes_pass(l, run);
	return lanes_run(l, run, may_list);
}
