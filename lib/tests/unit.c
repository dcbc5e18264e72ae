// SPDX-License-Identifier: BSD-2-Clause
/* Unit tests of what needs neither kernel nor agent; built with the address and undefined behaviour sanitizers. */
#include "check.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../src/abi.h"
#include "../src/handover.h"
#include "../src/internal.h"
#include "../src/lanes.h"
#include "../src/name.h"
#include "../src/records.h"

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

/* ---------------------------------------------------------------- BPF ring buffer records */

struct buffer {
	struct records r;
	uint64_t producer, consumer;
	uint8_t *data;
};

static void buffer_make(struct buffer *b, uint64_t position)
{
	memset(b, 0, sizeof(*b));
	b->data = map_twice(SIZE);
	b->producer = b->consumer = position;
	b->r.data = b->data;
	b->r.producer = &b->producer;
	b->r.consumer = &b->consumer;
	b->r.size = SIZE;
	records_start(&b->r);
	CHECK_EQ(b->r.read, position);
}

static void buffer_free(struct buffer *b)
{
	munmap(b->data, 2 * SIZE);
}

/* Puts a record of a slot and caplen bytes of value mark, with flags in its header; 0 when it is full. */
static int buffer_put(struct buffer *b, uint32_t caplen, uint8_t mark, uint32_t flags)
{
	uint32_t len = (uint32_t)sizeof(struct ringcap_slot) + caplen, word = len | flags;
	struct ringcap_slot slot = { .caplen = caplen, .len = caplen + 1000, .hdr_len = sizeof(slot), .ts_ns = mark };
	uint8_t *p = b->data + b->producer % SIZE;

	if (b->producer + ((len + 15) & ~7u) - b->consumer > SIZE)
		return 0;
	memcpy(p, &word, sizeof(word));
	memset(p + 4, 0xee, 4);
	memcpy(p + 8, &slot, sizeof(slot));
	memset(p + 8 + sizeof(slot), mark, caplen);
	b->producer += (len + 15) & ~7u;
	return 1;
}

static void check_mark(const struct ringcap_pkt *pkt, uint8_t mark)
{
	CHECK_EQ(pkt->slot->ts_ns, mark);
	for (uint32_t i = 0; i < pkt->slot->caplen; i++)
		CHECK_EQ(pkt->data[i], mark);
}

/* Random sizes, batches, delays of release and discarded records, many times around the buffer. */
static void test_records_in_order(void)
{
	struct ringcap_pkt pkts[8];
	uint64_t seed = 1, put = 0, got = 0, released = 0;
	struct buffer b;

	buffer_make(&b, 0xfffffff8);
	while (got < 20000) {
		uint32_t discard = noise(&seed) % 7 == 0 ? BPF_RINGBUF_DISCARD_BIT : 0;

		if (put < 20000 && buffer_put(&b, (uint32_t)(noise(&seed) % 700), (uint8_t)put, discard)) {
			put += !discard;
			if (noise(&seed) % 2)
				continue;
		}
		int n = records_fetch(&b.r, pkts, 1 + (unsigned int)(noise(&seed) % 8));

		CHECK(n >= 0);
		for (int i = 0; i < n; i++)
			check_mark(&pkts[i], (uint8_t)got++);
		unsigned int back = (unsigned int)(noise(&seed) % (b.r.outstanding + 1));

		records_release(&b.r, back);
		released += back;
		CHECK_EQ(b.r.outstanding, got - released);
		CHECK(b.consumer <= b.producer && b.producer - b.consumer <= SIZE);
		if (!b.r.outstanding)
			CHECK_EQ(b.consumer, b.r.read);
	}
	records_release(&b.r, b.r.outstanding);
	CHECK_EQ(put, got);
	buffer_free(&b);
}

