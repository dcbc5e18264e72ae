/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long packets take from va to the far end of a pair, wb. Each packet carries the time at which it was sent. The
 * kernel notes the time at which it arrives.
 */
#ifndef RB_LATENCY_H
#define RB_LATENCY_H

#include <stdint.h>

/**
 * struct latency - how long packets took, nanoseconds
 * @arrived: number of packets that arrived; the times are theirs
 * @late: true if the sender could not keep the rate
 */
struct latency {
	unsigned int arrived;
	uint64_t p50, p99, most;
	int late;
};

/* Sends count packets of traffic_build, of size bytes, in groups of group, at rate packets per second. */
struct latency latency_measure(unsigned int size, unsigned int rate, unsigned int group, unsigned int count);

#endif /* RB_LATENCY_H */
