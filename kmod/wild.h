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
 * Most shapes have no match for most packets, and single fields say so ("tuple pruning" in that paper): a sieve has a
 * table for each of some fields, which says by the hash of the field's value what shapes have a match with such a
 * value. Only those that are in all of the tables' answers are looked up.
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

/* A word of the key that a shape's mask does not leave out. @secret: random numbers of the hash. */
struct rc_shape_word {
	u64 mask;
	u64 secret[2];
	u32 at;
};

/**
 * struct rc_shape - the matches with one mask
 * @best: least rank of a rule that is in here
 * @has: RC_HAS_* that the mask asks for
 * @stride: words of an entry
 * @shift: what the hash is shifted by for a head
 * @heads: each one's first entry, and one more
 * @entries: upper half of the hash << 32 | rank, and the masked key; ordered by rank within a head
 * @end: of those of @words that are in use, one at least
 * @words: of the first word of the key without what @has says
 */
struct rc_shape {
	u32 best;
	u32 has;
	u32 stride;
	u32 shift;
	u32 *heads;
	u64 *entries;
	struct rc_shape_word *end;
	struct rc_shape_word words[RC_KEY_WORDS];
};

#define RC_SIEVE_SHAPES		64U
#define RC_SIEVE_SHAPES_MIN	3U	/* below, a sieve costs more than it saves */
#define RC_SIEVE_FIELDS		6U
#define RC_SIEVE_ROWS_LOG	8U

/**
 * struct rc_sieve - which of 64 shapes, as bits, may have a match for a packet
 * @passes: by a field of the packet's key: those that have matches with such a value there, and those that do not ask
 *	for the whole field
 */
struct rc_sieve {
	u64 passes[RC_SIEVE_FIELDS][1U << RC_SIEVE_ROWS_LOG];
};

/**
 * struct rc_wild - compiled rules
 * @odds: random odd numbers, by which a sieve multiplies the key's words
 * @macs: some rule asks for MAC addresses
 * @inner: some rule asks for what is inside of tunnels
 * @memory: bytes
 * @rules: by rank: priority, then id
 * @shapes: by @best
 * @sieves: for each 64 of @shapes; NULL where there are so few that to try all costs less
 */
struct rc_wild {
	u64 odds[RC_KEY_WORDS];
	u32 nr_rules;
	u32 nr_shapes;
	bool macs;
	bool inner;
	u64 memory;
	struct rc_rule **rules;
	struct rc_shape *shapes;
	struct rc_sieve *sieves;
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

/* The best rule that matches @key, or NULL. */
struct rc_rule *rc_wild_find(const struct rc_wild *wild, const struct rc_key *key);

/* The same for a packet of @len bytes that rc_parse_plain accepts; not where a rule asks for what is inside of it. */
struct rc_rule *rc_wild_find_plain(const struct rc_wild *wild, const u8 *data, u32 len);

/* Bottom halves off. */
static __always_inline void rc_rule_count(struct rc_rule *rule, u32 len)
{
	struct rc_rule_hits *hits = this_cpu_ptr(rule->hits);

	rc_account_add(hits->bytes, len);
	WRITE_ONCE(hits->last, (u32)jiffies);
	rc_account_add(hits->packets, 1);
}

#endif /* RC_WILD_H */
