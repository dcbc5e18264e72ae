/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wildcard rules, compiled for packets: tuple space search (V. Srinivasan, S. Suri, G. Varghese, "Packet classification
 * using tuple space search", SIGCOMM 1999).
 *
 * Each mask of a rule's matches is a shape. A shape has a hash table of all matches with that mask. A packet's key is
 * masked and looked up once for each shape, in the order of the shapes' best rules. The search ends at the first shape
 * whose best rule could not beat the rule that was found. So the cost depends on the number of shapes; the number of
 * rules does not matter.
 *
 * Most shapes have no match for most packets, and single fields show this ("tuple pruning" in that paper). A sieve has
 * a table for each of some fields. By the hash of the field's value, the table says which shapes have a match with such
 * a value. Only the shapes that all tables report are looked up.
 *
 * Compiled rules never change: adding a rule makes another struct rc_wild, under RCU. The rules and their counts
 * persist.
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
 * @marked: is being removed
 * @fresh: is being added
 * @replaced: the rule that this one replaces, while this one is being added
 * @next: in a list of rules that are being added or removed
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

/* A word of the key that is in a shape's mask. @secret: random numbers of the hash. */
struct rc_shape_word {
	u64 mask;
	u64 secret[2];
	u32 at;
};

/**
 * struct rc_shape - the matches with one mask
 * @best: least rank of a rule of this shape
 * @has: RC_HAS_* that the mask asks for
 * @stride: words of an entry
 * @shift: shift of the hash that gives the head
 * @heads: first entry of each head, and one more
 * @entries: upper half of the hash << 32 | rank, and the masked key; ordered by rank within a head
 * @end: end of the used part of @words, which has at least one
 * @words: words of the mask; the first word of the key is without the bits in @has
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
 * @passes: by a field of the packet's key: the shapes that have matches with such a value, and those that do not have
 *	the whole field in their mask
 */
struct rc_sieve {
	u64 passes[RC_SIEVE_FIELDS][1U << RC_SIEVE_ROWS_LOG];
};

/**
 * struct rc_wild - compiled rules
 * @odds: random odd numbers, by which a sieve multiplies the key's words
 * @macs: some rule asks for MAC addresses
 * @inner: some rule asks for fields of packets in tunnels
 * @memory: bytes
 * @rules: by rank: priority, then id
 * @shapes: by @best
 * @sieves: one for each 64 of @shapes; NULL if there are so few shapes that trying all of them costs less
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

/*
 * Compiles @rules, an array from kvmalloc. Takes it over and sorts it, even on failure. Returns an error pointer then.
 */
struct rc_wild *rc_wild_create(struct rc_rule **rules, u32 nr_rules, struct netlink_ext_ack *extack);
/* The rules stay. */
void rc_wild_free(struct rc_wild *wild);

/* The best rule that matches @key, or NULL. */
struct rc_rule *rc_wild_find(const struct rc_wild *wild, const struct rc_key *key);

/* The same for a packet of @len bytes that rc_parse_plain accepts. Not for rules that ask for packets in tunnels. */
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
