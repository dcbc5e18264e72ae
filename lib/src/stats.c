// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <stddef.h>
#include <string.h>

void stats_add(struct ringcap_stats *sum, const struct ringcap_lane_stats *lane)
{
	sum->delivered += __atomic_load_n(&lane->delivered, __ATOMIC_RELAXED);
	sum->delivered_bytes += __atomic_load_n(&lane->delivered_bytes, __ATOMIC_RELAXED);
	sum->truncated += __atomic_load_n(&lane->truncated, __ATOMIC_RELAXED);
	sum->truncated_bytes += __atomic_load_n(&lane->truncated_bytes, __ATOMIC_RELAXED);
	for (int i = 0; i < RINGCAP_DROP_REASONS; i++)
		sum->dropped[i] += __atomic_load_n(&lane->dropped[i], __ATOMIC_RELAXED);
}

RINGCAP_API int ringcap_stats(struct ringcap *h, struct ringcap_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	h->engine->stats(h, stats);
	return 0;
}

/* For programs that were built earlier: see the header. */
RINGCAP_API int stats_of_before(struct ringcap *h, void *stats) __asm__("ringcap_stats");

RINGCAP_API int stats_of_before(struct ringcap *h, void *stats)
{
	struct ringcap_stats now;
	int err = ringcap_stats(h, &now);

	memcpy(stats, &now, offsetof(struct ringcap_stats, truncated));
	return err;
}
