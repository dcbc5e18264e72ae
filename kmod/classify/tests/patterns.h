/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Code that the unit tests and the fuzzer of the patterns share: a matcher that is too simple to be wrong. */
#ifndef PATTERNS_H
#define PATTERNS_H

#include "check.h"
#include "../pattern.h"

/* An automaton of its own memory; @dense limits the states with rows, as if there were less memory; 0 = no limit. */
struct built {
	struct rc_automaton automaton;
	rc_u32 *order;
	void *block;
	rc_u64 size;
};

void built_make(struct built *built, const struct rc_pattern *patterns, rc_u32 nr, rc_u32 dense);
void built_free(struct built *built);

/* The hit in @data, given in pieces of 1 .. @piece bytes, each in memory that ends where it does. */
rc_u32 built_find(const struct built *built, const rc_u8 *data, rc_u32 len, rc_u32 piece);

/* The hit as pattern.h defines it, by comparing every pattern at every place. */
rc_u32 naive_find(const struct rc_pattern *patterns, rc_u32 nr, const rc_u8 *data, rc_u32 len);

/*
 * Whether more than RC_ENDS_MAX may have to be compared where some pattern ends. Compares every pattern with every
 * other.
 */
int naive_crowded(const struct rc_pattern *patterns, rc_u32 nr);

#endif /* PATTERNS_H */
