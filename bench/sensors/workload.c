// SPDX-License-Identifier: Apache-2.0
/*
 * workload [CASE...]
 *
 * Runs in the guest:    va ==== vb  sensor  wa ==== wb
 *
 * Sends the same packets into vb, to a sensor that reads vb, or that is in line between vb and wa. Marks for the
 * counting plugin where each measurement starts and ends. Prints a line for each measurement:
 *
 *   run CASE WHO INSTANCES SIZE PACKETS RECEIVED
 *   latency CASE WHO INSTANCES SIZE RATE GROUP P50 P99 MOST
 *
 * RECEIVED is what the sensor got, or in line what came out at wb. Times are nanoseconds. The sender waits after each
 * group of packets, so nothing may be lost. A run in which packets were lost is refused.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "latency.h"
#include "marker.h"
#include "readers.h"
#include "rings.h"
#include "sensor.h"
#include "traffic.h"

#define PACKETS		(8 * BURST)
#define WARM_UP		(2 * BURST)
#define GROUP		64U	/* packets that come at once: what the kernel takes from a card before it looks at others */
#define PAUSE_MS	1	/* between groups */
#define DRAIN_MS	40	/* until all readers have read: longer than any timeout */
#define RATE		10000U		/* packets per second, for latencies */
#define TIMED		10000U		/* packets of which the latencies are measured */
#define SETTLE_MS	250
#define ARRIVED		"/sys/class/net/wb/statistics/rx_packets"

/**
 * struct experiment - what is measured
 * @what: the case in the results; @who: the reader in the results
 * @sensor: without a module nothing reads
 * @pair: a pair in line is made, which nobody needs to decide about
 * @bursts: packets come in groups of BURST, far more than a sensor takes at once. Only the smallest are measured
 */
struct experiment {
	const char *what, *who;
	struct sensor sensor;
	bool pair;
	bool bursts;
};

static const struct ring_shape reads = { .device = "vb" }, decides = { .device = "vb", .peer = "wa" };

#define PASSIVE(name, n) \
	{ .what = "passive", .who = "daq-" name, .sensor = { name, false, n } }, \
	{ .what = "passive-bursts", .who = "daq-" name, .sensor = { name, false, n }, .bursts = true }
#define IN_LINE(name, n) \
	{ .what = "in-line", .who = "daq-" name, .sensor = { name, true, n } }, \
	{ .what = "in-line-bursts", .who = "daq-" name, .sensor = { name, true, n }, .bursts = true }

static const struct experiment experiments[] = {
	{ .what = "warm-up", .who = "daq-afpacket", .sensor = { "afpacket", true, 1 } },
	{ .what = "baseline", .who = "no-reader" },
	{ .what = "baseline-bursts", .who = "no-reader", .bursts = true },
	{ .what = "in-line", .who = "unattended", .sensor = { .instances = 1 }, .pair = true },
	PASSIVE("afpacket", 1), PASSIVE("ringcap", 1),
	IN_LINE("afpacket", 1), IN_LINE("ringcap", 1),
	PASSIVE("afpacket", 2), PASSIVE("ringcap", 2),
	IN_LINE("afpacket", 2), IN_LINE("ringcap", 2),
	PASSIVE("afpacket", 4), PASSIVE("ringcap", 4),
	IN_LINE("afpacket", 4), IN_LINE("ringcap", 4),
	{ .what = "baseline", .who = "no-reader" },
};

static void pause_ms(long milliseconds)
{
	const struct timespec time = { .tv_nsec = milliseconds * 1000000 };

	nanosleep(&time, NULL);
}

static unsigned long long arrived(void)
{
	unsigned long long number;
	FILE *file = fopen(ARRIVED, "r");

	if (!file || fscanf(file, "%llu", &number) != 1)
		fail(ARRIVED);
	fclose(file);
	return number;
}

static const struct ring_shape *shape_of(const struct experiment *e)
{
	if (e->pair)
		return &decides;
	if (!e->sensor.module || strcmp(e->sensor.module, "ringcap"))
		return NULL;
	return e->sensor.in_line ? &decides : &reads;
}

static void begin(const struct experiment *e, unsigned int size)
{
	traffic_build(TRAFFIC_UDP, size);
	if (shape_of(e))
		ring_make(shape_of(e), e->sensor.instances);
	if (e->sensor.module)
		sensor_start(&e->sensor);
}

