/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One measurement: it sends packets from va, the requested readers read them, and it tells the counting plugin where
 * the measurement starts and ends.
 */
#ifndef RB_MEASURE_H
#define RB_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "rings.h"
#include "traffic.h"

/**
 * struct experiment - a way to read packets
 * @what: the case in the results; @who: the reader in the results
 * @readers: number of processes that share the packets
 * @read: the function of a reader; NULL = nobody reads
 * @ring: the ring to set up; no device = none
 * @traffic: the packets to send
 * @sizes: sizes of the packets, as bits
 * @rejected: no packet may arrive
 * @counter: a file with the number of packets that arrived, if there are no readers
 * @settle: called when everything is set up, returns when packets get through; may be NULL
 * @queues: number of queues in the results, if it is not the number of readers
 * @one_rx_queue: the readers get the packets of one receive queue, so it is measured with one producer only
 */
struct experiment {
	const char *what, *who;
	unsigned int readers;
	void (*read)(unsigned int reader);
	struct ring_shape ring;
	enum traffic traffic;
	unsigned int sizes;
	bool rejected;
	const char *counter;
	void (*settle)(void);
	unsigned int queues;
	bool one_rx_queue;
};

/* Prints "run CASE WHO QUEUES SIZE PACKETS RECEIVED". Returns false if a reader missed packets or got wrong ones. */
bool measure(const struct experiment *e, unsigned int size);

/*
 * Sets up the ring and the readers until experiment_end. When it returns, packets of size bytes get through. Only one
 * experiment at a time.
 */
void experiment_begin(const struct experiment *e, unsigned int size);
void experiment_end(const struct experiment *e);

/* Returns the packets that the readers have got since then. Without readers, returns those that arrived. */
uint64_t experiment_received(const struct experiment *e, unsigned int size);

/* Returns, by the kernel's counters, the packets for which the readers had no memory since then. Call it only once. */
uint64_t experiment_dropped(const struct experiment *e);

/* Returns the number in a file of one line. */
uint64_t number_in(const char *path);

#endif /* RB_MEASURE_H */
