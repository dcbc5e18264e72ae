/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wildcard rules, compiled for packets: tuple space search (V. Srinivasan, S. Suri, G. Varghese, "Packet classification
 * using tuple space search", SIGCOMM 1999).
 *
 * Each mask of a rule's matches is a shape; a shape has a hash table of all matches with that mask. A packet's key is
 * masked and looked up once for each shape, in order of the best rule that each has, and the search ends at the first
 * shape whose best could not beat what was found. So the cost is one of shapes; how many rules they have does not
 * matter.
 *
 * What is compiled never changes: another rule makes another struct rc_wild, under RCU. Rules, and what they have
 * counted, live on.
 */
#ifndef RC_WILD_H
#define RC_WILD_H

#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/ringcap.h>

#include "account.h"
#include "classify/rule.h"

struct netlink_ext_ack;

/* One CPU's share of a rule's account. @last: jiffies, where @packets is not 0. */
struct rc_rule_hits {
	u64 packets;
	u64 bytes;
	u32 last;
};

/**
 * struct rc_rule - a wildcard rule
 * @made: jiffies
 * @marked: is being taken out
 * @fresh: is being added
 * @replaced: by this one, while it is being added
 * @next: of a list of rules that come or go
 */
struct rc_rule {
	struct ringcap_rule rule;
	struct rc_rule_hits __percpu *hits;
	u32 made;
	bool marked;
	bool fresh;
	struct rc_rule *replaced;
	struct rc_rule *next;
};

/**
 * struct rc_shape - the matches with one mask
 * @best: least rank of a rule that is in here
 * @has: RC_HAS_* that the mask asks for
 * @nr_words: words of the key that the mask does not leave out
 * @heads: each hash's first entry, and one more
 * @entries: of 1 + @nr_words words: tag << 32 | rank, and the masked key; ordered by rank within a hash
 */
struct rc_shape {
	u32 best;
	u32 has;
	u32 nr_words;
	u32 mask_heads;
	u32 *heads;
	u64 *entries;
	u64 masks[RC_KEY_WORDS];
	u8 words[RC_KEY_WORDS];
};

/**
 * struct rc_wild - compiled rules
 * @seed: of the hash
 * @inner: some rule asks for what is inside of tunnels
 * @memory: bytes
 * @rules: by rank: priority, then id
 * @shapes: by @best
 */
struct rc_wild {
	u64 seed;
	u32 nr_rules;
	u32 nr_shapes;
	bool inner;
	u64 memory;
	struct rc_rule **rules;
	struct rc_shape *shapes;
};

struct rc_rule *rc_rule_alloc(const struct ringcap_rule *rule);
void rc_rule_free(struct rc_rule *rule);
void rc_rule_free_list(struct rc_rule *list);
bool rc_rule_is_idle(const struct rc_rule *rule);
void rc_rule_state(const struct rc_rule *rule, struct ringcap_rule_state *state);

/* Compiles @rules, an array from kvmalloc that is taken over and put in order, in any case. An error pointer. */
struct rc_wild *rc_wild_create(struct rc_rule **rules, u32 nr_rules, struct netlink_ext_ack *extack);
/* The rules stay. */
void rc_wild_free(struct rc_wild *wild);

/* A word more; rc_mix of the last is the hash: its upper half is the tag, what is below chooses the head. */
static __always_inline u64 rc_wild_mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

static __always_inline u32 rc_shape_find(const struct rc_shape *shape, const struct rc_key *key, u64 seed)
{
	u32 i, nr_words = shape->nr_words, at, end;
	u64 masked[RC_KEY_WORDS], hash = seed;
	const u64 *entry;

	if ((key->w[0] & shape->has) != shape->has)
		return U32_MAX;
	for (i = 0; i < nr_words; i++) {
		masked[i] = key->w[shape->words[i]] & shape->masks[i];
		hash = rc_wild_mix(hash, masked[i]);
	}
	hash = rc_mix(hash);
	at = shape->heads[hash & shape->mask_heads];
	end = shape->heads[(hash & shape->mask_heads) + 1];
	for (; at < end; at++) {
		entry = shape->entries + (size_t)at * (1 + nr_words);
		if (entry[0] >> 32 != hash >> 32)
			continue;
		for (i = 0; i < nr_words && entry[1 + i] == masked[i]; i++)
			;
		if (i == nr_words)
			return (u32)entry[0];
	}
	return U32_MAX;
}

/* The best rule that matches, or NULL. */
static __always_inline struct rc_rule *rc_wild_find(const struct rc_wild *wild, const struct rc_key *key)
{
	u32 i, found, best = U32_MAX;

	for (i = 0; i < wild->nr_shapes && wild->shapes[i].best < best; i++) {
		found = rc_shape_find(&wild->shapes[i], key, wild->seed);
		best = min(best, found);
	}
	return best == U32_MAX ? NULL : wild->rules[best];
}

/* Bottom halves off. */
static __always_inline void rc_rule_count(struct rc_rule *rule, u32 len)
{
	struct rc_rule_hits *hits = this_cpu_ptr(rule->hits);

	rc_account_add(hits->bytes, len);
	WRITE_ONCE(hits->last, (u32)jiffies);
	rc_account_add(hits->packets, 1);
}

#endif /* RC_WILD_H */
