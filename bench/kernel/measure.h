/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One measurement: packets are sent from va, the requested readers read them, and the counting plugin is told where it
 * begins and ends.
 */
#ifndef RB_MEASURE_H
#define RB_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "rings.h"
#include "traffic.h"

/**
 * struct experiment - a way to read packets
 * @what: the case, @who: the reader, in the results
 * @readers: processes that share the packets
 * @read: one of them; NULL = nobody reads
 * @ring: what ring is set up; no device = none
 * @traffic: what is sent
 * @sizes: of the packets, as bits
 * @rejected: nothing is to arrive
 * @counter: a file with the number of packets that arrived, if there are no readers
 * @settle: called when all is set up, returns when packets get through; may be NULL
 * @queues: those of the results, where they are not the readers'
 * @one_rx_queue: the readers get the packets of one receive queue, so it is only measured with one producer
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

/* Prints "run CASE WHO QUEUES SIZE PACKETS RECEIVED"; false when a reader missed packets, or got what it should not. */
bool measure(const struct experiment *e, unsigned int size);

/* The ring and the readers are there, and packets of size bytes get through, until experiment_end. One at a time. */
void experiment_begin(const struct experiment *e, unsigned int size);
void experiment_end(const struct experiment *e);

/* Packets that the readers have got since, or that arrived where nobody reads. */
uint64_t experiment_received(const struct experiment *e, unsigned int size);

/* Packets that the readers' memory had no room for since, by the kernel's counters. To be called once. */
uint64_t experiment_dropped(const struct experiment *e);

/* The number in a file of one line. */
uint64_t number_in(const char *path);

#endif /* RB_MEASURE_H */
