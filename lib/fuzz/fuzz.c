// SPDX-License-Identifier: BSD-2-Clause
/*
 * libFuzzer target: everything that reads bytes which another process wrote. The first byte selects what; the rest is a
 * ring buffer's or lane's memory and positions, an agent's answer, or a name.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../src/handover.h"
#include "../src/lanes.h"
#include "../src/name.h"
#include "../src/records.h"

#define SIZE 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint8_t sink;

/* Twice in a row as the engines map it; writable copies are not needed, nothing writes there. */
static uint8_t *twice(const uint8_t *data, size_t n, size_t size)
{
	uint8_t *memory = calloc(2, size);

	if (!memory)
		abort();
	memcpy(memory, data, n < size ? n : size);
	memcpy(memory + size, memory, size);
	return memory;
}

static void touch(const struct ringcap_pkt *pkts, int n)
{
	for (int i = 0; i < n; i++) {
		sink ^= (uint8_t)pkts[i].slot->ts_ns;
		for (uint32_t k = 0; k < pkts[i].slot->caplen; k++)
			sink ^= pkts[i].data[k];
	}
}

static void fuzz_records(const uint8_t *data, size_t n, const uint64_t position[2])
{
	uint64_t producer = position[0], consumer = position[1];
	uint8_t *memory = twice(data, n, SIZE);
	struct records r = { .data = memory, .producer = &producer, .consumer = &consumer, .size = SIZE };
	struct ringcap_pkt pkts[16];

	records_start(&r);
	for (unsigned int round = 0; round < 8; round++) {
		touch(pkts, records_fetch(&r, pkts, 16));
		records_release(&r, r.outstanding * (round % 3) / 2);
		producer += (position[1] >> (8 * round) & 0xff) * 8;
	}
	free(memory);
}

/* Every second time not to its end. */
static void touch_run(struct ringcap_run *run, unsigned int round)
{
	const struct ringcap_slot *slot;

	for (unsigned int i = 0; (i < 4 || round % 2) && (slot = ringcap_next(run)); i++)
		touch(&(struct ringcap_pkt){ slot, ringcap_data(slot) }, 1);
}

static void fuzz_records_runs(const uint8_t *data, size_t n, const uint64_t position[2])
{
	uint64_t producer = position[0], consumer = position[1];
	uint8_t *memory = twice(data, n, SIZE);
	struct records r = { .data = memory, .producer = &producer, .consumer = &consumer, .size = SIZE };
	struct ringcap_run run = { 0 };

	records_start(&r);
	for (unsigned int round = 0; round < 8; round++) {
		if (records_run(&r, &run) > 0) {
			touch_run(&run, round);
			records_pass(&r, &run);
		}
		producer += (position[1] >> (8 * round) & 0xff) * 8;
	}
	free(memory);
}

static void fuzz_lanes_runs(const uint8_t *data, size_t n, const uint64_t position[2])
{
	uint64_t producer = position[0], shared = position[1];
	uint8_t *memory = twice(data, n, RINGCAP_LANE_SIZE_MIN);
	struct lanes l = { .nr = 1, .lane_size = RINGCAP_LANE_SIZE_MIN };
	struct ringcap_run run = { 0 };

	l.lane[0] = (struct lane){ .data = memory, .producer = &producer, .shared = &shared };
	lanes_start(&l);
	for (unsigned int round = 0; round < 8; round++) {
		if (lanes_run(&l, &run) > 0) {
			touch_run(&run, round);
			lanes_pass(&l, &run);
		}
		producer += (position[1] >> (8 * round) & 0xff) * 8;
	}
	free(memory);
}

static void fuzz_lanes(const uint8_t *data, size_t n, const uint64_t position[2])
{
	static struct stretch stretches[LANES_OUTSTANDING_MAX];
	uint64_t producer[2] = { position[0], position[1] }, shared[2] = { position[1], position[0] };
	uint8_t *memory = twice(data, n, SIZE);
	struct lanes l = { .nr = 2, .lane_size = SIZE, .stretches = stretches };
	struct ringcap_pkt pkts[16];

	for (int i = 0; i < 2; i++) {
		l.lane[i].data = memory;
		l.lane[i].producer = &producer[i];
		l.lane[i].shared = &shared[i];
	}
	lanes_start(&l);
	for (unsigned int round = 0; round < 8; round++) {
		touch(pkts, lanes_fetch(&l, pkts, 16));
		lanes_release(&l, l.outstanding * (round % 3) / 2);
		producer[round % 2] += (position[1] >> (8 * round) & 0xff) * 8;
	}
	free(memory);
}

static void fuzz_reply(const uint8_t *data, size_t n)
{
	struct ringcap_handover_reply reply = { 0 };

	memcpy(&reply, data, n < sizeof(reply) ? n : sizeof(reply));
	if (!handover_check(&reply, n))
		sink ^= (uint8_t)(strlen(reply.name) + strlen(reply.reason));
}

static void fuzz_name(const uint8_t *data, size_t n)
{
	char *text = calloc(1, n + 1);
	struct queue_name name;
	const char *why;

	if (!text)
		abort();
	memcpy(text, data, n);
	if (!name_parse(text, &name, &why) && !name_valid(name.name, strlen(name.name)))
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint64_t position[2];
	uint8_t what;

	if (n < 1)
		return 0;
	what = *data++ % 6;
	n--;
	if (what == 0)
		fuzz_reply(data, n);
	if (what == 1)
		fuzz_name(data, n);
	if (what < 2 || n < sizeof(position))
		return 0;
	memcpy(position, data, sizeof(position));
	(what == 2 ? fuzz_records : what == 3 ? fuzz_lanes : what == 4 ? fuzz_records_runs : fuzz_lanes_runs)
		(data + sizeof(position), n - sizeof(position), position);
	return 0;
}
