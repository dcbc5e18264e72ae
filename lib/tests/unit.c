// SPDX-License-Identifier: BSD-2-Clause
/* Unit tests without kernel and agent. They are built with the address and undefined behaviour sanitizers. */
#include "check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../src/abi.h"
#include "../src/doorbell.h"
#include "../src/handover.h"
#include "../src/internal.h"
#include "../src/lanes.h"
#include "../src/name.h"

#define SIZE 4096u

/* size bytes that appear twice in a row, as the engines map them. */
static uint8_t *map_twice(size_t size)
{
	int fd = memfd_create("twice", MFD_CLOEXEC);
	uint8_t *p = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(fd >= 0 && !ftruncate(fd, size) && p != MAP_FAILED);
	for (int i = 0; i < 2; i++)
		CHECK(mmap(p + i * size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	close(fd);
	return p;
}

/* Programs may still write a capture's RX queues by their former name. */
_Static_assert(offsetof(struct ringcap_capture, channels) == offsetof(struct ringcap_capture, rx_queues), "former name");

/* ---------------------------------------------------------------- names */

static void test_names(void)
{
	static const struct {
		const char *text, *name;
		int queue;
	} good[] = {
		{ "a", "a", QUEUE_ANY },	 { "mirror", "mirror", QUEUE_ANY }, { "mirror@0", "mirror", 0 },
		{ "a-b.c@255", "a-b.c", 255 },	 { "0@10", "0", 10 },
		{ "012345678901234567890123456789012345678901234567890123456789abc",
		  "012345678901234567890123456789012345678901234567890123456789abc", QUEUE_ANY },
	};
	static const char *const bad[] = {
		"", "@", "@1", "a@", "a@256", "a@-1", "a@01", "a@1 ", "a@1@2", "a@0x1", "A", "a_b", "-a", "a-", ".a", "a.",
		"a/b", "../x", "a b", "\xc3\xa4", "a@99999999999",
		"0123456789012345678901234567890123456789012345678901234567890123",
	};
	struct queue_name got;
	const char *why;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK_EQ(name_parse(good[i].text, &got, &why), 0);
		CHECK(!strcmp(got.name, good[i].name));
		CHECK_EQ(got.queue, good[i].queue);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		why = NULL;
		CHECK_EQ(name_parse(bad[i], &got, &why), -EINVAL);
		CHECK(why);
	}
}

/* ---------------------------------------------------------------- lanes */

enum kind { TWICE, TAIL, KINDS };	/* of memory: the module's, the eBPF engine's */

struct queue {
	struct lanes l;
	enum kind kind;
	uint32_t size;
	uint64_t producer[3], shared[3];
	uint8_t *data[3];
};

static void queue_make(struct queue *q, enum kind kind, uint32_t size)
{
	memset(q, 0, sizeof(*q));
	q->kind = kind;
	q->l.nr = 3;
	q->l.lane_size = q->size = size;
	q->l.stretches = calloc(LANES_OUTSTANDING_MAX, sizeof(*q->l.stretches));
	CHECK(q->l.stretches);
	for (int i = 0; i < 3; i++) {
		q->data[i] = kind == TWICE ? map_twice(size) : calloc(1, size + RINGCAP_LANE_TAIL);
		CHECK(q->data[i]);
		q->producer[i] = q->shared[i] = 1000 * 8 * (uint64_t)i;
		q->l.lane[i].data = q->data[i];
		q->l.lane[i].producer = &q->producer[i];
		q->l.lane[i].shared = &q->shared[i];
	}
	lanes_start(&q->l);
}

static void queue_free(struct queue *q)
{
	for (int i = 0; i < 3; i++)
		if (q->kind == TWICE)
			munmap(q->data[i], 2 * (size_t)q->size);
		else
			free(q->data[i]);
	free(q->l.stretches);
}

/* Slots of both lengths; 0 when the lane is full. */
static int queue_put(struct queue *q, int lane, uint64_t ts, uint32_t caplen)
{
	struct ringcap_slot slot = { .ts_ns = ts, .caplen = caplen, .len = caplen,
				     .hdr_len = ts % 3 ? RINGCAP_SLOT_SHORT : sizeof(slot) };
	uint32_t size = RINGCAP_SLOT_SIZE(slot.hdr_len, caplen);
	uint8_t *at = q->data[lane] + q->producer[lane] % q->size;

	if (q->producer[lane] + size - q->shared[lane] > q->size)
		return 0;
	memcpy(at, &slot, slot.hdr_len);
	memset(at + slot.hdr_len, (int)(ts & 0xff), caplen);
	q->producer[lane] += size;
	return 1;
}

/* Puts rounds of packets in time order into random lanes. Each round is visible before it is read. */
static void test_lanes_merge(enum kind kind)
{
	uint64_t seed = 3, ts = 0, got = 0;
	struct ringcap_pkt pkts[16];
	struct queue q;

	queue_make(&q, kind, SIZE);
	for (int round = 0; round < 3000; round++) {
		int n, most = (int)(noise(&seed) % 20);

		for (int i = 0; i < most; i++)
			ts += (uint64_t)queue_put(&q, (int)(noise(&seed) % 3), ts, (uint32_t)(noise(&seed) % 300));
		while ((n = lanes_fetch(&q.l, pkts, 1 + (unsigned int)(noise(&seed) % 16))) > 0) {
			for (int i = 0; i < n; i++) {
				CHECK_EQ(pkts[i].slot->ts_ns, got);
				for (uint32_t k = 0; k < pkts[i].slot->caplen; k++)
					CHECK_EQ(pkts[i].data[k], got & 0xff);
				got++;
			}
			lanes_release(&q.l, (unsigned int)(noise(&seed) % (q.l.outstanding + 1)));
		}
		CHECK_EQ(n, 0);
		CHECK_EQ(got, ts);
	}
	CHECK(got > 20000);
	lanes_release(&q.l, q.l.outstanding);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(q.shared[i], q.producer[i]);
	queue_free(&q);
}

/* Skips a lane's slots up to a position, with any claimed length; the reader finds what does not fit. */
static void test_lanes_skip(enum kind kind)
{
	struct ringcap_pkt pkts[4];
	uint64_t behind_two;
	struct queue q;

	queue_make(&q, kind, SIZE);
	CHECK(queue_put(&q, 0, 1, 20) && queue_put(&q, 0, 2, 300));
	behind_two = q.producer[0];
	CHECK(queue_put(&q, 0, 4, 20) && queue_put(&q, 1, 3, 20));
	lanes_start(&q.l);
	CHECK_EQ(lanes_skip(&q.l, 0, 0), 0);	/* of a producer that does not report it */
	CHECK_EQ(lanes_skip(&q.l, 0, behind_two), 2);
	CHECK_EQ(q.shared[0], behind_two);
	CHECK_EQ(lanes_skip(&q.l, 1, UINT64_MAX), 1);
	CHECK_EQ(lanes_skip(&q.l, 2, UINT64_MAX), 0);
	CHECK(queue_put(&q, 1, 5, 20));
	CHECK_EQ(lanes_fetch(&q.l, pkts, 4), 2);
	CHECK_EQ(pkts[0].slot->ts_ns, 4);
	CHECK_EQ(pkts[1].slot->ts_ns, 5);
	queue_free(&q);
}

static void test_lanes_corrupt(enum kind kind)
{
	for (int what = 0; what < 6; what++) {
		struct ringcap_pkt pkts[4];
		struct ringcap_slot *slot;
		struct queue q;

		queue_make(&q, kind, SIZE);
		CHECK(queue_put(&q, 0, 1, 20) && queue_put(&q, 1, 2, 20) && queue_put(&q, 2, 3, 20));
		slot = (void *)(q.data[1] + q.l.lane[1].read % SIZE);
		switch (what) {
		case 0: slot->hdr_len = 200; break;
		case 1: slot->hdr_len = 0; break;
		case 2: slot->hdr_len = RINGCAP_SLOT_SHORT + 4; break;
		case 3: slot->caplen = 0xffffffff; break;
		case 4: slot->caplen = 0xfffffff8 - slot->hdr_len; break;
		case 5: slot->caplen += 8; break;
		}
		CHECK_EQ(lanes_fetch(&q.l, pkts, 4), 1);
		CHECK_EQ(lanes_fetch(&q.l, pkts, 4), -EBADMSG);
		CHECK_EQ(lanes_fetch(&q.l, pkts, 4), 1);
		CHECK_EQ(pkts[0].slot->ts_ns, 3);
		lanes_release(&q.l, 2);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(q.shared[i], q.producer[i]);
		queue_free(&q);
	}
}

static void test_lanes_noise(enum kind kind)
{
	uint64_t seed = 11, sum = 0;
	struct queue q;

	queue_make(&q, kind, SIZE);
	for (int round = 0; round < 20000; round++) {
		struct ringcap_pkt pkts[16];
		int lane = (int)(noise(&seed) % 3);

		for (int i = 0; i < 8; i++)
			q.data[lane][noise(&seed) % SIZE] = (uint8_t)noise(&seed);
		q.producer[lane] = noise(&seed) % 4 ? q.producer[lane] + (noise(&seed) % 600 & ~7ULL) : noise(&seed);
		int n = lanes_fetch(&q.l, pkts, 16);

		for (int i = 0; i < n; i++)
			for (uint32_t k = 0; k < pkts[i].slot->caplen; k++)
				sum += pkts[i].data[k];
		lanes_release(&q.l, q.l.outstanding);
	}
	CHECK(sum != 1);
	queue_free(&q);
}

/* The same in runs, of which only a part is passed now and then; each packet comes once and in the order of time. */
static void test_lanes_runs(enum kind kind)
{
	uint64_t seed = 5, ts = 0, got = 0;
	struct ringcap_run run = { 0 };
	struct queue q;

	queue_make(&q, kind, RINGCAP_LANE_SIZE_MIN);
	for (int round = 0; round < 3000; round++) {
		int most = (int)(noise(&seed) % 100), lanes = 1 + (int)(noise(&seed) % 3);

		for (int i = 0; i < most; i++)
			ts += (uint64_t)queue_put(&q, (int)(noise(&seed) % (unsigned int)lanes), ts,
						   (uint32_t)(noise(&seed) % 1500));
		while (run = (struct ringcap_run){ 0 }, lanes_run(&q.l, &run, round % 4)) {
			int part = noise(&seed) % 4 ? INT32_MAX : (int)(noise(&seed) % 8);
			const struct ringcap_slot *slot;

			while (part-- && (slot = ringcap_next(&run))) {
				CHECK_EQ(slot->ts_ns, got);
				for (uint32_t k = 0; k < slot->caplen; k++)
					CHECK_EQ(ringcap_data(slot)[k], got & 0xff);
				got++;
			}
			lanes_pass(&q.l, &run);
		}
		CHECK_EQ(got, ts);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(q.shared[i], q.producer[i]);
	}
	CHECK(got > 50000);
	queue_free(&q);
}

/* An invalid packet in a run: the packets before it come, then an error, and the rest of its lane is skipped. */
static void test_lanes_run_corrupt(enum kind kind)
{
	for (int what = 0; what < 4; what++) {
		struct ringcap_run run = { 0 };
		struct ringcap_slot *slot;
		struct queue q;

		queue_make(&q, kind, RINGCAP_LANE_SIZE_MIN);
		CHECK(queue_put(&q, 0, 1, 20) && queue_put(&q, 0, 2, 20) && queue_put(&q, 0, 4, 20));
		slot = (void *)(q.data[0] + RINGCAP_SLOT_SIZE(RINGCAP_SLOT_SHORT, 20));
		switch (what) {
		case 0: slot->hdr_len = 0; slot->caplen = 0; break;
		case 1: slot->caplen = 0xffffffff; break;
		case 2: slot->caplen = RINGCAP_SNAPLEN_MAX + 300; break;
		case 3: slot->caplen = RINGCAP_SNAPLEN_MAX; break;	/* in the mapping, but beyond the end */
		}
		CHECK_EQ(lanes_run(&q.l, &run, true), 1);
		CHECK_EQ(ringcap_next(&run)->ts_ns, 1);
		CHECK(!!ringcap_next(&run) == (what == 3));
		CHECK(!ringcap_next(&run));
		lanes_pass(&q.l, &run);
		CHECK_EQ(lanes_run(&q.l, &run, true), what == 3 ? 0 : -EBADMSG);
		CHECK_EQ(q.shared[0], q.producer[0]);
		CHECK(queue_put(&q, 0, 5, 20));
		CHECK_EQ(lanes_run(&q.l, &run, true), 1);
		CHECK_EQ(ringcap_next(&run)->ts_ns, 5);
		queue_free(&q);
	}
}

/* One of three lanes has nonsense behind two packets: what is older comes, and it is told. */
static void test_lanes_list_corrupt(enum kind kind)
{
	struct ringcap_run run = { 0 };
	struct queue q;

	queue_make(&q, kind, RINGCAP_LANE_SIZE_MIN);
	for (uint64_t ts = 1; ts < 10; ts++)
		CHECK(queue_put(&q, (int)(ts % 3), ts, 20));
	q.data[1][1000 * 8 + RINGCAP_SLOT_SIZE(RINGCAP_SLOT_SHORT, 20) + offsetof(struct ringcap_slot, hdr_len)] = 0;
	CHECK_EQ(lanes_run(&q.l, &run, true), 1);
	CHECK_EQ(q.l.nr_listed, 3);
	for (uint64_t ts = 1; ts < 4; ts++)
		CHECK_EQ(ringcap_next(&run)->ts_ns, ts);
	CHECK(!ringcap_next(&run));
	CHECK_EQ(lanes_next(&q.l, &run, true), -EBADMSG);
	CHECK_EQ(q.shared[1], q.producer[1]);
	CHECK_EQ(lanes_run(&q.l, &run, true), 1);
	CHECK_EQ(ringcap_next(&run)->ts_ns, 5);
	CHECK_EQ(ringcap_next(&run)->ts_ns, 6);
	CHECK_EQ(ringcap_next(&run)->ts_ns, 8);
	lanes_pass(&q.l, &run);
	CHECK_EQ(lanes_run(&q.l, &run, true), 1);
	CHECK_EQ(ringcap_next(&run)->ts_ns, 9);
	queue_free(&q);
}

/* What was passed of a list, and no more; a program that passes nonsense has passed all of it. */
static void test_lanes_list_position(enum kind kind)
{
	struct ringcap_run run = { 0 };
	struct queue q;

	queue_make(&q, kind, RINGCAP_LANE_SIZE_MIN);
	for (uint64_t ts = 0; ts < 300; ts++)
		CHECK(queue_put(&q, (int)(ts % 3), ts, 20));
	CHECK_EQ(lanes_run(&q.l, &run, true), 1);
	CHECK_EQ(q.l.nr_listed, LANES_LISTED_MAX);
	run.listed = NULL;
	lanes_pass(&q.l, &run);
	CHECK_EQ(lanes_run(&q.l, &run, true), 1);
	CHECK_EQ(ringcap_next(&run)->ts_ns, LANES_LISTED_MAX);
	lanes_pass(&q.l, &run);
	CHECK_EQ(lanes_run(&q.l, &run, true), 1);
	lanes_pass(&q.l, &run);	/* without having passed any */
	CHECK_EQ(lanes_run(&q.l, &run, true), 1);
	CHECK_EQ(ringcap_next(&run)->ts_ns, LANES_LISTED_MAX + 1);
	queue_free(&q);
}

/* A run stays in the mapping with any contents of memory and positions. */
static void test_lanes_run_noise(enum kind kind)
{
	uint64_t seed = 13, sum = 0;
	struct ringcap_run run = { 0 };
	struct queue q;

	queue_make(&q, kind, RINGCAP_LANE_SIZE_MIN);
	for (int round = 0; round < 20000; round++) {
		const struct ringcap_slot *slot;
		int lane = (int)(noise(&seed) % 3);

		for (int i = 0; i < 8; i++)
			q.data[lane][noise(&seed) % q.size] = (uint8_t)noise(&seed);
		q.producer[lane] = noise(&seed) % 4 ? q.producer[lane] + (noise(&seed) % 20000 & ~7ULL) : noise(&seed);
		while (lanes_run(&q.l, &run, true) == 1) {
			while ((slot = ringcap_next(&run)))
				sum += ringcap_data(slot)[slot->caplen / 2] + ringcap_data(slot)[slot->caplen];
			lanes_pass(&q.l, &run);
		}
	}
	CHECK(sum != 1);
	queue_free(&q);
}

/* Any value may be left in the consumer's position by an earlier consumer. */
static void test_lanes_scribbled_start(enum kind kind)
{
	static const uint64_t left[] = { 0, 4, 1ULL << 40, UINT64_MAX, 0x10000 + 8, 0x10000 - SIZE - 8 };

	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		struct ringcap_pkt pkt;
		struct queue q;

		queue_make(&q, kind, SIZE);
		q.producer[0] = 0x10000;
		q.shared[0] = left[i];
		lanes_start(&q.l);
		CHECK_EQ(q.shared[0], q.producer[0]);
		CHECK_EQ(lanes_fetch(&q.l, &pkt, 1), 0);
		CHECK(queue_put(&q, 0, 9, 1));
		CHECK_EQ(lanes_fetch(&q.l, &pkt, 1), 1);
		queue_free(&q);
	}
}

