/* SPDX-License-Identifier: Apache-2.0 */
/* The ring "bench-ring" and its cluster "bench", in the shapes that are measured. */
#ifndef RB_RINGS_H
#define RB_RINGS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct ring_shape - what is asked of a ring
 * @device: tapped for what it receives
 * @ebpf: a ring of the eBPF engine, of which no mode, @per_rx_queue or @exact is asked, because no manifest has them
 * @transparent: mode 0, 1 or 2
 * @per_rx_queue: each of the device's receive queues has its own of the ring's queues
 * @filter: with the BPF program of "tcp port 80"
 * @wildcards: wildcard rules of 8 shapes; the last in priority is the only one that matches the traffic, and nothing else
 *	passes
 * @learn: one wildcard rule, which learns the traffic's flows; nothing else passes
 * @exact: exact rules; those of the traffic's flows are among them, and nothing else passes
 * @patterns: payload patterns, of which the traffic has none; only what has none passes
 */
struct ring_shape {
	const char *device;
	bool ebpf;
	unsigned int transparent;
	bool per_rx_queue;
	bool filter;
	unsigned int wildcards;
	bool learn;
	unsigned int exact;
	unsigned int patterns;
};

/* Whether nothing passes but what rules let pass. */
bool ring_passes_by_rule(const struct ring_shape *shape);

void ring_make(const struct ring_shape *shape, unsigned int queues);
void ring_delete(const struct ring_shape *shape);

/* What its queues have dropped, for whatever reason; not of the eBPF engine's. */
uint64_t ring_dropped(void);

#endif /* RB_RINGS_H */
