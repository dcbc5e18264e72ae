/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The consumer's side of a BPF ring buffer whose records are slots (see the kernel's Documentation/bpf/ringbuf.rst).
 *
 *   kernel (bpf_ringbuf_output)                consumer
 *
 *   if (full by the consumer's position)
 *     load_acquire(consumer)              (b)
 *   write the header, BUSY
 *   store_release(producer)             (a)    prod = load_acquire(producer)        pairs with (a)
 *   write the record
 *   xchg the header's length, not BUSY  (c)    len = load_acquire(header)           pairs with (c)
 *                                              read the record
 *                                              store_release(consumer, position)    pairs with (b)
 *
 * Nothing here trusts the memory: positions and lengths are checked against each other before anything is dereferenced.
 */
#ifndef RINGCAP_RECORDS_H
#define RINGCAP_RECORDS_H

#include <stdbool.h>

#include <ringcap/ringcap.h>

struct records {
	const uint8_t *data;		/* size bytes, mapped twice in a row */
	const uint64_t *producer;
	uint64_t *consumer;
	uint64_t size;			/* a power of two */
	uint64_t read;			/* records before it were received */
	uint64_t released;		/* records before it were released; equals consumer unless that was overwritten */
	unsigned int outstanding;
	const uint8_t *run;		/* the slot of the run that was begun */
};

/* Starts where the last consumer stopped, or with the newest record when the position that it left is invalid. */
void records_start(struct records *r);

/* Gives back, unread, the records that begin within the next so many bytes; the number of packets. Nothing is outstanding. */
uint64_t records_skip(struct records *r, uint64_t bytes);

/*
 * Takes up to max records. Returns their number, or 0 when there is none, or -EBADMSG when the next one is nonsense:
 * then everything up to the producer's position is skipped, and the next call goes on from there.
 */
int records_fetch(struct records *r, struct ringcap_pkt *pkts, unsigned int max);

/*
 * Whether the producer will announce the next record. It does so only for a record that begins where the consumer's
 * position is when the record is finished: false while any record lies beyond what was given back.
 */
bool records_settled(const struct records *r);

/* Gives back the n oldest records, n at most r->outstanding. */
void records_release(struct records *r, unsigned int n);

/*
 * Begins a run of the next record alone, for the records' headers lie between slots; nothing is outstanding. Returns 1, or
 * as records_fetch.
 */
int records_run(struct records *r, struct ringcap_run *run);

/* Releases what ringcap_next has passed of the run. */
void records_pass(struct records *r, const struct ringcap_run *run);

#endif
