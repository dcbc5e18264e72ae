// SPDX-License-Identifier: BSD-2-Clause
/*
 * rcount: reads a ringcap queue and says how much came; see rcount(1).
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ringcap/ringcap.h>

enum { BATCH = 64, NSEC = 1000000000 };

struct options {
	const char *name;
	uint64_t count;		/* packets, 0 = no end */
	double seconds;		/* 0 = no end */
	unsigned int slow_us;	/* to sleep after each batch */
	bool quiet, json, list;
};

struct totals {
	uint64_t packets, bytes, captured;
	uint64_t first_ns, last_ns;	/* packets' time stamps */
};

static struct ringcap *queue;
static volatile sig_atomic_t stopped;

static const char *const drop_names[RINGCAP_DROP_REASONS] = {
	[RINGCAP_DROP_FULL] = "full",
	[RINGCAP_DROP_UNATTENDED] = "unattended",
	[RINGCAP_DROP_NOMEM] = "nomem",
};

static void on_signal(int signal)
{
	(void)signal;
	stopped = 1;
	ringcap_wakeup(queue);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

static void usage(FILE *to)
{
	fputs("usage: rcount [-jq] [-c packets] [-t seconds] [--slow microseconds] NAME[@QUEUE]\n"
	      "       rcount -l\n"
	      "  -c, --count N    stop after N packets\n"
	      "  -t, --time S     stop after S seconds\n"
	      "  -q, --quiet      no line a second, only the summary\n"
	      "  -j, --json       the summary as one JSON object\n"
	      "  -l, --list       list the queues that this process was given\n"
	      "      --slow US    sleep US microseconds after each batch of up to 64 packets\n", to);
}

static bool parse_number(const char *text, double max, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	return !errno && end != text && !*end && *out >= 0 && *out <= max;
}

static bool parse_option(int option, const char *arg, struct options *o)
{
	double v = 0;

	switch (option) {
	case 'c':
		o->count = parse_number(arg, 1e18, &v) ? (uint64_t)v : 0;
		return o->count > 0;
	case 't':
		return parse_number(arg, 1e9, &o->seconds) && o->seconds > 0;
	case 's':
		if (!parse_number(arg, 1e7, &v))
			return false;
		o->slow_us = (unsigned int)v;
		return true;
	case 'q':
		o->quiet = true;
		return true;
	case 'j':
		o->json = o->quiet = true;
		return true;
	case 'l':
		o->list = true;
		return true;
	}
	return false;
}

static bool parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "count", required_argument, NULL, 'c' }, { "time", required_argument, NULL, 't' },
		{ "quiet", no_argument, NULL, 'q' },	   { "json", no_argument, NULL, 'j' },
		{ "list", no_argument, NULL, 'l' },	   { "slow", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },	   { 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "c:t:qjlh", longs, NULL)) != -1) {
		if (option == 'h') {
			usage(stdout);
			exit(0);
		}
		if (option == '?')
			return false;
		if (!parse_option(option, optarg, o)) {
			fprintf(stderr, "rcount: '%s' is not a value for -%c\n", optarg, option);
			return false;
		}
	}
	if (!o->list && optind == argc - 1)
		o->name = argv[optind];
	return o->list ? optind == argc : o->name != NULL;
}

static int list(void)
{
	struct ringcap_device *devices;
	int n = ringcap_list(NULL, 0);

	devices = n > 0 ? calloc((size_t)n, sizeof(*devices)) : NULL;
	if (n < 0 || (n > 0 && !devices)) {
		fprintf(stderr, "rcount: out of memory\n");
		return 1;
	}
	if (n > 0 && ringcap_list(devices, (size_t)n) < n)
		n = 0;	/* taken away meanwhile */
	for (int i = 0; i < n; i++)
		printf("%s@%" PRIu32 "\n", devices[i].name, devices[i].queue);
	free(devices);
	return 0;
}

static void count(struct totals *t, const struct ringcap_pkt *pkts, int n)
{
	if (!t->packets)
		t->first_ns = pkts[0].slot->ts_ns;
	for (int i = 0; i < n; i++) {
		t->bytes += pkts[i].slot->len;
		t->captured += pkts[i].slot->caplen;
	}
	t->packets += (uint64_t)n;
	t->last_ns = pkts[n - 1].slot->ts_ns;
}

