// SPDX-License-Identifier: BSD-2-Clause
/*
 * libFuzzer target for all code that reads bytes from another process. The first byte selects the code. The rest is a
 * lane's memory and positions, an agent's answer, or a name.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../src/handover.h"
#include "../src/lanes.h"
#include "../src/name.h"

#define SIZE 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint8_t sink;

/*
 * Makes a lane's memory, filled with the repeated input. It appears twice in a row as the module maps it, or has the
 * eBPF engine's tail.
 */
static uint8_t *lane_memory(const uint8_t *data, size_t n, size_t size, int tail)
{
	size_t all = size + (tail ? RINGCAP_LANE_TAIL : size);
	uint8_t *memory = calloc(1, all);

	if (!memory)
		abort();
	for (size_t at = 0; n && at < all; at += n)
		memcpy(memory + at, data, n < all - at ? n : all - at);
	if (!tail)
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

/* Every second time not to its end. */
static void touch_run(struct ringcap_run *run, unsigned int round)
{
	const struct ringcap_slot *slot;

	for (unsigned int i = 0; (i < 4 || round % 2) && (slot = ringcap_next(run)); i++)
		touch(&(struct ringcap_pkt){ slot, ringcap_data(slot) }, 1);
}

/* Two lanes in the same memory. */
static void lanes_make(struct lanes *l, uint8_t *memory, uint64_t producer[2], uint64_t shared[2])
{
	static struct stretch stretches[LANES_OUTSTANDING_MAX];

	memset(l, 0, sizeof(*l));
	l->nr = 2;
	l->lane_size = RINGCAP_LANE_SIZE_MIN;
	l->stretches = stretches;
	for (int i = 0; i < 2; i++)
		l->lane[i] = (struct lane){ .data = memory, .producer = &producer[i], .shared = &shared[i] };
	lanes_start(l);
}

static void fuzz_lanes_runs(const uint8_t *data, size_t n, const uint64_t position[2], int tail)
{
	uint64_t producer[2] = { position[0], position[1] }, shared[2] = { position[1], position[0] };
	uint8_t *memory = lane_memory(data, n, RINGCAP_LANE_SIZE_MIN, tail);
	struct lanes l;

	lanes_make(&l, memory, producer, shared);
	for (unsigned int round = 0; round < 8; round++) {
		struct ringcap_run run = { 0 };

		if (lanes_run(&l, &run, round % 4) > 0) {
			touch_run(&run, round);
			lanes_pass(&l, &run);
		}
		producer[round % 2] += (position[1] >> (8 * round) & 0xff) * 8;
	}
	free(memory);
}

static void fuzz_lanes(const uint8_t *data, size_t n, const uint64_t position[2], int tail)
{
	uint64_t producer[2] = { position[0], position[1] }, shared[2] = { position[1], position[0] };
	uint8_t *memory = lane_memory(data, n, RINGCAP_LANE_SIZE_MIN, tail);
	struct ringcap_pkt pkts[16];
	struct lanes l;

	lanes_make(&l, memory, producer, shared);
	if (position[0] % 2)
		lanes_skip(&l, 0, position[1]);
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
	(what < 4 ? fuzz_lanes : fuzz_lanes_runs)(data + sizeof(position), n - sizeof(position), position, what % 2);
	return 0;
}
