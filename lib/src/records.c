// SPDX-License-Identifier: BSD-2-Clause
#include "records.h"

#include <errno.h>
#include <linux/bpf.h>

#define LEN_MASK (~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT))

static uint64_t producer_position(const struct records *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
}

static void publish(struct records *r)
{
	__atomic_store_n(r->consumer, r->released, __ATOMIC_RELEASE);
}

static bool plausible(const struct records *r, uint64_t producer, uint64_t position)
{
	return position <= producer && producer - position <= r->size && position % 8 == 0;
}

void records_start(struct records *r)
{
	uint64_t producer = producer_position(r);

	r->read = __atomic_load_n(r->consumer, __ATOMIC_RELAXED);
	if (!plausible(r, producer, r->read))
		r->read = producer;
	r->released = r->read;
	r->outstanding = 0;
	publish(r);
}

static const uint8_t *at(const struct records *r, uint64_t position)
{
	return r->data + (position & (r->size - 1));
}

/* A record's header word; the rest of the 8 bytes is the kernel's own. */
static uint32_t header(const struct records *r, uint64_t position)
{
	return __atomic_load_n((const uint32_t *)at(r, position), __ATOMIC_ACQUIRE);
}

static uint64_t bytes_taken(uint32_t word)
{
	return ((uint64_t)(word & LEN_MASK) + BPF_RINGBUF_HDR_SZ + 7) & ~7ULL;
}

/* Whether a record of len bytes has a slot and its packet in it. */
static bool slot_fits(const struct ringcap_slot *slot, uint32_t len)
{
	return len >= sizeof(*slot) && slot->hdr_len >= sizeof(*slot) && slot->hdr_len <= len &&
	       slot->caplen <= len - slot->hdr_len;
}

static int skip_to(struct records *r, uint64_t position)
{
	r->read = position;
	if (!r->outstanding) {
		r->released = r->read;
		publish(r);
	}
	return -EBADMSG;
}

int records_fetch(struct records *r, struct ringcap_pkt *pkts, unsigned int max)
{
	uint64_t producer = producer_position(r);
	unsigned int n = 0;

	if (!plausible(r, producer, r->read))
		return skip_to(r, producer);
	while (n < max && r->read < producer) {
		const struct ringcap_slot *slot = (const void *)(at(r, r->read) + BPF_RINGBUF_HDR_SZ);
		uint32_t word = header(r, r->read);

		if (word & BPF_RINGBUF_BUSY_BIT)
			break;
		if (bytes_taken(word) > producer - r->read ||
		    (!(word & BPF_RINGBUF_DISCARD_BIT) && !slot_fits(slot, word & LEN_MASK))) {
			if (n)
				break;	/* those before it first */
			return skip_to(r, producer);
		}
		r->read += bytes_taken(word);
		if (word & BPF_RINGBUF_DISCARD_BIT)
			continue;
		pkts[n].slot = slot;
		pkts[n].data = (const uint8_t *)slot + slot->hdr_len;
		n++;
	}
	r->outstanding += n;
	if (!r->outstanding && r->released != r->read) {	/* discarded ones only */
		r->released = r->read;
		publish(r);
	}
	return (int)n;
}

uint64_t records_skip(struct records *r, uint64_t bytes)
{
	uint64_t end = r->read + bytes, skipped = 0;
	struct ringcap_pkt pkt;

	while (r->read < end && records_fetch(r, &pkt, 1) == 1) {
		records_release(r, 1);
		skipped++;
	}
	return skipped;
}

bool records_settled(const struct records *r)
{
	/* Our position is out before we look whether another record was begun; its producer begins it before it looks. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return producer_position(r) == r->released;
}

/* Moves released past the oldest received record, and never past read. */
static void release_one(struct records *r)
{
	while (r->released < r->read) {
		uint32_t word = header(r, r->released);
		uint64_t taken = bytes_taken(word);

		r->released = taken > r->read - r->released ? r->read : r->released + taken;
		if (!(word & BPF_RINGBUF_DISCARD_BIT))
			return;
	}
}

void records_release(struct records *r, unsigned int n)
{
	if (!n)
		return;
	r->outstanding -= n;
	if (!r->outstanding)
		r->released = r->read;
	else
		while (n--)
			release_one(r);
	publish(r);
}

int records_run(struct records *r, struct ringcap_run *run)
{
	struct ringcap_pkt pkt;
	int n = records_fetch(r, &pkt, 1);

	if (n <= 0)
		return n;
	run->next = (const void *)pkt.slot;
	run->stop = run->next + 1;
	r->run = run->next;
	return 1;
}

void records_pass(struct records *r, const struct ringcap_run *run)
{
	if (run->next == r->run) {	/* this record is read again; drop the discarded ones before it */
		r->read -= bytes_taken(*(const uint32_t *)(const void *)(r->run - BPF_RINGBUF_HDR_SZ));
		r->outstanding = 0;
		r->released = r->read;
		publish(r);
	} else {
		records_release(r, 1);
	}
}