static uint64_t dropped(const struct ringcap_stats *stats)
{
	uint64_t sum = 0;

	for (int i = 0; i < RINGCAP_DROP_REASONS; i++)
		sum += stats->dropped[i];
	return sum;
}

static void print_second(const struct totals *t, const struct totals *before, double seconds)
{
	struct ringcap_stats stats;

	ringcap_stats(queue, &stats);
	printf("%10.0f pkt/s %9.3f Mbit/s   total %" PRIu64 " packets %" PRIu64 " bytes, dropped %" PRIu64 "\n",
	       (double)(t->packets - before->packets) / seconds, (double)(t->bytes - before->bytes) * 8e-6 / seconds,
	       t->packets, t->bytes, dropped(&stats));
	fflush(stdout);
}

/* Reads until the options or a signal say that it is enough; 0 or -errno. */
static int run(const struct options *o, struct totals *t)
{
	struct ringcap_pkt pkts[BATCH];
	uint64_t start = now_ns(), end = o->seconds > 0 ? start + (uint64_t)(o->seconds * NSEC) : UINT64_MAX;
	uint64_t line = start;
	struct totals before = *t;

	while (!stopped && (!o->count || t->packets < o->count)) {
		uint64_t left = o->count ? o->count - t->packets : BATCH;
		uint64_t now = now_ns(), next = end < line + NSEC ? end : line + NSEC;
		int n = ringcap_recv(queue, pkts, left < BATCH ? (unsigned int)left : BATCH,
				     next > now ? (int)((next - now) / 1000000) + 1 : 0);

		if (n < 0 && n != -EINTR)
			return n;
		if (n > 0) {
			count(t, pkts, n);
			ringcap_release(queue, (unsigned int)n);
			if (o->slow_us)
				usleep(o->slow_us);
		}
		now = now_ns();
		if (now >= line + NSEC) {
			if (!o->quiet)
				print_second(t, &before, (double)(now - line) / NSEC);
			before = *t;
			line = now;
		}
		if (now >= end)
			break;
	}
	return 0;
}

static void print_json(const struct totals *t, const struct ringcap_queue *q, const struct ringcap_stats *stats)
{
	printf("{\"name\":\"%s\",\"queue\":%" PRIu32 ",\"engine\":\"%s\",\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64
	       ",\"capturedBytes\":%" PRIu64 ",\"firstNs\":%" PRIu64 ",\"lastNs\":%" PRIu64, q->name, q->queue, q->engine,
	       t->packets, t->bytes, t->captured, t->first_ns, t->last_ns);
	printf(",\"delivered\":%" PRIu64 ",\"deliveredBytes\":%" PRIu64 ",\"dropped\":{", stats->delivered,
	       stats->delivered_bytes);
	for (int i = 0, n = 0; i < RINGCAP_DROP_REASONS; i++)
		if (drop_names[i])
			printf("%s\"%s\":%" PRIu64, n++ ? "," : "", drop_names[i], stats->dropped[i]);
	printf("}}\n");
}

static void print_text(const struct totals *t, const struct ringcap_queue *q, const struct ringcap_stats *stats)
{
	printf("%s@%" PRIu32 " (%s): read %" PRIu64 " packets, %" PRIu64 " bytes; the queue since it was made: delivered %"
	       PRIu64, q->name, q->queue, q->engine, t->packets, t->bytes, stats->delivered);
	for (int i = 0; i < RINGCAP_DROP_REASONS; i++)
		if (drop_names[i])
			printf(", %s %" PRIu64, drop_names[i], stats->dropped[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct options options = { 0 };
	struct totals totals = { 0 };
	char reason[RINGCAP_ERRBUF_SIZE];
	struct ringcap_stats stats;
	struct ringcap_queue q;
	int err;

	if (!parse(argc, argv, &options)) {
		usage(stderr);
		return 2;
	}
	if (options.list)
		return list();
	queue = ringcap_open(options.name, 0, reason);
	if (!queue) {
		fprintf(stderr, "rcount: %s\n", reason);
		return 1;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	err = run(&options, &totals);
	ringcap_queue(queue, &q);
	ringcap_stats(queue, &stats);
	(options.json ? print_json : print_text)(&totals, &q, &stats);
	if (err)
		fprintf(stderr, "rcount: %s@%" PRIu32 ": %s\n", q.name, q.queue, err == -ENODEV ?
			"the queue was deleted or given to another consumer" : strerror(-err));
	ringcap_close(queue);
	return err ? 1 : 0;
}
