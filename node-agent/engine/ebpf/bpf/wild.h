/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Wildcard rules, found by tuple space search, as in kmod/wild.h. A packet's key is masked and looked up once for each
 * shape, in the order of the best rank that each has. The search ends when no later shape could have a better rank.
 * Before that, a sieve excludes shapes that single fields of the packet show to have no match.
 *
 * The kernel's hash tables take some 500 instructions for one look-up of a whole key. So matches that only ask for the
 * fields of brief_key are in a hash table of this program's own, in an array. The others are in ring_wild.
 *
 * node-agent/engine/ebpf/wildtable.go fills these maps, once. The hash's numbers are random and secret, so nobody can
 * choose packets that take long: a match is at most WILD_PROBES entries behind its place.
 */
#ifndef RC_WILD_H
#define RC_WILD_H

#include "life.h"

#define SIEVE_FIELDS	6
#define SIEVE_ROWS_LOG	11
#define SIEVE_ROWS	(1 << SIEVE_ROWS_LOG)
#define SIEVE_WORDS	3	/* words of the packet's key that have these fields: the ports, and both addresses */
#define BRIEF_WORDS	3
#define WILD_PROBES	32	/* entries in a row that a match may be in, from its place on */

struct wild_rule {
	__u32 rank;
	__u32 id;
	__u32 action;
	__u32 target;
};

/**
 * struct brief_key - the fields that most rules ask for
 * @w: ethertype and VLAN ids as in the first word of struct rc_key, but with the shape's number in place of RC_HAS_*;
 *	the second word of struct rc_key; both IPv4 addresses, or the first 32 bits of both IPv6 addresses
 */
struct brief_key {
	__u64 w[BRIEF_WORDS];
};

/**
 * struct shape - the matches with one mask
 * @mask: the whole mask
 * @brief: the same for brief keys, if @is_brief
 * @has: RC_HAS_* that the mask asks for
 * @best: least rank of a rule of this shape
 * @is_brief: its matches are in ring_wild_entries, else in ring_wild
 */
struct shape {
	struct rc_key mask;
	struct brief_key brief;
	__u32 has;
	__u32 best;
	__u32 is_brief;
	__u32 resv;
};

/**
 * struct wild_index - what is needed to look up rules
 * @odds: random odd numbers, by which the sieve multiplies words of the key
 * @secrets: random numbers of the brief keys' hash
 * @shift: shift of the hash that gives the place
 * @passes: by a field of the packet's key: the shapes, as bits, that have matches with such a value, and those that do
 *	not have the whole field in their mask
 * @shapes: by @best
 */
struct wild_index {
	__u64 odds[SIEVE_WORDS];
	__u64 secrets[2 * BRIEF_WORDS];
	__u32 shift;
	__u32 resv;
	__u64 passes[SIEVE_FIELDS][SIEVE_ROWS];
	struct shape shapes[SHAPES_MAX];
};

/* An entry of the hash table of brief keys. @rule: its id is 0 if the entry is free */
struct wild_entry {
	struct brief_key key;
	struct wild_rule rule;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wild_index);
} ring_wild_index SEC(".maps");

/* The loader sets max_entries of these to what the set needs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wild_entry);
} ring_wild_entries SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct wild_key);
	__type(value, struct wild_rule);
} ring_wild SEC(".maps");

/* Whether a rule that was found has expired. A learning rule does not expire; the rules that it learnt do. */
static __always_inline int wild_is_over(const struct work *work, const struct wild_rule *rule)
{
	struct life *life;

	if (!(config.flags & CONFIG_IDLE) || rule->action == RINGCAP_ACTION_LEARN)
		return 0;
	life = life_of(rule->rank);
	return life && life_is_over(life, work);
}

/* Takes a rule if it is better than what work->rank is of. In memory, because the verifier does not track that. */
static __always_inline void wild_take(struct work *work, const struct wild_rule *rule)
{
	if (rule->rank >= work->rank || wild_is_over(work, rule))
		return;
	work->rank = rule->rank;
	work->rule = rule->id;
	work->action = rule->action;
	work->target = rule->target;
}

/* Looks for a rule of shape number @i, by the whole key. */
static __always_inline void wild_try_whole(struct work *work, const struct shape *shape, __u32 i)
{
	const struct wild_rule *rule;
	__u32 word;

	work->wild.shape = i;
	for (word = 0; word < RC_KEY_WORDS; word++)
		work->wild.w[word] = work->key.w[word] & shape->mask.w[word];
	rule = bpf_map_lookup_elem(&ring_wild, &work->wild);
	if (rule)
		wild_take(work, rule);
}

/*
 * Multiplies pairs of 32 bits, as kmod/wild.c does. Two keys have the same upper n bits, up to 32, with a probability
 * of at most 2 / 2^n.
 */
static __always_inline __u64 wild_hash(const struct wild_index *index, const struct brief_key *key)
{
	__u64 hash = 0;

	for (__u32 i = 0; i < BRIEF_WORDS; i++)
		hash += ((key->w[i] >> 32) + index->secrets[2 * i]) * ((__u32)key->w[i] + index->secrets[2 * i + 1]);
	return hash;
}