/* Sixty-four lanes, which have packets in bursts. */
static void test_lanes_many(enum kind kind)
{
	uint64_t seed = 23, ts = 0, got = 0, producer[RINGCAP_LANES_MAX] = { 0 }, shared[RINGCAP_LANES_MAX] = { 0 };
	struct ringcap_run run = { 0 };
	struct queue q;
	uint8_t *data[RINGCAP_LANES_MAX];

	queue_make(&q, kind, SIZE);
	q.l.nr = RINGCAP_LANES_MAX;
	for (int i = 0; i < RINGCAP_LANES_MAX; i++) {
		data[i] = map_twice(SIZE);
		q.l.lane[i] = (struct lane){ .data = data[i], .producer = &producer[i], .shared = &shared[i] };
	}
	lanes_start(&q.l);
	for (int round = 0; round < 2000; round++) {
		for (int i = 0; i < 100; i++) {
			unsigned int lane = (unsigned int)(noise(&seed) % (round % 2 ? RINGCAP_LANES_MAX : 4));
			struct ringcap_slot slot = { .ts_ns = ts, .hdr_len = RINGCAP_SLOT_SHORT, .caplen = (uint32_t)(ts % 60) };

			if (producer[lane] + 96 - shared[lane] > SIZE)
				continue;
			memcpy(data[lane] + producer[lane] % SIZE, &slot, RINGCAP_SLOT_SHORT);
			producer[lane] += RINGCAP_SLOT_SIZE(RINGCAP_SLOT_SHORT, slot.caplen);
			ts++;
		}
		while (lanes_run(&q.l, &run, true)) {
			const struct ringcap_slot *slot;

			while ((slot = ringcap_next(&run)))
				CHECK_EQ(slot->ts_ns, got++);
			lanes_pass(&q.l, &run);
		}
		CHECK_EQ(got, ts);
	}
	CHECK(got > 100000);
	for (int i = 0; i < RINGCAP_LANES_MAX; i++)
		munmap(data[i], 2 * SIZE);
	q.l.nr = 3;
	queue_free(&q);
}

