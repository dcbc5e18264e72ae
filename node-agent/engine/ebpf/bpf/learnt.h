/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Learnt flows: a hash table of this program's own, in an array, because the kernel's takes 265 instructions to find a
 * key. A flow's hash is the number of a place. The flow is at that place, or at another one of the same bucket: those
 * are tried in the order of their number XOR that of the first one, up to a place that was never used. A place that is
 * used never becomes unused. If the bucket has no other place for a new flow, one that has expired gives way, or the
 * one that had no packet for the longest time.
 *
 * Who adds a flow has the lock of its bucket, so no flow is there twice. Who looks for one takes no lock. While a place
 * changes hands, the first word of its key is LEARNT_CHANGES, which no packet's is. It is read before and after the
 * others, in this order on every processor, because the address of each read depends on the one before. The next flow
 * can have the same first word. So a key of more than two words also has the number of changes around it: otherwise it
 * could be half the last flow's and half the next one's.
 *
 * The hash multiplies pairs of 32 bits, as wild_hash does, so nobody can choose flows with the same one. Its numbers
 * are random, secret, and those of the maps: node-agent/engine/ebpf/learnttable.go draws them once, for programs that
 * are loaded later find the same flows. With one set of numbers in fifty, addresses in a row would share few buckets.
 * What mixes the sum avoids that.
 */
#ifndef RC_LEARNT_H
#define RC_LEARNT_H

#include "constant.h"
#include "life.h"

#define LEARNT_PLACES_LOG	5
#define LEARNT_PLACES		(1 << LEARNT_PLACES_LOG)	/* of a bucket */
#define LEARNT_LOCKS		256	/* a power of two; buckets share them */
#define LEARNT_SECRETS		(2 * RC_EXACT_WORDS_IPV6)

/* Bits of the first word of a key that rc_exact_word leaves 0. */
#define LEARNT_USED		(1ULL << 63)
#define LEARNT_CHANGES		(1ULL << 62)

/**
 * struct learnt - a place for a flow, one cache line
 * @w: the key, as in struct rc_exact_key, with LEARNT_USED in the first word; that is 0 if the place was never used
 * @life: @life.last is by learnt_clock
 * @changes: how often the place got another flow
 */
struct learnt {
	__u64 w[RC_EXACT_WORDS_IPV6];
	struct life life;
	__u32 changes;
	__u32 resv;
};

struct learnt_bucket {
	struct learnt places[LEARNT_PLACES];
};

struct learnt_lock {
	struct bpf_spin_lock lock;
	__u8 resv[60];
};

/* The numbers of the hash. Programs have them as constants. */
struct learnt_secrets {
	__u64 w[LEARNT_SECRETS];
};

/*
 * The loader sets max_entries of this, a power of two, and of the locks. BPF_F_MMAPABLE aligns the places to cache
 * lines.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct learnt_bucket);
} ring_learnt SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct learnt_lock);
} ring_learnt_locks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct learnt_secrets);
} ring_learnt_secrets SEC(".maps");

DECLARE_CONSTANT(has_learnt);	/* CONFIG_LEARN */
DECLARE_CONSTANT(has_idle);	/* CONFIG_IDLE */
DECLARE_CONSTANT(learnt_shift);	/* of the hash, which gives the place */
DECLARE_CONSTANT(learnt_secret_0);
DECLARE_CONSTANT(learnt_secret_1);
DECLARE_CONSTANT(learnt_secret_2);
DECLARE_CONSTANT(learnt_secret_3);
DECLARE_CONSTANT(learnt_secret_4);
DECLARE_CONSTANT(learnt_secret_5);
DECLARE_CONSTANT(learnt_secret_6);
DECLARE_CONSTANT(learnt_secret_7);
DECLARE_CONSTANT(learnt_secret_8);
DECLARE_CONSTANT(learnt_secret_9);

