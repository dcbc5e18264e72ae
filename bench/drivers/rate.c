// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "rate.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "load.h"
#include "readers.h"
#include "wire.h"

#define MEMORY		(16U << 20)	/* of all readers together */
#define TRIAL_MS	250		/* one of the hog's periods */
#define TICK_US		200
#define DRAIN_MS	500
#define FIRST_RATE	5000		/* of the ladder, packets per second */
#define STEPS		60		/* of the ladder */
#define RX_PACKETS	"/sys/class/net/vb/statistics/rx_packets"

static const char *load, *receiver;

struct search {
	const struct experiment *e;
	unsigned int size;
	bool late;	/* the sender, at the lowest rate that was too high for anybody */
};

/* What happened to the packets of a trial. */
struct trial {
	uint64_t sent, taken, captured, dropped;
	bool late;
};

void rate_open(const char *machine, const char *sender, const char *receiving)
{
	load = machine;
	load_prefer();
	softirqs_prefer(!strcmp(load, "busy"));
	wire_open(sender);
	receiver = receiving;
}

static void drain(void)
{
	const struct timespec time = { .tv_nsec = DRAIN_MS * 1000000 };

	nanosleep(&time, NULL);
}

static unsigned int trial_packets(unsigned int rate)
{
	return (unsigned int)((uint64_t)rate * TRIAL_MS / 1000);
}

static struct trial run(const struct search *s, unsigned int rate)
{
	const bool busy = !strcmp(load, "busy");
	struct trial t;
	uint64_t before;
	pid_t hog = 0;

	experiment_begin(s->e, s->size);
	wire_stop_waiting(receiver);
	wire_load(s->size);
	wire_sent();
	before = number_in(RX_PACKETS);
	if (busy)
		hog = hog_start();
	hog_await();
	t.late = send_paced(rate, trial_packets(rate), TICK_US, wire_send);
	if (busy)
		hog_end(hog);
	drain();
	t.sent = wire_sent();
	t.taken = number_in(RX_PACKETS) - before;
	t.captured = experiment_received(s->e, s->size);
	t.dropped = experiment_dropped(s->e);
	experiment_end(s->e);
	return t;
}

/* The emulated cards do not count missed packets. These are the packets that one sent and the other did not take. */
static bool try(unsigned int step, void *arg)
{
	struct search *s = arg;
	const unsigned int rate = ladder_rate(FIRST_RATE, step);
	const struct trial t = run(s, rate);
	const bool lossless = t.captured == t.sent;

	printf("trial %s %s %u queues %u bytes %s, %u packets/s: %llu sent, %llu captured, %llu dropped by the reader, %lld missed by the card%s\n",
	       s->e->what, s->e->who, s->e->queues, s->size, load, rate, (unsigned long long)t.sent,
	       (unsigned long long)t.captured, (unsigned long long)t.dropped, (long long)(t.sent - t.taken),
	       t.late ? ", the sender was late" : "");
	if (t.captured + t.dropped != t.taken || t.taken > t.sent || t.sent != trial_packets(rate))
		fail_with(s->e->who, "its packets do not add up");
	if (!lossless || t.late)
		s->late = lossless;
	return lossless && !t.late;
}

void rate_find(const struct experiment *e, unsigned int size)
{
	/* The result for other packet sizes is a good guess. */
	static struct { const char *who; int best; } before[16];
	struct search s = { .e = e, .size = size };
	int best, i = 0;

	while (before[i].who && strcmp(before[i].who, e->who))
		i++;
	reader_memory = MEMORY / e->readers;
	best = ladder_climb(STEPS, before[i].who ? before[i].best : -1, try, &s);
	before[i].who = e->who;
	before[i].best = best;
	if (best < 0)
		fail_with(e->who, "the first rate of the ladder is too high");
	printf("rate %s %s %u %u %s %u %s\n", e->what, e->who, e->queues, size, load,
	       ladder_rate(FIRST_RATE, (unsigned int)best), s.late || best == STEPS - 1 ? "lower" : "exact");
}
