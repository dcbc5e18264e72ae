/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that rcount's files share; see rcount(1). */
#ifndef RCOUNT_H
#define RCOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <ringcap/ringcap.h>

#include "monotonic.h"

enum { READERS_MAX = RINGCAP_QUEUES_MAX, CPUS_MAX = 1024 };

struct options {
	const char *name;		/* a queue's, or an interface */
	const char *filter;		/* expression, NULL = everything */
	const char *dump_path;		/* pcap file, NULL = none */
	struct ringcap_capture capture;	/* settings of an ad hoc capture */
	bool has_capture;		/* an option sets some of them */
	uint64_t count;			/* packets, 0 = no limit */
	double seconds;			/* 0 = no limit */
	unsigned int slow_us;		/* sleep after each batch */
	unsigned int verbose;		/* 1 = one line per packet, 2 = also its bytes */
	unsigned int nr_cpus;		/* CPUs to which readers are bound in turn */
	unsigned int cpus[CPUS_MAX];
	bool quiet, json, list, multi;
};

struct totals {
	uint64_t packets, bytes, captured;
	uint64_t first_ns, last_ns;	/* packets' time stamps */
};

struct dump;

/* A queue and its reader. Only its thread writes the totals; any thread may read them. */
struct reader {
	struct ringcap *queue;
	struct totals totals;
	const struct options *options;
	struct dump *dump;		/* NULL = none */
	int cpu;			/* to run on, -1 = any */
	int err;			/* -errno that ended it, 0 = none */
};

/* ---- rcount_options.c ---- */

/*
 * Returns 0, or rcount's exit status plus 1: the user asked for help (1), or the arguments are wrong (3). It has
 * printed a message then.
 */
int options_parse(int argc, char **argv, struct options *o);

/* ---- rcount_open.c ---- */

/* Opens the queues that the options name. Returns their number, or -1 after printing the reason. */
int readers_open(const struct options *o, struct reader *readers);

/* ---- rcount_dump.c ---- */

/* Returns NULL after printing the reason. Without -v and -w, no dump is needed. */
struct dump *dump_open(const struct options *o, uint32_t snaplen);
void dump_packet(struct dump *d, const struct ringcap_slot *slot, const uint8_t *data);

/* Writes out the packets dumped so far. Returns false if they could not be written. */
bool dump_flush(struct dump *d);
bool dump_close(struct dump *d);

/* ---- rcount_report.c ---- */

/* Adds up the readers' totals, and their queues' counters unless stats is NULL. */
void report_sum(const struct reader *readers, int n, struct totals *totals, struct ringcap_stats *stats);
void report_second(const struct reader *readers, int n, const struct totals *before, double seconds);
void report_end(const struct options *o, const struct reader *readers, int n);

#endif