static void test_records_busy_stops(void)
{
	struct ringcap_pkt pkts[4];
	struct buffer b;
	uint32_t word;

	buffer_make(&b, 0);
	CHECK(buffer_put(&b, 10, 1, 0) && buffer_put(&b, 10, 2, BPF_RINGBUF_BUSY_BIT) && buffer_put(&b, 10, 3, 0));
	CHECK_EQ(records_fetch(&b.r, pkts, 4), 1);
	CHECK_EQ(records_fetch(&b.r, pkts, 4), 0);
	word = (uint32_t)sizeof(struct ringcap_slot) + 10;
	memcpy(b.data + b.r.read % SIZE, &word, sizeof(word));
	CHECK_EQ(records_fetch(&b.r, pkts, 4), 2);
	check_mark(&pkts[0], 2);
	check_mark(&pkts[1], 3);
	buffer_free(&b);
}

/* One thing wrong at a time: it is reported once, what came before is delivered, what comes after is read. */
static void test_records_corrupt(void)
{
	for (int what = 0; what < 6; what++) {
		struct ringcap_pkt pkts[4];
		struct ringcap_slot slot;
		struct buffer b;
		uint32_t word;
		uint8_t *p;

		buffer_make(&b, 8 * (uint64_t)what);
		CHECK(buffer_put(&b, 20, 1, 0) && buffer_put(&b, 20, 2, 0));
		p = b.data + (b.r.read + 8 + sizeof(slot) + 24) % SIZE;
		memcpy(&word, p, 4);
		memcpy(&slot, p + 8, sizeof(slot));
		switch (what) {
		case 0: word = 3000; break;
		case 1: word = 0x3fffffff; break;
		case 2: word = 4; break;
		case 3: slot.hdr_len = 8; break;
		case 4: slot.hdr_len = 255; break;
		case 5: slot.caplen = 0xfffffff0; break;
		}
		memcpy(p, &word, 4);
		memcpy(p + 8, &slot, sizeof(slot));
		CHECK_EQ(records_fetch(&b.r, pkts, 4), 1);
		check_mark(&pkts[0], 1);
		CHECK_EQ(records_fetch(&b.r, pkts, 4), -EBADMSG);
		CHECK_EQ(records_fetch(&b.r, pkts, 4), 0);
		records_release(&b.r, 1);
		CHECK_EQ(b.consumer, b.producer);
		CHECK(buffer_put(&b, 20, 3, 0));
		CHECK_EQ(records_fetch(&b.r, pkts, 4), 1);
		check_mark(&pkts[0], 3);
		buffer_free(&b);
	}
}

/* Any value may be left in the consumer's position by an earlier consumer. */
static void test_records_scribbled_start(void)
{
	static const uint64_t left[] = { 0, 4, 1ULL << 40, UINT64_MAX, 0x10000 + 8, 0x10000 - SIZE - 8 };

	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		struct ringcap_pkt pkt;
		struct buffer b;

		buffer_make(&b, 0x10000);
		b.consumer = left[i];
		records_start(&b.r);
		CHECK_EQ(b.consumer, b.producer);
		CHECK_EQ(records_fetch(&b.r, &pkt, 1), 0);
		CHECK(buffer_put(&b, 1, 9, 0));
		CHECK_EQ(records_fetch(&b.r, &pkt, 1), 1);
		buffer_free(&b);
	}
}

/* Skips only records within so many bytes, with any claimed length, and never an unfinished one. */
static void test_records_skip(void)
{
	struct ringcap_pkt pkt;
	struct buffer b;

	buffer_make(&b, 0x10000);
	for (uint8_t i = 0; i < 6; i++)
		CHECK(buffer_put(&b, 100, i, i == 5 ? BPF_RINGBUF_BUSY_BIT : 0));
	CHECK_EQ(records_skip(&b.r, 0), 0);
	CHECK_EQ(records_skip(&b.r, (b.producer - b.consumer) / 3), 2);
	CHECK_EQ(b.consumer, 0x10000 + (b.producer - 0x10000) / 3);
	CHECK_EQ(records_fetch(&b.r, &pkt, 1), 1);
	check_mark(&pkt, 2);
	records_release(&b.r, 1);
	CHECK_EQ(records_skip(&b.r, UINT32_MAX), 2);
	CHECK_EQ(records_skip(&b.r, UINT32_MAX), 0);
	buffer_free(&b);
}

