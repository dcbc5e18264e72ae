/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fuzzer: actors, each a process, that do to the module whatever their rights allow, at the same time, until the
 * time is over or each has done its number of steps. What an actor does follows from its seed; how actors interleave
 * does not. All but the watch share a network namespace; the watch has one of its own, and there not a packet may be
 * missing.
 */
#ifndef RF_FUZZ_H
#define RF_FUZZ_H

#include <linux/ringcap.h>

#include "../test.h"

#define RF_OBJECTS 4	/* clusters, and rings, that actors know by name */
#define RF_QUEUES 3	/* queues that a cluster usually has at most */

/* What was done, of all actors: for the summary, which shows that the fuzzing reached something. */
struct rf_counts {
	u32 sent[RINGCAP_CMD_MAX + 2];
	u32 accepted[RINGCAP_CMD_MAX + 2];
	u32 noise;
	u32 attached;
	u32 mapped;
	u32 transmits;
	u32 shunts;
	u32 frames;
	u32 devices;
	u32 files;
	u32 watched;
	bool watching;	/* the watch has all that it needs */
};

extern struct rf_counts *rf_counts;

#define rf_count(counter) __atomic_fetch_add(&rf_counts->counter, 1, __ATOMIC_RELAXED)

/* Whether an actor that has taken @steps goes on. */
bool rf_go_on(u32 steps);

u32 rf_below(u64 *seed, u32 limit);
bool rf_one_in(u64 *seed, u32 n);

/* Numbers at which things break: small ones, powers of two and their neighbours, the greatest; or any. */
u32 rf_number(u64 *seed);
void rf_bytes(u64 *seed, void *to, u32 len);

void rf_cluster_name(u64 *seed, char *name, size_t size);
void rf_ring_name(u64 *seed, char *name, size_t size);

/* A socket of this process with the module's family, that never waits. */
int rf_netlink_open(void);

/* The actors; each returns when rf_go_on is false. */
void rf_act_messages(u64 seed);		/* structured netlink messages, then damaged */
void rf_act_noise(u64 seed);		/* bytes on a netlink socket, dumps that nobody reads to their end */
void rf_act_mappings(u64 seed);		/* consumers: mappings, ioctls, forks, races of threads */
void rf_act_frames(u64 seed);		/* packets of all kinds, damaged */
void rf_act_devices(u64 seed);		/* interfaces that come, go, change names and namespaces */
void rf_act_files(u64 seed);		/* /proc and module parameters */
void rf_act_watch(u64 seed);		/* an honest ring, whose account has to be exact */

#endif /* RF_FUZZ_H */
