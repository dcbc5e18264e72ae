// SPDX-License-Identifier: Apache-2.0
//
// Prints how many thousand times a second this machine's time stamp counter counts, which is what an emulated one does.
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct moment {
	uint64_t ticks, nanoseconds;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// The best of many tries: the one between whose two looks at the clock the least time went by.
static struct moment look(void)
{
	struct moment best = { 0, 0 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t before = now(), ticks = __rdtsc(), after = now();

		if (after - before < least) {
			least = after - before;
			best = (struct moment){ ticks, before + least / 2 };
		}
	}
	return best;
}

int main(void)
{
	struct timespec tenth = { 0, 100000000 };
	struct moment first = look(), last;

	nanosleep(&tenth, NULL);
	last = look();
	printf("%.0f\n", 1e6 * (double)(last.ticks - first.ticks) / (double)(last.nanoseconds - first.nanoseconds));
	return 0;
}
