/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The doorbell of a sleeping consumer. It rings at most once a sleep: at the watermark at once, else when the timeout
 * has passed since the first packet.
 *
 * The timer's callback belongs to ringcap_bell, which the agent runs for a queue before its consumer is attached, and
 * when it finds the consumer of an earlier agent. If a ring's program had set the callback, the program could not be
 * unloaded while the timer exists.
 */
#ifndef RC_DOORBELL_H
#define RC_DOORBELL_H

#include "config.h"

#define EBUSY	16	/* as in the kernel, for all architectures of Linux */

/**
 * struct bell - a queue's doorbell, by the queue's place
 * @armed: the number of the sleep for which the timer was last started
 * @rung: the last sleep that was ended
 * @lock: of the queue's shared lane, 1 = a CPU has it; see lane.h
 */
struct bell {
	struct bpf_timer timer;
	__u64 armed;
	__u64 rung;
	__u64 lock;
};

/* Maps with timers cannot be mapped into memory, so this data has a map of its own. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__type(value, struct bell);
} rc_bells SEC(".maps");

/* The loader sets the inner max_entries to a page. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_RINGBUF);
		__uint(max_entries, 4096);
	});
} rc_doorbells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(max_entries, 1);
		__uint(map_flags, BPF_F_MMAPABLE);
		__uint(key_size, sizeof(__u32));
		__uint(value_size, sizeof(struct ringcap_consumer_page));
	});
} rc_consumers SEC(".maps");

static __always_inline struct ringcap_consumer_page *consumer_page(__u32 place)
{
	void *consumer = bpf_map_lookup_elem(&rc_consumers, &place);
	__u32 zero = 0;

	return consumer ? bpf_map_lookup_elem(consumer, &zero) : NULL;
}

/*
 * What the page notes of the sleep: its timer was started, or it was rung. The bell itself takes a look-up, which each
 * packet of a sleep would pay.
 */
#define NOTED_ARMED(sleep)	(sleep)
#define NOTED_RUNG(sleep)	(~(sleep))

/* Whether what the page notes is so. */
static __always_inline int bell_says(const struct bell *bell, __u64 sleep, __u64 noted)
{
	return read_now(bell->rung) == sleep || (noted == NOTED_ARMED(sleep) && read_now(bell->armed) == sleep);
}

/* Notes in the page what was done for the sleep, unless another CPU's bell_retry takes it back. */
static __always_inline void bell_note(const struct bell *bell, struct ringcap_consumer_page *page, __u64 sleep)
{
	__u64 noted = read_now(bell->rung) == sleep ? NOTED_RUNG(sleep) : NOTED_ARMED(sleep);

	__sync_lock_test_and_set(&page->noted, noted);
	if (!bell_says(bell, sleep, noted))
		__sync_lock_test_and_set(&page->noted, 0);
}

/* The doorbell was full, or its lock could not be taken: treat the sleep's next packet like its first one. */
static __always_inline void bell_retry(struct bell *bell, struct ringcap_consumer_page *page, __u64 sleep)
{
	__sync_val_compare_and_swap(&bell->armed, sleep, 0);
	__sync_val_compare_and_swap(&bell->rung, sleep, 0);
	__sync_lock_test_and_set(&page->noted, 0);
}

#define BELL_TRIES	4	/* CPUs that may ring, or start the timer, at the same time for consecutive sleeps */

/*
 * Ends the sleep, unless it was rung already or is over. @rung is read before the page's sleep, behind a barrier.
 * Otherwise a late CPU could replace a later sleep by one that is over, and the later one would be rung twice.
 *
 * A consumer that began the later sleep looked at the lanes then. It saw the packets that this CPU had published before
 * it read the earlier sleep.
 */
static __always_inline void bell_ring(struct bell *bell, struct ringcap_consumer_page *page, __u32 place, __u64 sleep)
{
	void *doorbell = bpf_map_lookup_elem(&rc_doorbells, &place);

	for (int i = 0; i < BELL_TRIES; i++) {
		__u64 was = __sync_fetch_and_add(&bell->rung, 0);

		if (read_now(page->sleep) != sleep || was == sleep)
			return;
		if (__sync_val_compare_and_swap(&bell->rung, was, sleep) != was)
			continue;
		if (!doorbell || bpf_ringbuf_output(doorbell, &sleep, sizeof(sleep), BPF_RB_FORCE_WAKEUP))
			bell_retry(bell, page, sleep);
		return;
	}
}