/* Returns false if the sensor has not got all of the packets that were sent. */
static bool end(const struct experiment *e, unsigned int sent)
{
	struct sensor_counts counts = { .received = sent };
	uint64_t dropped = 0;

	if (e->sensor.module)
		counts = sensor_end();
	if (shape_of(e)) {
		dropped = e->pair ? 0 : ring_dropped();
		ring_delete(shape_of(e));
	}
	/* A worker frees memory, which takes millions of instructions. They must not count in the next measurement. */
	pause_ms(SETTLE_MS);
	if (counts.received == sent && !counts.dropped && !dropped)
		return true;
	printf("%s, %s x%u: of %u packets %llu were received; lost: %llu by the module's count, %llu by the ring's\n", e->what, e->who,
	       e->sensor.instances, sent, (unsigned long long)counts.received, (unsigned long long)counts.dropped,
	       (unsigned long long)dropped);
	return false;
}

static bool forwards(const struct experiment *e)
{
	return e->sensor.in_line || e->pair;
}

static void send_packets(const struct experiment *e, int sender, unsigned int size, unsigned int count)
{
	const struct traffic_share all = { .which = 0, .of = 1 };
	unsigned int sent;

	if (e->bursts) {
		traffic_send(sender, &all, size, count);
		return;
	}
	for (sent = 0; sent < count; sent += GROUP) {
		traffic_send(sender, &all, size, GROUP);
		pause_ms(PAUSE_MS);
	}
	pause_ms(DRAIN_MS);
}

static bool count(const struct experiment *e, unsigned int size)
{
	const unsigned int expected = forwards(e) ? PACKETS : 0;
	unsigned long long before, came;
	int sender;
	bool whole;

	begin(e, size);
	sender = traffic_open();
	send_packets(e, sender, size, WARM_UP);
	before = arrived();
	RB_MARK(RB_MARKER_BEGIN);
	send_packets(e, sender, size, PACKETS);
	RB_MARK(RB_MARKER_END);
	came = arrived() - before;
	close(sender);
	whole = end(e, WARM_UP + PACKETS);
	printf("run %s %s %u %u %u %llu\n", e->what, e->who, e->sensor.instances, size, PACKETS,
	       forwards(e) ? came : e->sensor.module && whole ? PACKETS : 0ULL);
	return whole && came == expected;
}

static bool measure_latency(const struct experiment *e, unsigned int size, unsigned int group)
{
	struct latency l;
	bool whole;

	begin(e, size);
	l = latency_measure(size, RATE, group, TIMED);
	whole = end(e, TIMED) && l.arrived == TIMED && !l.late;
	printf("latency %s %s %u %u %u %u %llu %llu %llu\n", e->what, e->who, e->sensor.instances, size, RATE, group,
	       (unsigned long long)l.p50, (unsigned long long)l.p99, (unsigned long long)l.most);
	if (!whole)
		printf("%s, %s: %u of %u packets arrived%s\n", e->what, e->who, l.arrived, TIMED, l.late ? ", and the sender was late" : "");
	return whole;
}

static char **cases;	/* names, the last is NULL */

/* Without cases, the user asks for all. */
static bool asked_for(const char *what)
{
	char **only;

	for (only = cases; *only && strcmp(*only, what); only++)
		;
	return !*cases || *only || !strcmp(what, "warm-up") || !strncmp(what, "baseline", strlen("baseline"));
}

int main(int argc, char **argv)
{
	static const unsigned int sizes[] = { 60, 512, 1500 }, groups[] = { 1, 32 };	/* bytes without FCS; packets */
	bool lossless = true;
	size_t i, s;

	(void)argc;
	cases = argv + 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	rt_control_open();
	for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (i = 0; i < sizeof(experiments) / sizeof(experiments[0]); i++)
			if (asked_for(experiments[i].what) && !(s && experiments[i].bursts))
				lossless &= count(&experiments[i], sizes[s]);
	for (s = 0; s < sizeof(groups) / sizeof(groups[0]); s++)
		for (i = 0; i < sizeof(experiments) / sizeof(experiments[0]); i++)
			if (forwards(&experiments[i]) && !strcmp(experiments[i].what, "in-line") && asked_for("latency"))
				lossless &= measure_latency(&experiments[i], sizes[0], groups[s]);
	if (!lossless)
		printf("packets were lost, or went where they should not: the figures mean nothing\n");
	return !lossless;
}