/* The longest slot there is, in the last eight bytes of a lane; and one that says it is longer. */
static void test_lanes_longest(enum kind kind)
{
	uint64_t place = RINGCAP_LANE_SIZE_MIN - 8;
	struct ringcap_run run = { 0 };
	const struct ringcap_slot *got;
	struct ringcap_pkt pkt;
	struct queue q;

	for (int what = 0; what < 4; what++) {
		struct ringcap_slot slot = { .ts_ns = 1, .hdr_len = 248, .caplen = RINGCAP_SNAPLEN_MAX + (what == 3) };
		uint8_t *at;

		queue_make(&q, kind, RINGCAP_LANE_SIZE_MIN);
		q.shared[0] = place;
		q.producer[0] = place + RINGCAP_SLOT_SIZE(slot.hdr_len, slot.caplen);
		lanes_start(&q.l);
		at = q.data[0] + place;
		memcpy(at, &slot, sizeof(slot));
		at[slot.hdr_len + RINGCAP_SNAPLEN_MAX - 1] = 42;
		if (what == 0) {
			CHECK_EQ(lanes_fetch(&q.l, &pkt, 1), 1);
			CHECK_EQ(pkt.data[RINGCAP_SNAPLEN_MAX - 1], 42);
			lanes_release(&q.l, 1);
		} else if (what == 1) {
			CHECK_EQ(lanes_run(&q.l, &run, true), 1);
			got = ringcap_next(&run);
			CHECK_EQ(ringcap_data(got)[RINGCAP_SNAPLEN_MAX - 1], 42);
			CHECK(!ringcap_next(&run));
			lanes_pass(&q.l, &run);
		} else if (what == 2) {
			CHECK_EQ(lanes_skip(&q.l, 0, UINT64_MAX), 1);
		} else {
			CHECK_EQ(lanes_fetch(&q.l, &pkt, 1), -EBADMSG);
		}
		CHECK_EQ(q.shared[0], q.producer[0]);
		queue_free(&q);
	}
}