/* Memory and positions of noise never lead outside; the sanitizers watch. */
static void test_records_noise(void)
{
	uint64_t seed = 7, sum = 0;
	struct buffer b;

	buffer_make(&b, 0);
	for (int round = 0; round < 20000; round++) {
		struct ringcap_pkt pkts[16];

		for (int i = 0; i < 8; i++)
			b.data[noise(&seed) % SIZE] = (uint8_t)noise(&seed);
		b.producer = noise(&seed) % 4 ? b.producer + (noise(&seed) % 600 & ~7ULL) : noise(&seed);
		int n = records_fetch(&b.r, pkts, 16);

		for (int i = 0; i < n; i++) {
			CHECK(pkts[i].data + pkts[i].slot->caplen <= b.data + 2 * SIZE);
			for (uint32_t k = 0; k < pkts[i].slot->caplen; k++)
				sum += pkts[i].data[k];
		}
		records_release(&b.r, b.r.outstanding);
	}
	CHECK(sum != 1);
	buffer_free(&b);
}

/* In runs, discarded records among them. */
static void test_records_runs(void)
{
	uint64_t seed = 17, put = 0, got = 0;
	struct ringcap_run run = { 0 };
	struct buffer b;

	buffer_make(&b, 0x1000);
	while (got < 20000) {
		uint32_t discard = noise(&seed) % 7 == 0 ? BPF_RINGBUF_DISCARD_BIT : 0;
		int part = noise(&seed) % 4 ? INT32_MAX : (int)(noise(&seed) % 3);
		const struct ringcap_slot *slot;
		int n;

		if (put < 20000 && buffer_put(&b, (uint32_t)(noise(&seed) % 200), (uint8_t)put, discard)) {
			put += !discard;
			if (noise(&seed) % 8)
				continue;
		}
		n = records_run(&b.r, &run);
		CHECK(n >= 0);
		if (!n)
			continue;
		while (part-- && (slot = ringcap_next(&run))) {
			struct ringcap_pkt pkt = { slot, ringcap_data(slot) };

			check_mark(&pkt, (uint8_t)got++);
		}
		records_pass(&b.r, &run);
		CHECK_EQ(b.consumer, b.r.read);
	}
	CHECK_EQ(put, got);
	buffer_free(&b);
}

static void test_records_run_noise(void)
{
	uint64_t seed = 19, sum = 0;
	struct ringcap_run run = { 0 };
	struct buffer b;

	buffer_make(&b, 0);
	for (int round = 0; round < 20000; round++) {
		const struct ringcap_slot *slot;

		for (int i = 0; i < 8; i++)
			b.data[noise(&seed) % SIZE] = (uint8_t)noise(&seed);
		b.producer = noise(&seed) % 4 ? b.producer + (noise(&seed) % 600 & ~7ULL) : noise(&seed);
		while (records_run(&b.r, &run) == 1) {
			while ((slot = ringcap_next(&run)))
				for (uint32_t k = 0; k < slot->caplen; k++)
					sum += ringcap_data(slot)[k];
			records_pass(&b.r, &run);
		}
	}
	CHECK(sum != 1);
	buffer_free(&b);
}

/* ---------------------------------------------------------------- lanes */

struct module {
	struct lanes l;
	uint32_t size;
	uint64_t producer[3], shared[3];
	uint8_t *data[3];
};

static void module_make(struct module *m, uint32_t size)
{
	memset(m, 0, sizeof(*m));
	m->l.nr = 3;
	m->l.lane_size = m->size = size;
	m->l.stretches = calloc(LANES_OUTSTANDING_MAX, sizeof(*m->l.stretches));
	CHECK(m->l.stretches);
	for (int i = 0; i < 3; i++) {
		m->data[i] = map_twice(size);
		m->producer[i] = m->shared[i] = 1000 * 8 * (uint64_t)i;
		m->l.lane[i].data = m->data[i];
		m->l.lane[i].producer = &m->producer[i];
		m->l.lane[i].shared = &m->shared[i];
	}
	lanes_start(&m->l);
}

