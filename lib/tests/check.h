/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers for C tests: a check that prints what failed and where, and a runner that counts failures. */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)										\
	do {												\
		if (!(condition)) {									\
			fprintf(stderr, "%s:%d: %s: not true: %s\n", __FILE__, __LINE__, __func__, #condition); \
			exit(1);									\
		}											\
	} while (0)

#define CHECK_EQ(got, want)										\
	do {												\
		int64_t got_ = (int64_t)(got), want_ = (int64_t)(want);					\
		if (got_ != want_) {									\
			fprintf(stderr, "%s:%d: %s: %s = %" PRId64 ", want %s = %" PRId64 "\n", __FILE__, __LINE__,	\
				__func__, #got, got_, #want, want_);					\
			exit(1);									\
		}											\
	} while (0)

#define RUN(test)											\
	do {												\
		fprintf(stderr, "  %s\n", #test);							\
		test();											\
	} while (0)

/* A small generator of reproducible noise (xorshift64*). */
static inline uint64_t noise(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

#endif