static __always_inline int wild_entry_is(const struct wild_entry *entry, const struct brief_key *key)
{
	return entry->key.w[0] == key->w[0] && entry->key.w[1] == key->w[1] && entry->key.w[2] == key->w[2];
}

/*
 * The place of the key's entry among those behind @place, or @place itself if there is none. This is global, for the
 * verifier to check the loop once.
 */
__attribute__((noinline)) __u32 wild_probe(__u64 first, __u64 second, __u64 third, __u32 place)
{
	const struct brief_key key = { { first, second, third } };
	const struct wild_entry *entry;
	__u32 probe, at;

	for (probe = 1; probe < WILD_PROBES; probe++) {
		at = place + probe;
		entry = bpf_map_lookup_elem(&ring_wild_entries, &at);
		if (!entry || !entry->rule.id)
			break;
		if (wild_entry_is(entry, &key))
			return at;
	}
	return place;
}

/* Looks for a rule of shape number @i, by its brief key. Most are at their place, and most places without are free. */
static __always_inline void wild_try_brief(struct work *work, const struct wild_index *index, const struct shape *shape,
					   __u32 i, const struct brief_key *whole)
{
	const struct wild_entry *entry;
	struct brief_key key;
	__u32 place;

	key.w[0] = (whole->w[0] & shape->brief.w[0]) | i;
	key.w[1] = whole->w[1] & shape->brief.w[1];
	key.w[2] = whole->w[2] & shape->brief.w[2];
	place = wild_hash(index, &key) >> (index->shift & 63);
	entry = bpf_map_lookup_elem(&ring_wild_entries, &place);
	if (!entry || !entry->rule.id)
		return;
	if (!wild_entry_is(entry, &key)) {
		place = wild_probe(key.w[0], key.w[1], key.w[2], place);
		entry = bpf_map_lookup_elem(&ring_wild_entries, &place);
		if (!entry || !wild_entry_is(entry, &key))
			return;
	}
	wild_take(work, &entry->rule);
}

#define SIEVE_ROW(index, word, at, mask) (((word) & (mask)) * (index)->odds[at] >> (64 - SIEVE_ROWS_LOG))

/* The shapes that are to be tried, as bits. The fields are the first 16 and 24 bits of either address, and the ports. */
static __always_inline __u64 wild_sieve(const struct wild_index *index, __u64 ports, __u64 source, __u64 target)
{
	return index->passes[0][SIEVE_ROW(index, source, 1, ~0ULL << 48)] &
	       index->passes[1][SIEVE_ROW(index, source, 1, ~0ULL << 40)] &
	       index->passes[2][SIEVE_ROW(index, target, 2, ~0ULL << 48)] &
	       index->passes[3][SIEVE_ROW(index, target, 2, ~0ULL << 40)] &
	       index->passes[4][SIEVE_ROW(index, ports, 0, ~0ULL << 48)] &
	       index->passes[5][SIEVE_ROW(index, ports, 0, 0xffffULL << 32)];
}

/* The number of the lowest bit that is set in a De Bruijn sequence's product: BPF has no instruction for it. */
static const __u8 lowest_bits[64] = {
	0,  1,  2,  53, 3,  7,  54, 27, 4,  38, 41, 8,  34, 55, 48, 28, 62, 5,  39, 46, 44, 42,
	22, 9,  24, 35, 59, 56, 49, 18, 29, 11, 63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21,
	23, 58, 17, 10, 51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12,
};

static __always_inline __u64 lowest_bit(__u64 bits)
{
	return lowest_bits[(bits & -bits) * 0x022fdd63cc95386dULL >> 58];
}

/*
 * Finds the best rule for the packet whose key has these words. work->rank is that rule's then, or ~0U. @whole:
 * work->key is that key, for shapes that are not brief; else no such shape can match.
 */
static __always_inline void wild_search(struct work *work, const __u64 key[RC_KEY_WORDS], int whole)
{
	const struct wild_index *index;
	const struct shape *shape;
	struct brief_key brief;
	__u32 zero = 0, n;
	__u64 left, i;

	work->rank = ~0U;
	index = bpf_map_lookup_elem(&ring_wild_index, &zero);
	if (!index)
		return;
	brief.w[0] = key[0] & ~0xffffULL;
	brief.w[1] = key[1];
	brief.w[2] = (key[2] & ~0ULL << 32) | key[4] >> 32;
	left = wild_sieve(index, key[1], key[2], key[4]);
	for (n = 0; n < SHAPES_MAX && left; n++, left &= left - 1) {
		i = lowest_bit(left);
		opaque(i);
		i &= SHAPES_MAX - 1;
		shape = &index->shapes[i];
		if (shape->best >= work->rank)
			break;
		if ((key[0] & shape->has) != shape->has)
			continue;
		if (shape->is_brief)
			wild_try_brief(work, index, shape, i, &brief);
		else if (whole)
			wild_try_whole(work, shape, i);
	}
}

#endif /* RC_WILD_H */