#define LEARNT_TIMES(word, a, b) \
	((((word) >> 32) + CONSTANT(learnt_secret_##a)) * ((__u32)(word) + CONSTANT(learnt_secret_##b)))

/* The place in the whole table, of the sum of a key's products. */
static __always_inline __u64 learnt_place_of(__u64 sum)
{
	return (sum ^ sum >> 32) * 0x9e3779b97f4a7c15ULL >> CONSTANT(learnt_shift);
}

/* The place of an IPv4 flow. */
static __always_inline __u64 learnt_place_ipv4(__u64 first, __u64 second)
{
	return learnt_place_of(LEARNT_TIMES(first, 0, 1) + LEARNT_TIMES(second, 2, 3));
}

/* The place of any flow. */
static __always_inline __u64 learnt_place(const __u64 w[RC_EXACT_WORDS_IPV6])
{
	if (!(w[0] >> 60))
		return learnt_place_ipv4(w[0], w[1]);
	return learnt_place_of(LEARNT_TIMES(w[0], 0, 1) + LEARNT_TIMES(w[1], 2, 3) + LEARNT_TIMES(w[2], 4, 5) +
			       LEARNT_TIMES(w[3], 6, 7) + LEARNT_TIMES(w[4], 8, 9));
}

/* Nanoseconds if rules expire; else ticks, which cost two instructions. */
static __always_inline __u64 learnt_clock(void)
{
	return CONSTANT(has_idle) ? bpf_ktime_get_coarse_ns() : bpf_jiffies64();
}

static __always_inline struct learnt_bucket *learnt_bucket(__u64 place)
{
	__u32 number = place >> LEARNT_PLACES_LOG;

	return bpf_map_lookup_elem(&ring_learnt, &number);
}

/* Place number @i in the order of a flow's search. */
static __always_inline struct learnt *learnt_at(struct learnt_bucket *bucket, __u64 place, __u32 i)
{
	place ^= i;
	opaque(place);
	return &bucket->places[place & (LEARNT_PLACES - 1)];
}

/*
 * The address @at, computed from @word: what is read there is read after @word, on every processor. The "and" is an
 * instruction that the compiler does not see. What it knows to be 0, it would load as a constant instead. The verifier
 * sees that the sum is @at.
 */
#define LEARNT_AFTER(at, word) ({ \
	__u64 _zero = (word); \
	asm volatile("%0 &= 0" : "+r"(_zero)); \
	(typeof(at))((__u8 *)(at) + _zero); })

static __always_inline __u64 learnt_changes(const struct learnt *flow)
{
	return *(volatile const __u32 *)&flow->changes;
}

/*
 * Whether the place has the flow with the first @words words, and this has not expired. It gets on then. @w: the first
 * word has LEARNT_USED.
 */
static __always_inline int learnt_goes_on(struct learnt *flow, const __u64 *w, const __u32 words, __u64 now)
{
	const int counted = words > RC_EXACT_WORDS_IPV4;
	__u64 last, word, idle = 0, changes = 0;
	struct learnt *next = flow;
	__u32 i;

	if (counted) {
		changes = learnt_changes(next);
		next = LEARNT_AFTER(next, changes);
	}
	for (i = 0; i < words; i++) {
		word = read_now(next->w[i]);
		next = LEARNT_AFTER(next, word); /* before the comparison, which may tell the compiler the word */
		if (word != w[i])
			return 0;
	}
	last = read_now(next->life.last);
	next = LEARNT_AFTER(next, last);
	if (CONSTANT(has_idle)) {
		idle = read_now(next->life.idle);
		next = LEARNT_AFTER(next, idle);
	}
	word = read_now(next->w[0]);
	if (counted)
		next = LEARNT_AFTER(next, word);
	if (word != w[0] || (counted && learnt_changes(next) != changes))
		return 0;
	/* Another CPU may have seen a later packet. */
	if (idle && (__s64)(now - last) >= (__s64)idle)
		return 0;
	if (last != now) /* this changes with the timer's tick */
		flow->life.last = now;
	return 1;
}

/* Whether the flow is at one of its places from number @i on; the parameters are those of learnt_goes_on. */
static __always_inline int learnt_search(struct learnt_bucket *bucket, __u64 place, __u32 i, const __u64 *w,
					 const __u32 words, __u64 now)
{
	struct learnt *flow;

	for (; i < LEARNT_PLACES; i++) {
		flow = learnt_at(bucket, place, i);
		if (learnt_goes_on(flow, w, words, now))
			return 1;
		if (!read_now(flow->w[0]))
			return 0;
	}
	return 0;
}

/* The same as learnt_find_ipv4 for the places after the first one. Global, for the verifier to check the loop once. */
__attribute__((noinline)) int learnt_probe_ipv4(__u64 first, __u64 second, __u64 place, __u64 now)
{
	struct learnt_bucket *bucket = learnt_bucket(place);
	const __u64 w[RC_EXACT_WORDS_IPV4] = { first, second };

	return bucket && learnt_search(bucket, place, 1, w, RC_EXACT_WORDS_IPV4, now);
}

/* Whether the IPv4 flow with this key is learnt. Most are at their first place. */
static __always_inline int learnt_find_ipv4(__u64 first, __u64 second)
{
	__u64 w[RC_EXACT_WORDS_IPV4] = { first | LEARNT_USED, second };
	__u64 place = learnt_place_ipv4(first, second), now;
	struct learnt_bucket *bucket = learnt_bucket(place);
	struct learnt *flow;

	if (!bucket)
		return 0;
	now = learnt_clock();
	flow = learnt_at(bucket, place, 0);
	if (learnt_goes_on(flow, w, RC_EXACT_WORDS_IPV4, now))
		return 1;
	return read_now(flow->w[0]) && learnt_probe_ipv4(w[0], second, place, now);
}

/* Copies the key of the flow work->exact as places have it, and returns the flow's place. */
static __always_inline __u64 learnt_key(const struct work *work, __u64 w[RC_EXACT_WORDS_IPV6])
{
	__u64 place;
	__u32 i;

	for (i = 0; i < RC_EXACT_WORDS_IPV6; i++)
		w[i] = work->exact.w[i];
	place = learnt_place(w);
	w[0] |= LEARNT_USED;
	return place;
}

/* Whether the flow work->exact is learnt. */
__attribute__((noinline)) int learnt_find(void)
{
	struct work *work = this_work();
	struct learnt_bucket *bucket;
	__u64 place, w[RC_EXACT_WORDS_IPV6];

	if (!CONSTANT(has_learnt) || !work)
		return 0;
	place = learnt_key(work, w);
	bucket = learnt_bucket(place);
	return bucket && learnt_search(bucket, place, 0, w, RC_EXACT_WORDS_IPV6, learnt_clock());
}

static __always_inline int learnt_is(const struct learnt *flow, const __u64 w[RC_EXACT_WORDS_IPV6])
{
	return flow->w[0] == w[0] && flow->w[1] == w[1] && flow->w[2] == w[2] && flow->w[3] == w[3] &&
	       flow->w[4] == w[4];
}

/* How early the flow gives way to another one: expired ones first. */
static __always_inline __s64 learnt_age(const struct learnt *flow, __u64 now)
{
	__s64 age = now - read_now(flow->life.last);

	if (flow->life.idle && age >= (__s64)flow->life.idle)
		return 1ULL << 62 | age;
	return age;
}

/* The flow's own place in the bucket, or the one that it is to get. Under the bucket's lock. */
static __always_inline struct learnt *learnt_choose(struct learnt_bucket *bucket, __u64 place,
						    const __u64 w[RC_EXACT_WORDS_IPV6], __u64 now)
{
	struct learnt *flow;
	__s64 age, most = -1;
	__u64 chosen = 0;
	__u32 i;

	opaque(chosen);
	for (i = 0; i < LEARNT_PLACES; i++) {
		flow = learnt_at(bucket, place, i);
		if (!flow->w[0] || learnt_is(flow, w)) {
			chosen = i;
			break;
		}
		age = learnt_age(flow, now);
		if (age > most) {
			most = age;
			chosen = i;
		}
	}
	return learnt_at(bucket, place, chosen);
}

/* Gives a place to the flow, or a longer life if it has the place. Under the bucket's lock. */
static __always_inline void learnt_settle(struct learnt *flow, const __u64 w[RC_EXACT_WORDS_IPV6],
					  const struct life *life)
{
	int fresh = !learnt_is(flow, w);

	if (fresh) {
		__sync_lock_test_and_set(&flow->w[0], LEARNT_CHANGES);
		__sync_lock_test_and_set(&flow->changes, flow->changes + 1); /* before the words, on every processor */
		flow->w[1] = w[1];
		flow->w[2] = w[2];
		flow->w[3] = w[3];
		flow->w[4] = w[4];
	}
	flow->life = *life;
	if (fresh)
		__sync_lock_test_and_set(&flow->w[0], w[0]);
}

/* Adds the flow work->exact, which a rule has just learnt, if it is not there. @idle: as in struct life. */
__attribute__((noinline)) int learnt_add(__u64 idle)
{
	struct work *work = this_work();
	struct life life = { .idle = idle };
	struct learnt_bucket *bucket;
	struct learnt_lock *lock;
	__u64 place, w[RC_EXACT_WORDS_IPV6];
	__u32 number;

	if (!CONSTANT(has_learnt) || !work)
		return 0;
	place = learnt_key(work, w);
	bucket = learnt_bucket(place);
	number = (place >> LEARNT_PLACES_LOG) & (LEARNT_LOCKS - 1);
	lock = bpf_map_lookup_elem(&ring_learnt_locks, &number);
	if (!bucket || !lock)
		return 0;
	life.last = learnt_clock();
	bpf_spin_lock(&lock->lock);
	learnt_settle(learnt_choose(bucket, place, w, life.last), w, &life);
	bpf_spin_unlock(&lock->lock);
	return 0;
}

#endif /* RC_LEARNT_H */
