/* SPDX-License-Identifier: Apache-2.0 */
/* The ring "bench-ring" and its cluster "bench", in the shapes that are measured. */
#ifndef RB_RINGS_H
#define RB_RINGS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct ring_shape - what is asked of a ring
 * @device: tapped for what it receives
 * @ebpf: a ring of the eBPF engine, of which nothing else but @patterns is asked
 * @transparent: mode 0, 1 or 2
 * @per_rx_queue: each of the device's receive queues has its own of the ring's queues
 * @quick: quick mode
 * @filter: with the BPF program of "tcp port 80"
 * @wildcards: wildcard rules of 8 shapes; the last in priority is the only one that matches the traffic, and nothing else
 *	passes
 * @exact: exact rules; those of the traffic's flows are among them, and nothing else passes
 * @patterns: payload patterns, of which the traffic has none; only what has none passes
 */
struct ring_shape {
	const char *device;
	bool ebpf;
	unsigned int transparent;
	bool per_rx_queue;
	bool quick;
	bool filter;
	unsigned int wildcards;
	unsigned int exact;
	unsigned int patterns;
};

#define RING_PATTERN_MAX	32

/* Pattern @n as text; RING_PATTERN_MAX bytes at @text. */
int ring_pattern(unsigned int n, char *text);

void ring_make(const struct ring_shape *shape, unsigned int queues);
void ring_delete(const struct ring_shape *shape);

/* What its queues have dropped, for whatever reason; not of the eBPF engine's. */
uint64_t ring_dropped(void);

#endif /* RB_RINGS_H */