/*
 * Starts the timer for the consumer's current sleep, unless it was started already. Returns whether it will ring.
 * @armed is read before the sleep, behind a barrier. Otherwise a late CPU could replace a later sleep by one that is
 * over.
 */
static __always_inline int bell_arm(struct bell *bell, struct ringcap_consumer_page *page, __u64 timeout_ns)
{
	for (int i = 0; i < BELL_TRIES; i++) {
		__u64 was = __sync_fetch_and_add(&bell->armed, 0), sleep = read_now(page->sleep);

		if (!sleep || was == sleep)
			return 1;
		if (__sync_val_compare_and_swap(&bell->armed, was, sleep) == was)
			return !bpf_timer_start(&bell->timer, timeout_ns, 0);
	}
	return 0;
}

/* The consumer's own timeout, else its cluster's, in nanoseconds. The consumer may have written anything. */
static __always_inline __u64 bell_wait_ns(struct ringcap_consumer_page *page, __u64 timeout_ns)
{
	__u64 own_us = read_now(page->lane[0].timeout_us);

	if (!own_us)
		return timeout_ns;
	if (own_us < RINGCAP_OWN_TIMEOUT_US_MIN)
		own_us = RINGCAP_OWN_TIMEOUT_US_MIN;
	if (own_us > RINGCAP_OWN_TIMEOUT_US_MAX)
		own_us = RINGCAP_OWN_TIMEOUT_US_MAX;
	return own_us * 1000;
}

/*
 * Called when packets were published while the consumer sleeps. @now: ring without waiting for a timeout. @timeout_ns:
 * the cluster's.
 */
__attribute__((noinline)) int bell_look(__u32 place, __u64 sleep, __u32 now, __u64 timeout_ns)
{
	struct bell *bell = bpf_map_lookup_elem(&rc_bells, &place);
	struct ringcap_consumer_page *page = consumer_page(place);

	if (!bell || !page)
		return 0;
	if (read_now(bell->rung) != sleep &&
	    (now || (read_now(bell->armed) != sleep && !bell_arm(bell, page, bell_wait_ns(page, timeout_ns)))))
		bell_ring(bell, page, place, sleep);
	bell_note(bell, page, sleep);
	return 0;
}

/*
 * Rings only in the sleep for which the timer was started: in another one there may be no reason to wake the consumer.
 */
static int bell_timeout(void *map __attribute__((unused)), __u32 *place, struct bell *bell)
{
	struct ringcap_consumer_page *page = consumer_page(*place);
	__u64 sleep = page ? read_now(page->sleep) : 0;

	if (sleep && sleep == read_now(bell->armed))
		bell_ring(bell, page, *place, sleep);
	return 0;
}

/* What the agent runs ringcap_bell with, at the start of a packet. */
struct bell_request {
	__u32 place;	/* the queue's */
	__u32 resumes;	/* 1 = an earlier agent's consumer continues, and may be asleep; 0 = a new one has not slept */
};

/* Prepares a queue's bell for a consumer. The timer of a consumer that resumes has an earlier agent's callback. */
SEC("tc")
int ringcap_bell(struct __sk_buff *skb)
{
	struct bell_request request;
	struct bell *bell;
	long failed;

	if (bpf_skb_load_bytes(skb, 0, &request, sizeof(request)))
		return -1;
	bell = bpf_map_lookup_elem(&rc_bells, &request.place);
	if (!bell)
		return -1;
	if (!request.resumes) {
		bell->armed = 0;
		bell->rung = 0;
	}
	failed = bpf_timer_init(&bell->timer, &rc_bells, 1 /* CLOCK_MONOTONIC */);
	if (failed && failed != -EBUSY) /* it exists already */
		return failed;
	return bpf_timer_set_callback(&bell->timer, bell_timeout);
}

#endif /* RC_DOORBELL_H */