static void module_free(struct module *m)
{
	for (int i = 0; i < 3; i++)
		munmap(m->data[i], 2 * (size_t)m->size);
	free(m->l.stretches);
}

/* Slots of both lengths; 0 when the lane is full. */
static int module_put(struct module *m, int lane, uint64_t ts, uint32_t caplen)
{
	struct ringcap_slot slot = { .ts_ns = ts, .caplen = caplen, .len = caplen,
				     .hdr_len = ts % 3 ? RINGCAP_SLOT_SHORT : sizeof(slot) };
	uint32_t size = RINGCAP_SLOT_SIZE(slot.hdr_len, caplen);
	uint8_t *at = m->data[lane] + m->producer[lane] % m->size;

	if (m->producer[lane] + size - m->shared[lane] > m->size)
		return 0;
	memcpy(at, &slot, slot.hdr_len);
	memset(at + slot.hdr_len, (int)(ts & 0xff), caplen);
	m->producer[lane] += size;
	return 1;
}

/* Rounds of packets in the order of time over random lanes; each round is visible before it is read. */
static void test_lanes_merge(void)
{
	uint64_t seed = 3, ts = 0, got = 0;
	struct ringcap_pkt pkts[16];
	struct module m;

	module_make(&m, SIZE);
	for (int round = 0; round < 3000; round++) {
		int n, most = (int)(noise(&seed) % 20);

		for (int i = 0; i < most; i++)
			ts += (uint64_t)module_put(&m, (int)(noise(&seed) % 3), ts, (uint32_t)(noise(&seed) % 300));
		while ((n = lanes_fetch(&m.l, pkts, 1 + (unsigned int)(noise(&seed) % 16))) > 0) {
			for (int i = 0; i < n; i++) {
				CHECK_EQ(pkts[i].slot->ts_ns, got);
				for (uint32_t k = 0; k < pkts[i].slot->caplen; k++)
					CHECK_EQ(pkts[i].data[k], got & 0xff);
				got++;
			}
			lanes_release(&m.l, (unsigned int)(noise(&seed) % (m.l.outstanding + 1)));
		}
		CHECK_EQ(n, 0);
		CHECK_EQ(got, ts);
	}
	CHECK(got > 20000);
	lanes_release(&m.l, m.l.outstanding);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(m.shared[i], m.producer[i]);
	module_free(&m);
}

/* Skips a lane's slots up to a position, with any claimed length; the reader finds what does not fit. */
static void test_lanes_skip(void)
{
	struct ringcap_pkt pkts[4];
	uint64_t behind_two;
	struct module m;

	module_make(&m, SIZE);
	CHECK(module_put(&m, 0, 1, 20) && module_put(&m, 0, 2, 300));
	behind_two = m.producer[0];
	CHECK(module_put(&m, 0, 4, 20) && module_put(&m, 1, 3, 20));
	lanes_start(&m.l);
	CHECK_EQ(lanes_skip(&m.l, 0, 0), 0);	/* of a module that does not report it */
	CHECK_EQ(lanes_skip(&m.l, 0, behind_two), 2);
	CHECK_EQ(m.shared[0], behind_two);
	CHECK_EQ(lanes_skip(&m.l, 1, UINT64_MAX), 1);
	CHECK_EQ(lanes_skip(&m.l, 2, UINT64_MAX), 0);
	CHECK(module_put(&m, 1, 5, 20));
	CHECK_EQ(lanes_fetch(&m.l, pkts, 4), 2);
	CHECK_EQ(pkts[0].slot->ts_ns, 4);
	CHECK_EQ(pkts[1].slot->ts_ns, 5);
	module_free(&m);
}

