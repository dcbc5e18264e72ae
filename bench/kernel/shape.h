/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a ring that is measured. */
#ifndef RB_SHAPE_H
#define RB_SHAPE_H

#include <stdbool.h>

/**
 * struct ring_shape - what is asked of a ring
 * @device: tapped for what it receives
 * @ebpf: a ring of the eBPF engine, of which no mode, @per_rx_queue or @exact is asked, because no manifest has them
 * @transparent: mode 0, 1 or 2
 * @per_rx_queue: each of the device's receive queues has its own of the ring's queues
 * @filter: with the BPF program of "tcp port 80"
 * @wildcards: wildcard rules of 8 shapes; the last in priority is the only one that matches the traffic, and nothing else
 *	passes
 * @near: the wildcard rules, at most 1,000, are about the traffic's own networks
 * @learn: one wildcard rule, which learns the traffic's flows; nothing else passes
 * @full: the module has no room for what is learnt; not of an @ebpf ring
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
	bool near;
	bool learn;
	bool full;
	unsigned int exact;
	unsigned int patterns;
};

/* Whether nothing passes but what rules let pass. */
static inline bool ring_passes_by_rule(const struct ring_shape *shape)
{
	return shape->wildcards || shape->learn || shape->exact;
}

#endif /* RB_SHAPE_H */