/* Behind a lane of the eBPF engine comes its tail, not its beginning: packets in a row go on at the latter. */
static void test_lanes_wrap(void)
{
	uint64_t seed = 29, ts = 0, got = 0;
	struct ringcap_pkt pkts[64];
	struct queue q;

	queue_make(&q, TAIL, RINGCAP_LANE_SIZE_MIN);
	while (got < 20000) {
		int n;

		while (queue_put(&q, 0, ts, (uint32_t)(noise(&seed) % 3000)))
			ts++;
		while ((n = lanes_fetch(&q.l, pkts, 64)) > 0) {
			for (int i = 0; i < n; i++) {
				CHECK(pkts[i].slot >= (const struct ringcap_slot *)(void *)q.data[0]);
				CHECK((const uint8_t *)pkts[i].slot < q.data[0] + q.size);
				CHECK_EQ(pkts[i].slot->ts_ns, got);
				for (uint32_t k = 0; k < pkts[i].slot->caplen; k++)
					CHECK_EQ(pkts[i].data[k], got & 0xff);
				got++;
			}
			lanes_release(&q.l, (unsigned int)n);
		}
	}
	queue_free(&q);
}

/* What lies behind the last slot of a lane looks like one: it is not read. */
static void test_lanes_end(void)
{
	struct ringcap_slot forged = { .ts_ns = 2, .hdr_len = RINGCAP_SLOT_SHORT, .caplen = 20 };
	struct ringcap_run run = { 0 };
	struct ringcap_pkt pkts[4];
	struct queue q;

	for (int what = 0; what < 2; what++) {
		queue_make(&q, TAIL, RINGCAP_LANE_SIZE_MIN);
		q.shared[0] = q.producer[0] = RINGCAP_LANE_SIZE_MIN - 64;
		lanes_start(&q.l);
		CHECK(queue_put(&q, 0, 1, 100) && queue_put(&q, 0, 3, 100));
		memcpy(q.data[0] + RINGCAP_LANE_SIZE_MIN - 64 + RINGCAP_SLOT_SIZE(RINGCAP_SLOT_SHORT, 100), &forged, RINGCAP_SLOT_SHORT);
		if (what) {
			CHECK_EQ(lanes_fetch(&q.l, pkts, 4), 2);
			CHECK_EQ(pkts[1].slot->ts_ns, 3);
		} else {
			CHECK_EQ(lanes_run(&q.l, &run, true), 1);
			CHECK_EQ(ringcap_next(&run)->ts_ns, 1);
			CHECK(!ringcap_next(&run));
			CHECK_EQ(lanes_next(&q.l, &run, true), 1);
			CHECK_EQ(ringcap_next(&run)->ts_ns, 3);
		}
		queue_free(&q);
	}
}