static void test_lanes_corrupt(void)
{
	for (int what = 0; what < 6; what++) {
		struct ringcap_pkt pkts[4];
		struct ringcap_slot *slot;
		struct module m;

		module_make(&m, SIZE);
		CHECK(module_put(&m, 0, 1, 20) && module_put(&m, 1, 2, 20) && module_put(&m, 2, 3, 20));
		slot = (void *)(m.data[1] + m.l.lane[1].read % SIZE);
		switch (what) {
		case 0: slot->hdr_len = 200; break;
		case 1: slot->hdr_len = 0; break;
		case 2: slot->hdr_len = RINGCAP_SLOT_SHORT + 4; break;
		case 3: slot->caplen = 0xffffffff; break;
		case 4: slot->caplen = 0xfffffff8 - slot->hdr_len; break;
		case 5: slot->caplen += 8; break;
		}
		CHECK_EQ(lanes_fetch(&m.l, pkts, 4), 1);
		CHECK_EQ(lanes_fetch(&m.l, pkts, 4), -EBADMSG);
		CHECK_EQ(lanes_fetch(&m.l, pkts, 4), 1);
		CHECK_EQ(pkts[0].slot->ts_ns, 3);
		lanes_release(&m.l, 2);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(m.shared[i], m.producer[i]);
		module_free(&m);
	}
}

static void test_lanes_noise(void)
{
	uint64_t seed = 11, sum = 0;
	struct module m;

	module_make(&m, SIZE);
	for (int round = 0; round < 20000; round++) {
		struct ringcap_pkt pkts[16];
		int lane = (int)(noise(&seed) % 3);

		for (int i = 0; i < 8; i++)
			m.data[lane][noise(&seed) % SIZE] = (uint8_t)noise(&seed);
		m.producer[lane] = noise(&seed) % 4 ? m.producer[lane] + (noise(&seed) % 600 & ~7ULL) : noise(&seed);
		int n = lanes_fetch(&m.l, pkts, 16);

		for (int i = 0; i < n; i++)
			for (uint32_t k = 0; k < pkts[i].slot->caplen; k++)
				sum += pkts[i].data[k];
		lanes_release(&m.l, m.l.outstanding);
	}
	CHECK(sum != 1);
	module_free(&m);
}

/* The same in runs, of which only a part is passed now and then; each packet comes once and in the order of time. */
static void test_lanes_runs(void)
{
	uint64_t seed = 5, ts = 0, got = 0;
	struct ringcap_run run = { 0 };
	struct module m;

	module_make(&m, RINGCAP_LANE_SIZE_MIN);
	for (int round = 0; round < 3000; round++) {
		int most = (int)(noise(&seed) % 100), lanes = 1 + (int)(noise(&seed) % 3);

		for (int i = 0; i < most; i++)
			ts += (uint64_t)module_put(&m, (int)(noise(&seed) % (unsigned int)lanes), ts,
						   (uint32_t)(noise(&seed) % 1500));
		while (lanes_run(&m.l, &run)) {
			int part = noise(&seed) % 4 ? INT32_MAX : (int)(noise(&seed) % 8);
			const struct ringcap_slot *slot;

			while (part-- && (slot = ringcap_next(&run))) {
				CHECK_EQ(slot->ts_ns, got);
				for (uint32_t k = 0; k < slot->caplen; k++)
					CHECK_EQ(ringcap_data(slot)[k], got & 0xff);
				got++;
			}
			lanes_pass(&m.l, &run);
		}
		CHECK_EQ(got, ts);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(m.shared[i], m.producer[i]);
	}
	CHECK(got > 50000);
	module_free(&m);
}

