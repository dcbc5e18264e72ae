/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Flows that verdicts shunt, for libdaq's module and Suricata's plugin: the engine decides on their further packets,
 * which do not come to the program.
 * A queue's cluster says whether its consumers may do that, and for how many flows. Where they may not, a verdict is one
 * on its packet alone, as with other modules. That is counted by reason, and said once.
 *
 * A call for each flow would cost a program that gives many such verdicts, and Snort repeats them for packets of the
 * flow that are in the queue already. So flows wait here for the next receive; at most SHUNTS_MAX.
 *
 * One thread at a time uses a struct shunts.
 */
#ifndef SHUNTS_H
#define SHUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <ringcap/ringcap.h>

enum {
	SHUNTS_MAX = 16,
	SHUNTS_IDLE_S = 180,		/* default; Snort forgets an idle TCP connection after that time, too */
	SHUNTS_IDLE_MAX_S = 1000000,	/* the module's limit */
};

/* Why a verdict has shunted nothing. */
enum shunts_refusal {
	SHUNTS_NO_FLOW,			/* the packet's flow cannot be named: see shunt_flow.h */
	SHUNTS_NO_ENGINE,		/* an older module, or with the eBPF engine an older agent */
	SHUNTS_NO_RIGHT,
	SHUNTS_NO_QUOTA,		/* as many flows as the cluster allows are shunted */
	SHUNTS_FAILED,
	SHUNTS_REFUSALS
};

struct shunts {
	uint32_t idle_s;		/* seconds without a packet that end a flow; 0 = nothing is shunted */
	const struct ringcap_queue *about;
	struct ringcap_exact batch[SHUNTS_MAX];
	uint64_t weight[SHUNTS_MAX];	/* the number of verdicts on each */
	unsigned int n;
	uint64_t shunting;		/* verdicts that shunted their flow */
	uint64_t refused[SHUNTS_REFUSALS];	/* verdicts that did not */
	bool said[SHUNTS_REFUSALS];
	void (*say)(const struct shunts *s, const char *why);	/* tells the user, once, why flows are not shunted */
	enum shunts_refusal refusal;	/* the last one; until this time, in milliseconds, nothing more is asked for */
	int64_t refused_until;
	bool began;			/* something was asked for */
	int64_t read_at;		/* when ended flows are read next, in milliseconds */
	uint64_t ended, ended_packets, ended_bytes;	/* flows that have ended, and what was shunted of them */
	uint64_t lost;			/* flows that have ended and whose counters were lost */
	struct ringcap_shunt_stats start;	/* the queue's counters at the first flow or the last reset */
	struct ringcap_shunt_stats last;	/* its counters when they were last read */
};

/* A verdict on the flow of the packet at data, of which caplen bytes are there. action: RINGCAP_ACTION_DROP or _PASS. */
void shunts_add(struct shunts *s, struct ringcap *queue, const uint8_t *data, uint32_t caplen, uint8_t action);

/* The same at once. Returns whether the flow is shunted. */
bool shunts_add_now(struct shunts *s, struct ringcap *queue, const uint8_t *data, uint32_t caplen, uint8_t action);

/* Shunts the flows that wait here. */
void shunts_give(struct shunts *s, struct ringcap *queue);

/* Once a second, or now: reads the flows that have ended, of which the module keeps only so many. */
void shunts_read_ended(struct shunts *s, struct ringcap *queue, bool now);

/* The packets that were shunted since the first flow or the last reset. queue: NULL = as they were last read. */
struct ringcap_shunt_stats shunts_stats(struct shunts *s, const struct ringcap *queue);

void shunts_reset(struct shunts *s, const struct ringcap *queue);

/* Prints a line, unless there was no verdict on a flow. */
void shunts_report(struct shunts *s, const struct ringcap *queue, FILE *to);

#endif