/* ---------------------------------------------------------------- sleeping */

struct sleeper {
	struct doorbell d;
	struct queue q;
	uint64_t sleep, heard, rung;
};

static void sleeper_make(struct sleeper *s)
{
	memset(s, 0, sizeof(*s));
	queue_make(&s->q, TAIL, SIZE);
	s->d.sleep = &s->sleep;
	s->d.heard = &s->heard;
	s->d.rung = &s->rung;
	s->d.ready_fd = eventfd(0, EFD_NONBLOCK);
	CHECK(s->d.ready_fd >= 0);
	s->sleep = 4711;	/* an earlier consumer's */
	s->rung = 16;
	doorbell_start(&s->d);
	CHECK_EQ(s->sleep, 0);
	CHECK_EQ(s->heard, 16);
}

static void sleeper_free(struct sleeper *s)
{
	close(s->d.ready_fd);
	queue_free(&s->q);
}

static bool readable(const struct sleeper *s)
{
	struct pollfd pfd = { .fd = s->d.ready_fd, .events = POLLIN };

	return s->heard != s->rung || poll(&pfd, 1, 0) == 1;
}

static void take_one(struct sleeper *s)
{
	struct ringcap_pkt pkt;

	CHECK_EQ(lanes_fetch(&s->q.l, &pkt, 1), 1);
	lanes_release(&s->q.l, 1);
}

static void test_doorbell(void)
{
	struct sleeper s;
	uint64_t first;

	sleeper_make(&s);
	CHECK(doorbell_sleep(&s.d, &s.q.l));
	first = s.sleep;
	CHECK(first);
	CHECK(doorbell_sleep(&s.d, &s.q.l));	/* still the same sleep */
	CHECK_EQ(s.sleep, first);
	CHECK(!readable(&s));

	/* Rung: readable until the last packet was received, and asleep again with another number. */
	CHECK(queue_put(&s.q, 0, 1, 20) && queue_put(&s.q, 1, 2, 20));
	s.rung += 16;
	take_one(&s);
	doorbell_stir(&s.d, true);
	CHECK_EQ(s.sleep, first);
	CHECK(!doorbell_sleep(&s.d, &s.q.l));
	doorbell_show(&s.d);
	CHECK(readable(&s) && !s.d.ready);
	take_one(&s);
	CHECK(doorbell_sleep(&s.d, &s.q.l));
	CHECK(s.sleep && s.sleep != first && !readable(&s));

	/* Read before it was rung: no ring of that sleep is to come, or is not waited for. */
	first = s.sleep;
	CHECK(queue_put(&s.q, 0, 3, 20) && queue_put(&s.q, 0, 4, 20));
	take_one(&s);
	doorbell_stir(&s.d, true);
	doorbell_show(&s.d);
	CHECK(!readable(&s) && s.sleep == first);	/* the producer has seen that number: it will ring */
	take_one(&s);
	CHECK(doorbell_sleep(&s.d, &s.q.l));
	CHECK(s.sleep && s.sleep != first);

	/* Without anybody at the descriptor a reader that reads is awake. */
	CHECK(queue_put(&s.q, 0, 5, 20));
	take_one(&s);
	doorbell_stir(&s.d, false);
	CHECK_EQ(s.sleep, 0);
	CHECK(queue_put(&s.q, 0, 6, 20));	/* nobody rings for this one */
	CHECK(!doorbell_sleep(&s.d, &s.q.l));
	doorbell_show(&s.d);
	CHECK(readable(&s) && s.d.ready);
	take_one(&s);
	CHECK(doorbell_sleep(&s.d, &s.q.l));
	CHECK(!readable(&s));
	sleeper_free(&s);
}