/* A packet of nonsense in a run: those before it come, it is told, and what its lane has is skipped. */
static void test_lanes_run_corrupt(void)
{
	for (int what = 0; what < 4; what++) {
		struct ringcap_run run = { 0 };
		struct ringcap_slot *slot;
		struct module m;

		module_make(&m, RINGCAP_LANE_SIZE_MIN);
		CHECK(module_put(&m, 0, 1, 20) && module_put(&m, 0, 2, 20) && module_put(&m, 0, 4, 20));
		slot = (void *)(m.data[0] + RINGCAP_SLOT_SIZE(RINGCAP_SLOT_SHORT, 20));
		switch (what) {
		case 0: slot->hdr_len = 0; slot->caplen = 0; break;
		case 1: slot->caplen = 0xffffffff; break;
		case 2: slot->caplen = RINGCAP_SNAPLEN_MAX + 300; break;
		case 3: slot->caplen = RINGCAP_SNAPLEN_MAX; break;	/* in the mapping, but beyond the end */
		}
		CHECK_EQ(lanes_run(&m.l, &run), 1);
		CHECK_EQ(ringcap_next(&run)->ts_ns, 1);
		CHECK(!!ringcap_next(&run) == (what == 3));
		CHECK(!ringcap_next(&run));
		lanes_pass(&m.l, &run);
		CHECK_EQ(lanes_run(&m.l, &run), what == 3 ? 0 : -EBADMSG);
		CHECK_EQ(m.shared[0], m.producer[0]);
		CHECK(module_put(&m, 0, 5, 20));
		CHECK_EQ(lanes_run(&m.l, &run), 1);
		CHECK_EQ(ringcap_next(&run)->ts_ns, 5);
		module_free(&m);
	}
}

/* A run stays in the mapping with any contents of memory and positions. */
static void test_lanes_run_noise(void)
{
	uint64_t seed = 13, sum = 0;
	struct ringcap_run run = { 0 };
	struct module m;

	module_make(&m, RINGCAP_LANE_SIZE_MIN);
	for (int round = 0; round < 20000; round++) {
		const struct ringcap_slot *slot;
		int lane = (int)(noise(&seed) % 3);

		for (int i = 0; i < 8; i++)
			m.data[lane][noise(&seed) % m.size] = (uint8_t)noise(&seed);
		m.producer[lane] = noise(&seed) % 4 ? m.producer[lane] + (noise(&seed) % 20000 & ~7ULL) : noise(&seed);
		while (lanes_run(&m.l, &run) == 1) {
			while ((slot = ringcap_next(&run)))
				sum += ringcap_data(slot)[slot->caplen / 2] + ringcap_data(slot)[slot->caplen];
			lanes_pass(&m.l, &run);
		}
	}
	CHECK(sum != 1);
	module_free(&m);
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
		.magic = RINGCAP_MAGIC, .abi = RINGCAP_ABI, .map_id = 7, .data_size = 1 << 20, .nr_stats = 2, .queue = 1,
		.nr_queues = 2, .snaplen = 65535, .name = "mirror",
	};
}

static void test_reply(void)
{
	struct ringcap_handover_reply r = good_reply();

	CHECK_EQ(handover_check(&r, sizeof(r)), 0);
	CHECK_EQ(handover_check(&r, sizeof(r) - 1), -EPROTO);
	for (int what = 0; what < 8; what++) {
		r = good_reply();
		switch (what) {
		case 0: r.magic++; break;
		case 1: r.abi = RINGCAP_ABI + 1; break;
		case 2: r.data_size = (1 << 20) + 1; break;
		case 3: r.data_size = 0; break;
		case 4: r.nr_stats = 0; break;
		case 5: r.nr_queues = 1; break;
		case 6: r.nr_queues = RINGCAP_QUEUES_MAX + 1; break;
		case 7: r.error = 5000; break;
		}
		CHECK_EQ(handover_check(&r, sizeof(r)), -EPROTO);
	}
	r = good_reply();
	r.error = EACCES;
	r.data_size = 0;
	memset(r.reason, '\n', sizeof(r.reason));
	memset(r.name, 'x', sizeof(r.name));
	CHECK_EQ(handover_check(&r, sizeof(r)), 0);
	CHECK_EQ(strlen(r.reason), sizeof(r.reason) - 1);
	CHECK(!strchr(r.reason, '\n'));
	CHECK_EQ(strlen(r.name), sizeof(r.name) - 1);
}

/* ---------------------------------------------------------------- a queue that is taken back */

static int fetch_zeroes(struct ringcap *h, struct ringcap_pkt *pkts, unsigned int max)
{
	(void)h, (void)pkts, (void)max;
	return -EBADMSG;
}

