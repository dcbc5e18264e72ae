/* SPDX-License-Identifier: Apache-2.0 */
/* The required properties of a measured ring. */
#ifndef RB_SHAPE_H
#define RB_SHAPE_H

#include <stdbool.h>

/**
 * struct ring_shape - the required properties of a ring
 * @device: the device from which received packets are tapped
 * @peer: the other device of a pair in line, or NULL. Of the rest, only @shunt may be set
 * @ebpf: a ring of the eBPF engine, without @exact, because no manifest has them, and without @per_rx_queue
 * @transparent: transparent mode 0, 1 or 2
 * @per_rx_queue: each receive queue of the device has its own queue of the ring
 * @filter: the ring has the BPF program of "tcp port 80"
 * @wildcards: number of wildcard rules, of 8 shapes. Only the one with the last priority matches the traffic; nothing
 *	else passes
 * @near: the wildcard rules, at most 1,000, are about the traffic's own networks
 * @learn: one wildcard rule, which learns the traffic's flows; nothing else passes
 * @full: the module has no room for learnt rules; not for an @ebpf ring
 * @exact: number of exact rules; they include those of the traffic's flows, and nothing else passes
 * @shunt: number of flows that each consumer may shunt, 0 = none
 * @patterns: number of payload patterns. The traffic contains none of them; only packets without a pattern pass
 */
struct ring_shape {
	const char *device;
	const char *peer;
	bool ebpf;
	unsigned int transparent;
	bool per_rx_queue;
	bool filter;
	unsigned int wildcards;
	bool near;
	bool learn;
	bool full;
	unsigned int exact;
	unsigned int shunt;
	unsigned int patterns;
};

/* Returns true if only packets that a rule lets pass do pass. */
static inline bool ring_passes_by_rule(const struct ring_shape *shape)
{
	return shape->wildcards || shape->learn || shape->exact;
}

#endif /* RB_SHAPE_H */