/* A ring of an earlier sleep: the next one has another number, else it would not be rung in. */
static void test_doorbell_late(void)
{
	struct sleeper s;
	uint64_t first;

	sleeper_make(&s);
	CHECK(doorbell_sleep(&s.d, &s.q.l));
	first = s.sleep;
	s.rung += 16;
	CHECK(doorbell_sleep(&s.d, &s.q.l));
	CHECK(s.sleep != first && !readable(&s));
	sleeper_free(&s);
}

static struct {
	struct queue *queue;
	void *page;
	size_t size;
} racing;

static void publish_then_let_write(int signal)
{
	(void)signal;
	CHECK(!mprotect(racing.page, racing.size, PROT_READ | PROT_WRITE));
	CHECK(queue_put(racing.queue, 2, 7, 20));
}

/* A packet is published just before the number is written: its producer has seen nobody asleep, so the reader must see it. */
static void test_doorbell_race(void)
{
	struct sigaction action = { .sa_handler = publish_then_let_write }, before;
	struct sleeper s;

	sleeper_make(&s);
	racing.queue = &s.q;
	racing.size = (size_t)sysconf(_SC_PAGESIZE);
	racing.page = mmap(NULL, racing.size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(racing.page != MAP_FAILED);
	s.d.sleep = racing.page;
	CHECK(!sigaction(SIGSEGV, &action, &before));
	CHECK(!doorbell_sleep(&s.d, &s.q.l));
	CHECK(!sigaction(SIGSEGV, &before, NULL));
	CHECK_EQ(*s.d.sleep, 0);
	take_one(&s);
	munmap(racing.page, racing.size);
	sleeper_free(&s);
}

/* After a fork, and for the next consumer, whatever the one before has written. */
static void test_doorbell_of_another(void)
{
	struct sleeper s;
	uint64_t first;

	sleeper_make(&s);
	CHECK(doorbell_sleep(&s.d, &s.q.l));
	first = s.sleep;
	CHECK(queue_put(&s.q, 0, 1, 20));
	doorbell_start(&s.d);
	CHECK_EQ(s.sleep, 0);
	CHECK(!doorbell_sleep(&s.d, &s.q.l));
	doorbell_show(&s.d);
	CHECK(readable(&s));
	doorbell_start(&s.d);
	CHECK(!readable(&s));
	take_one(&s);
	CHECK(doorbell_sleep(&s.d, &s.q.l));
	CHECK(s.sleep > first);
	sleeper_free(&s);
}

/* ---------------------------------------------------------------- versions of the interface */

static void test_versions(void)
{
	static const struct {
		struct abi ours, theirs;
		__u32 common;
		const char *older;
	} cases[] = {
		{ { 2, 2 }, { 2, 2 }, 2, NULL },
		{ { 2, 2 }, { 2, 3 }, 2, NULL },	/* they are newer, and still speak ours */
		{ { 2, 4 }, { 1, 3 }, 3, NULL },	/* we are */
		{ { 2, 2 }, { 1, 9 }, 2, NULL },
		{ { 2, 2 }, { 3, 4 }, 0, "libringcap" },
		{ { 3, 4 }, { 1, 2 }, 0, "the module" },
		{ { 2, 2 }, { 0, 0 }, 0, "the module" },
		{ { 2, 2 }, { 9, 1 }, 0, "the module" },	/* nonsense */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CHECK_EQ(abi_common(cases[i].ours, cases[i].theirs), cases[i].common);
		CHECK_EQ(abi_common(cases[i].theirs, cases[i].ours), cases[i].common);
		if (cases[i].older)
			CHECK(!strcmp(abi_older(cases[i].ours, cases[i].theirs, "the module"), cases[i].older));
	}
}

/* ---------------------------------------------------------------- the agent's answer */

static struct ringcap_handover_reply good_reply(void)
{
	return (struct ringcap_handover_reply){
		.magic = RINGCAP_MAGIC, .abi = RINGCAP_ABI, .map_id = 7, .lane_size = 1 << 20, .nr_lanes = 2, .head_size = 320, .queue = 1,
		.nr_queues = 2, .snaplen = 65535, .name = "mirror",
	};
}

static void test_reply(void)
{
	struct ringcap_handover_reply r = good_reply();

	CHECK_EQ(handover_check(&r, sizeof(r)), 0);
	CHECK_EQ(handover_check(&r, sizeof(r) - 1), -EPROTO);
	for (int what = 0; what < 14; what++) {
		r = good_reply();
		switch (what) {
		case 0: r.magic++; break;
		case 1: r.abi = RINGCAP_ABI + 1; break;
		case 2: r.abi = RINGCAP_HANDOVER_ABI_MIN - 1; break;
		case 3: r.lane_size = (1 << 20) + 1; break;
		case 4: r.lane_size = 0; break;
		case 5: r.lane_size = RINGCAP_LANE_SIZE_MAX * 2; break;
		case 6: r.nr_lanes = 0; break;
		case 7: r.nr_lanes = 3; break;	/* more than there are heads */
		case 8: r.nr_lanes = RINGCAP_LANES_MAX + 1; r.head_size = 1 << 20; break;
		case 9: r.head_size = 321; break;
		case 10: r.head_size = 0xffffffc0; break;
		case 11: r.nr_queues = 1; break;
		case 12: r.nr_queues = RINGCAP_QUEUES_MAX + 1; break;
		case 13: r.error = 5000; break;
		}
		CHECK_EQ(handover_check(&r, sizeof(r)), -EPROTO);
	}
	r = good_reply();
	r.error = EACCES;
	r.lane_size = 0;
	memset(r.reason, '\n', sizeof(r.reason));
	memset(r.name, 'x', sizeof(r.name));
	CHECK_EQ(handover_check(&r, sizeof(r)), 0);
	CHECK_EQ(strlen(r.reason), sizeof(r.reason) - 1);
	CHECK(!strchr(r.reason, '\n'));
	CHECK_EQ(strlen(r.name), sizeof(r.name) - 1);
}

/* ---------------------------------------------------------------- a queue that is taken back */

static int say_gone(struct ringcap *h, unsigned int events)
{
	(void)h;
	return events & EVENT_QUEUE_GONE ? -ENODEV : 0;
}

/*
 * The kernel first hangs up, then zeroes the queue that it takes back. The reader must get that error, not the one for
 * invalid memory.
 */
static void test_taken_back(void)
{
	static const struct engine engine = { .service = say_gone };
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = EVENT_QUEUE };
	unsigned char reader = 1;
	struct ringcap h = { .engine = &engine, .reader = &reader, .revoked = &never_revoked, .announced = true, .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
			     .wake_fd = eventfd(0, EFD_NONBLOCK) };
	struct ringcap_run run = { 0 };
	struct ringcap_pkt pkt;
	struct queue q;
	int fds[2];

	CHECK(h.epoll_fd >= 0 && h.wake_fd >= 0 && !pipe(fds));
	CHECK(!epoll_ctl(h.epoll_fd, EPOLL_CTL_ADD, fds[0], &event));
	queue_make(&q, TWICE, RINGCAP_LANE_SIZE_MIN);
	h.lanes = &q.l;
	q.producer[0] += 64;
	CHECK_EQ(ringcap_recv(&h, &pkt, 1, 0), -EBADMSG);
	q.producer[0] += 64;
	CHECK_EQ(ringcap_read(&h, &run, 0), -EBADMSG);
	close(fds[1]);
	q.producer[0] += 64;
	CHECK_EQ(ringcap_recv(&h, &pkt, 1, 0), -ENODEV);
	CHECK_EQ(ringcap_read(&h, &run, 0), -ENODEV);
	CHECK_EQ(ringcap_recv(&h, &pkt, 1, -1), -ENODEV);
	close(fds[0]);
	close(h.epoll_fd);
	close(h.wake_fd);
	queue_free(&q);
}