static int run_zeroes(struct ringcap *h, struct ringcap_run *run)
{
	(void)h, (void)run;
	return -EBADMSG;
}

static int say_gone(struct ringcap *h, unsigned int events)
{
	(void)h;
	return events & EVENT_QUEUE_GONE ? -ENODEV : 0;
}

/* The kernel zeroes what it takes back, and hangs up first: that is what the reader is told, not that the memory is nonsense. */
static void test_taken_back(void)
{
	static const struct engine zeroes = { .fetch = fetch_zeroes, .run = run_zeroes, .service = say_gone };
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = EVENT_QUEUE };
	struct ringcap h = { .engine = &zeroes, .epoll_fd = epoll_create1(EPOLL_CLOEXEC), .wake_fd = eventfd(0, EFD_NONBLOCK) };
	struct ringcap_run run = { 0 };
	struct ringcap_pkt pkt;
	int queue[2];

	CHECK(h.epoll_fd >= 0 && h.wake_fd >= 0 && !pipe(queue));
	CHECK(!epoll_ctl(h.epoll_fd, EPOLL_CTL_ADD, queue[0], &event));
	CHECK_EQ(ringcap_recv(&h, &pkt, 1, 0), -EBADMSG);
	CHECK_EQ(ringcap_read(&h, &run, 0), -EBADMSG);
	close(queue[1]);
	CHECK_EQ(ringcap_recv(&h, &pkt, 1, 0), -ENODEV);
	CHECK_EQ(ringcap_read(&h, &run, 0), -ENODEV);
	CHECK_EQ(ringcap_recv(&h, &pkt, 1, -1), -ENODEV);
	close(queue[0]);
	close(h.epoll_fd);
	close(h.wake_fd);
}

static int fetch_one(struct ringcap *h, struct ringcap_pkt *pkts, unsigned int max)
{
	(void)h, (void)pkts, (void)max;
	return 1;
}

static int run_one(struct ringcap *h, struct ringcap_run *run)
{
	(void)h, (void)run;
	return 1;
}

static bool revoked;

static bool is_revoked(const struct ringcap *h)
{
	(void)h;
	return revoked;
}

static void release_none(struct ringcap *h, unsigned int n)
{
	(void)h, (void)n;
}

static void pass_none(struct ringcap *h, const struct ringcap_run *run)
{
	(void)h, (void)run;
}

/* What still looks like packets is not passed on. */
static void test_taken_back_while_read(void)
{
	static const struct engine engine = { .fetch = fetch_one, .run = run_one, .revoked = is_revoked, .release = release_none,
					      .pass = pass_none };
	struct ringcap h = { .engine = &engine };
	struct ringcap_run run = { 0 };
	struct ringcap_pkt pkt;

	CHECK_EQ(ringcap_recv(&h, &pkt, 1, 0), 1);
	revoked = true;
	CHECK_EQ(ringcap_recv(&h, &pkt, 1, -1), -ENODEV);
	ringcap_release(&h, 2);
	CHECK_EQ(ringcap_read(&h, &run, -1), -ENODEV);
	CHECK_EQ(ringcap_read(&h, &run, -1), -ENODEV);
	ringcap_done(&h, &run);
}

int main(void)
{
	RUN(test_names);
	RUN(test_records_in_order);
	RUN(test_records_busy_stops);
	RUN(test_records_corrupt);
	RUN(test_records_scribbled_start);
	RUN(test_records_skip);
	RUN(test_records_noise);
	RUN(test_records_runs);
	RUN(test_records_run_noise);
	RUN(test_lanes_merge);
	RUN(test_lanes_skip);
	RUN(test_lanes_corrupt);
	RUN(test_lanes_noise);
	RUN(test_lanes_runs);
	RUN(test_lanes_run_corrupt);
	RUN(test_lanes_run_noise);
	RUN(test_versions);
	RUN(test_reply);
	RUN(test_taken_back);
	RUN(test_taken_back_while_read);
	return 0;
}