/* What still looks like packets is not passed on. */
static void test_taken_back_while_read(void)
{
	static const struct engine engine = { 0 };
	uint32_t revoked = 0;
	unsigned char reader = 1;
	struct ringcap h = { .engine = &engine, .reader = &reader, .revoked = &revoked, .announced = true };
	struct ringcap_run run = { 0 };
	struct ringcap_pkt pkt;
	struct queue q;

	queue_make(&q, TWICE, RINGCAP_LANE_SIZE_MIN);
	h.lanes = &q.l;
	for (uint64_t i = 0; i < 4; i++)
		CHECK(queue_put(&q, 0, i, 20));
	CHECK_EQ(ringcap_recv(&h, &pkt, 1, 0), 1);
	revoked = 1;
	CHECK_EQ(ringcap_recv(&h, &pkt, 1, -1), -ENODEV);
	ringcap_release(&h, 2);
	CHECK_EQ(ringcap_read(&h, &run, -1), -ENODEV);
	CHECK_EQ(ringcap_read(&h, &run, -1), -ENODEV);
	ringcap_done(&h, &run);
	queue_free(&q);
}

static int shown;

static bool sleep_not(struct ringcap *h)
{
	(void)h;
	return false;
}

static void show_it(struct ringcap *h)
{
	(void)h;
	shown++;
}

/* A reader that was awake has packets in hand, and others are there: a program may wait for the descriptor before it goes on. */
static void test_found_awake(void)
{
	static const struct engine engine = { .sleep = sleep_not, .show = show_it };
	unsigned char reader = 1;
	struct ringcap h = { .engine = &engine, .reader = &reader, .revoked = &never_revoked };
	struct ringcap_run run = { 0 };
	struct ringcap_pkt pkt;
	struct queue q;

	queue_make(&q, TAIL, RINGCAP_LANE_SIZE_MIN);
	h.lanes = &q.l;
	for (uint64_t i = 0; i < 4; i++)
		CHECK(queue_put(&q, 0, i, 20));
	CHECK_EQ(ringcap_recv(&h, &pkt, 1, 0), 1);
	CHECK_EQ(shown, 0);	/* nobody has the descriptor */
	h.fd_given = true;
	CHECK_EQ(ringcap_recv(&h, &pkt, 1, 0), 1);
	CHECK_EQ(shown, 1);
	ringcap_release(&h, 2);
	h.announced = false;
	CHECK_EQ(ringcap_read(&h, &run, 0), 1);
	CHECK(shown > 1);
	queue_free(&q);
}

/* A process forks in a run and reads on, or not; then its child does, from the copy that it has. */
struct forked {
	struct queue q;
	struct lanes copy;
	struct ringcap_run run, copied;
};

/* A run of ten packets in lane 0, of which the child has passed two; lane 1 has another two. */
static void fork_in_run(struct forked *f, enum kind kind, uint64_t in_lane_1, bool reads_on)
{
	memset(f, 0, sizeof(*f));
	queue_make(&f->q, kind, RINGCAP_LANE_SIZE_MIN);
	for (uint64_t ts = 1; ts <= 10; ts++)
		CHECK(queue_put(&f->q, 0, ts, 20));
	CHECK(queue_put(&f->q, 1, in_lane_1, 20) && queue_put(&f->q, 1, in_lane_1 + 1, 20));
	CHECK_EQ(lanes_run(&f->q.l, &f->run, true), 1);
	CHECK(ringcap_next(&f->run) && ringcap_next(&f->run));
	f->copy = f->q.l;
	f->copied = f->run;
	while (reads_on && ringcap_next(&f->run))
		;
	if (reads_on)
		lanes_pass(&f->q.l, &f->run);
	f->q.l = f->copy;	/* at the same addresses, as a child has it */
}

/* The child reads packets from ts on, up to the last one. */
static void read_to_end(struct forked *f, uint64_t ts, uint64_t last)
{
	const struct ringcap_slot *slot;

	for (; lanes_run(&f->q.l, &f->copied, true) == 1; lanes_pass(&f->q.l, &f->copied))
		while ((slot = ringcap_next(&f->copied)))
			CHECK_EQ(slot->ts_ns, ts++);
	CHECK_EQ(ts, last + 1);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(f->q.shared[i], f->q.producer[i]);
	queue_free(&f->q);
}

static void test_lanes_forked(enum kind kind)
{
	struct forked f;

	fork_in_run(&f, kind, 11, true);	/* in a row, as pcap_next keeps it: what the parent passed does not come again */
	CHECK(f.q.l.run_lane);
	lanes_resume(&f.q.l);
	lanes_pass(&f.q.l, &f.copied);
	CHECK_EQ(f.q.shared[1], 8000);
	read_to_end(&f, 11, 12);

	fork_in_run(&f, kind, 11, true);	/* and all lanes are empty */
	f.q.l.lane[1].end = f.q.l.lane[1].read;
	lanes_resume(&f.q.l);
	lanes_pass(&f.q.l, &f.copied);
	read_to_end(&f, 11, 12);

	fork_in_run(&f, kind, 11, false);	/* what the child passed does not come to it again */
	lanes_resume(&f.q.l);
	lanes_pass(&f.q.l, &f.copied);
	read_to_end(&f, 3, 12);

	fork_in_run(&f, kind, 11, false);	/* another lane is the first, with what nobody has seen */
	f.q.l.first_head++;
	f.q.l.nr_heads--;
	lanes_pass(&f.q.l, &f.copied);
	read_to_end(&f, 3, 12);

	fork_in_run(&f, kind, 11, false);	/* the child ends the run before it reads: all of it comes */
	lanes_drop(&f.q.l);
	lanes_resume(&f.q.l);
	read_to_end(&f, 1, 12);

	fork_in_run(&f, kind, 4, false);	/* the same of a list, where lane 1 has 4 and 5, too */
	CHECK(f.q.l.nr_listed);
	lanes_drop(&f.q.l);
	lanes_resume(&f.q.l);
	CHECK(!f.q.l.nr_listed);
	CHECK_EQ(lanes_run(&f.q.l, &f.copied, true), 1);
	CHECK_EQ(ringcap_next(&f.copied)->ts_ns, 1);
	lanes_pass(&f.q.l, &f.copied);
	CHECK_EQ(lanes_run(&f.q.l, &f.copied, true), 1);
	CHECK_EQ(ringcap_next(&f.copied)->ts_ns, 2);
	queue_free(&f.q);
}

static void test_lanes(enum kind kind)
{
	test_lanes_merge(kind);
	test_lanes_many(kind);
	test_lanes_skip(kind);
	test_lanes_scribbled_start(kind);
	test_lanes_corrupt(kind);
	test_lanes_noise(kind);
	test_lanes_runs(kind);
	test_lanes_run_corrupt(kind);
	test_lanes_list_corrupt(kind);
	test_lanes_list_position(kind);
	test_lanes_run_noise(kind);
	test_lanes_longest(kind);
	test_lanes_forked(kind);
}

static void test_lanes_of_both_engines(void)
{
	for (enum kind kind = TWICE; kind < KINDS; kind++)
		test_lanes(kind);
}

int main(void)
{
	RUN(test_names);
	RUN(test_lanes_of_both_engines);
	RUN(test_lanes_wrap);
	RUN(test_lanes_end);
	RUN(test_doorbell);
	RUN(test_doorbell_late);
	RUN(test_doorbell_race);
	RUN(test_doorbell_of_another);
	RUN(test_versions);
	RUN(test_reply);
	RUN(test_taken_back);
	RUN(test_taken_back_while_read);
	RUN(test_found_awake);
	return 0;
}
