// SPDX-License-Identifier: GPL-2.0-only

#include "wild.h"

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/netlink.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "packet.h"

#define RC_WILD_MATCHES_MAX	(1U << 20)	/* of all rules of a ring: one port range may give many */

/* The fields of a rule that need rc_key_add_inner. */
#define RC_MATCH_INSIDE	(RINGCAP_MATCH_TUNNEL_ID | RINGCAP_MATCH_INNER_SADDR | RINGCAP_MATCH_INNER_DADDR)

/* ---- for packets ---- */

/*
 * Multiplies pairs of 32 bits, as exact.h does. The numbers are random and secret. So two keys have the same upper n
 * bits, up to 32, with a probability of at most 2 / 2^n. One multiplication a word would not be enough. Keys that
 * differ in the top bits of two words would then have the same hash, whatever the numbers are.
 */
static __always_inline u64 rc_shape_hash(const struct rc_shape *shape, const struct rc_key *key)
{
	const struct rc_shape_word *word = shape->words;
	u64 hash = 0;

	do {
		u64 bits = key->w[word->at] & word->mask;

		hash += ((bits >> 32) + word->secret[0]) * ((u32)bits + word->secret[1]);
	} while (++word != shape->end);
	return hash;
}

static __always_inline bool rc_shape_entry_is(const struct rc_shape *shape, const u64 *entry, const struct rc_key *key)
{
	const struct rc_shape_word *word = shape->words;

	do {
		if (*++entry != (key->w[word->at] & word->mask))
			return false;
	} while (++word != shape->end);
	return true;
}

/* The least rank of a rule of this shape that matches, or U32_MAX. */
static __always_inline u32 rc_shape_find(const struct rc_shape *shape, const struct rc_key *key)
{
	const u64 *entry, *end;
	const u32 *head;
	u64 hash;

	if ((key->w[0] & shape->has) != shape->has)
		return U32_MAX;
	hash = rc_shape_hash(shape, key);
	head = shape->heads + (hash >> shape->shift);
	if (head[0] == head[1])
		return U32_MAX;
	entry = shape->entries + (u64)head[0] * shape->stride;
	end = shape->entries + (u64)head[1] * shape->stride;
	do {
		if (entry[0] >> 32 == hash >> 32 && rc_shape_entry_is(shape, entry, key))
			return (u32)entry[0];
		entry += shape->stride;
	} while (entry != end);
	return U32_MAX;
}

/*
 * The word of field @n, by which shapes are excluded. The fields are the first 16 and 24 bits of either address, and
 * the ports.
 */
static __always_inline u32 rc_sieve_word(u32 n)
{
	return n < 2 ? 2 : n < 4 ? 4 : 1;
}

static __always_inline u64 rc_sieve_mask(u32 n)
{
	return n == 5 ? 0xffffULL << 32 : n == 1 || n == 3 ? ~0ULL << 40 : ~0ULL << 48;
}

static __always_inline u32 rc_sieve_row(const struct rc_wild *wild, const struct rc_key *key, u32 n)
{
	u32 word = rc_sieve_word(n);

	return (key->w[word] & rc_sieve_mask(n)) * wild->odds[word] >> (64 - RC_SIEVE_ROWS_LOG);
}

/* The shapes out of 64 that are to be tried, as bits. */
static __always_inline u64 rc_sieve_pass(const struct rc_wild *wild, u32 number, const struct rc_key *key)
{
	const struct rc_sieve *sieve = &wild->sieves[number];

	return sieve->passes[0][rc_sieve_row(wild, key, 0)] & sieve->passes[1][rc_sieve_row(wild, key, 1)] &
	       sieve->passes[2][rc_sieve_row(wild, key, 2)] & sieve->passes[3][rc_sieve_row(wild, key, 3)] &
	       sieve->passes[4][rc_sieve_row(wild, key, 4)] & sieve->passes[5][rc_sieve_row(wild, key, 5)];
}

/* The least rank in @best and in the shapes from @first on; @left: which of 64 are to be tried, as bits. */
static __always_inline u32 rc_wild_try(const struct rc_wild *wild, const struct rc_key *key, u32 first, u64 left,
				       u32 best)
{
	const struct rc_shape *shape;

	for (; left; left &= left - 1) {
		shape = &wild->shapes[first + __ffs64(left)];
		if (shape->best >= best)
			break;
		best = min(best, rc_shape_find(shape, key));
	}
	return best;
}

/* Searches all shapes, 64 at a time. */
static noinline u32 rc_wild_best_of_many(const struct rc_wild *wild, const struct rc_key *key)
{
	u32 first, best = U32_MAX;

	for (first = 0; first < wild->nr_shapes; first += RC_SIEVE_SHAPES)
		best = rc_wild_try(wild, key, first, rc_sieve_pass(wild, first / RC_SIEVE_SHAPES, key), best);
	return best;
}

static __always_inline struct rc_rule *rc_wild_search(const struct rc_wild *wild, const struct rc_key *key)
{
	u32 best;
	u64 left;

	if (unlikely(wild->nr_shapes > RC_SIEVE_SHAPES)) {
		best = rc_wild_best_of_many(wild, key);
	} else {
		left = wild->sieves ? rc_sieve_pass(wild, 0, key) : BIT_ULL(wild->nr_shapes) - 1;
		best = rc_wild_try(wild, key, 0, left, U32_MAX);
	}
	return best == U32_MAX ? NULL : wild->rules[best];
}

struct rc_rule *rc_wild_find(const struct rc_wild *wild, const struct rc_key *key)
{
	return rc_wild_search(wild, key);
}

struct rc_rule *rc_wild_find_plain(const struct rc_wild *wild, const u8 *data, u32 len)
{
	struct rc_key key rc_uninitialized;

	rc_key_of_plain(data, len, wild->macs, &key);
	return rc_wild_search(wild, &key);
}

/* ---- rules ---- */

struct rc_rule *rc_rule_alloc(const struct ringcap_rule *rule)
{
	struct rc_rule *new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);

	if (!new)
		return NULL;
	new->rule = *rule;
	new->made = (u32)jiffies;
	new->hits = alloc_percpu_gfp(struct rc_rule_hits, GFP_KERNEL_ACCOUNT);
	if (new->hits)
		return new;
	kfree(new);
	return NULL;
}

void rc_rule_free(struct rc_rule *rule)
{
	free_percpu(rule->hits);
	kfree(rule);
}

void rc_rule_free_list(struct rc_rule *list)
{
	struct rc_rule *next;

	for (; list; list = next) {
		next = list->next;
		rc_rule_free(list);
		cond_resched();
	}
}

/* The sum over all CPUs; @idle: jiffies since the last packet on any CPU, or since the rule was made. */
static void rc_rule_sum(const struct rc_rule *rule, struct rc_rule_hits *sum, u32 *idle)
{
	u32 cpu;

	*sum = (struct rc_rule_hits){};
	*idle = rc_account_idle(&rule->made);
	for_each_possible_cpu(cpu) {
		const struct rc_rule_hits *hits = per_cpu_ptr(rule->hits, cpu);
		u64 packets = READ_ONCE(hits->packets);

		if (!packets)
			continue;
		sum->packets += packets;
		sum->bytes += READ_ONCE(hits->bytes);
		*idle = min(*idle, rc_account_idle(&hits->last));
	}
}

bool rc_rule_is_idle(const struct rc_rule *rule)
{
	struct rc_rule_hits sum;
	u32 idle;

	/* If a rule learns, the rules that it learnt expire, not the rule itself. */
	if (!rule->rule.idle_s || rule->rule.action == RINGCAP_ACTION_LEARN)
		return false;
	rc_rule_sum(rule, &sum, &idle);
	return idle >= rule->rule.idle_s * HZ;
}

void rc_rule_state(const struct rc_rule *rule, struct ringcap_rule_state *state)
{
	struct rc_rule_hits sum;
	u32 idle;

	rc_rule_sum(rule, &sum, &idle);
	state->rule = rule->rule;
	state->counts = (struct ringcap_rule_counts){
		.packets = sum.packets, .bytes = sum.bytes, .idle_ms = jiffies_to_msecs(idle),
	};
}

/* ---- matches ---- */

typedef int (*rc_match_fn)(void *arg, u32 rank, const struct rc_match *match);

static int rc_rule_match(const struct ringcap_rule *rule, const struct rc_port_prefix *sport,
			 const struct rc_port_prefix *dport, u32 rank, rc_match_fn fn, void *arg)
{
	struct rc_match there, back;
	int err;

	rc_match_of_rule(rule, sport, dport, false, &there);
	err = fn(arg, rank, &there);
	if (err || !(rule->flags & RINGCAP_RULE_BOTH))
		return err;
	rc_match_of_rule(rule, sport, dport, true, &back);
	return memcmp(&there, &back, sizeof(back)) ? fn(arg, rank, &back) : 0;
}

/* Calls @fn for all matches of @rule, until @fn fails. */
static int rc_rule_each_match(const struct ringcap_rule *rule, u32 rank, rc_match_fn fn, void *arg)
{
	struct rc_port_prefix sports[RC_PORT_PREFIXES_MAX], dports[RC_PORT_PREFIXES_MAX];
	u32 nr_sports = 1, nr_dports = 1, s, d;
	int err = 0;

	if (rule->fields & RINGCAP_MATCH_SPORT)
		nr_sports = rc_port_prefixes(rule->sport[0], rule->sport[1], sports);
	if (rule->fields & RINGCAP_MATCH_DPORT)
		nr_dports = rc_port_prefixes(rule->dport[0], rule->dport[1], dports);
	for (s = 0; s < nr_sports && !err; s++)
		for (d = 0; d < nr_dports && !err; d++)
			err = rc_rule_match(rule, &sports[s], &dports[d], rank, fn, arg);
	return err;
}

/* ---- compiling ---- */

#define RC_DRAFT_SLOTS	(4 * RINGCAP_SHAPES_MAX)

/*
 * Shapes while their sizes are being determined. @cursor: the shape of the last match, which is mostly that of the next
 * one too. @slots: hash table by mask: the shape's number plus 1, or 0. If another shape has the slot, the next one is
 * used.
 */
struct rc_draft {
	const struct ringcap_rule *rule;
	u32 nr_shapes;
	u32 nr_matches;
	u32 cursor;
	u16 slots[RC_DRAFT_SLOTS];
	u64 seed;
	struct {
		struct rc_key mask;
		u32 best;
		u32 nr;
	} of[RINGCAP_SHAPES_MAX];
	struct rc_shape *shapes;
	struct rc_wild *wild;
};

/* The slot where the mask's shape is, or is to be put. */
static u16 *rc_draft_slot(struct rc_draft *draft, const struct rc_key *mask)
{
	u64 hash = draft->seed;
	u32 i;

	/* Most words of a mask are empty. */
	for (i = 0; i < RC_KEY_WORDS; i++)
		if (mask->w[i])
			hash = rc_mix(hash ^ mask->w[i]) + i;
	for (i = hash % RC_DRAFT_SLOTS; draft->slots[i]; i = (i + 1) % RC_DRAFT_SLOTS)
		if (!memcmp(&draft->of[draft->slots[i] - 1].mask, mask, sizeof(*mask)))
			break;
	return &draft->slots[i];
}

/* The number of the mask's shape; nr_shapes if there is none. */
static u32 rc_draft_find(struct rc_draft *draft, const struct rc_key *mask)
{
	u16 *slot;

	if (draft->cursor < draft->nr_shapes && !memcmp(&draft->of[draft->cursor].mask, mask, sizeof(*mask)))
		return draft->cursor;
	slot = rc_draft_slot(draft, mask);
	draft->cursor = *slot ? *slot - 1U : draft->nr_shapes;
	return draft->cursor;
}

/* First pass: finds the shapes. Rules come by rank, so shapes come by the best rank that each has. */
static int rc_draft_count(void *arg, u32 rank, const struct rc_match *match)
{
	struct rc_draft *draft = arg;
	u32 i = rc_draft_find(draft, &match->mask);

	if (i == RINGCAP_SHAPES_MAX)
		return -E2BIG;
	if (draft->nr_matches++ == RC_WILD_MATCHES_MAX)
		return -ENOSPC;
	if (i == draft->nr_shapes) {
		draft->of[i].mask = match->mask;
		draft->of[i].best = rank;
		draft->of[i].nr = 0;
		*rc_draft_slot(draft, &match->mask) = ++draft->nr_shapes;
	}
	draft->of[i].nr++;
	return 0;
}

/*
 * Second pass: counts the matches for each hash. Counts in heads[h + 2], so that after the third pass heads[h] is the
 * first entry.
 */
static int rc_draft_tally(void *arg, u32 rank, const struct rc_match *match)
{
	struct rc_draft *draft = arg;
	struct rc_shape *shape = &draft->shapes[rc_draft_find(draft, &match->mask)];

	shape->heads[(rc_shape_hash(shape, &match->value) >> shape->shift) + 2]++;
	return 0;
}

/* Third pass. */
static int rc_draft_place(void *arg, u32 rank, const struct rc_match *match)
{
	struct rc_draft *draft = arg;
	struct rc_shape *shape = &draft->shapes[rc_draft_find(draft, &match->mask)];
	u64 hash = rc_shape_hash(shape, &match->value);
	u32 at = shape->heads[(hash >> shape->shift) + 1]++;
	u64 *entry = shape->entries + (u64)at * shape->stride;
	const struct rc_shape_word *word;

	*entry = hash >> 32 << 32 | rank;
	for (word = shape->words; word != shape->end; word++)
		*++entry = match->value.w[word->at] & word->mask;
	return 0;
}

static int rc_draft_pass(struct rc_draft *draft, const struct rc_wild *wild, rc_match_fn fn)
{
	u32 rank;
	int err = 0;

	for (rank = 0; rank < wild->nr_rules && !err; rank++) {
		err = rc_rule_each_match(&wild->rules[rank]->rule, rank, fn, draft);
		/* A rule may have 1,800 matches. */
		cond_resched();
	}
	return err;
}

static void rc_shape_set_mask(struct rc_shape *shape, const struct rc_key *mask)
{
	u32 i;

	shape->has = (u16)mask->w[0];
	shape->end = shape->words;
	for (i = 0; i < RC_KEY_WORDS; i++) {
		u64 bits = i ? mask->w[i] : mask->w[i] & ~(u64)U16_MAX;

		if (bits)
			*shape->end++ = (struct rc_shape_word){ bits, { get_random_u64(), get_random_u64() }, i };
	}
	/* For a mask that asks for nothing more: one word, with no bits. */
	if (shape->end == shape->words)
		*shape->end++ = (struct rc_shape_word){};
	shape->stride = 1 + (shape->end - shape->words);
}

static u32 rc_shape_nr_heads(const struct rc_shape *shape)
{
	return 1U << (64 - shape->shift);
}

static int rc_wild_alloc_shapes(struct rc_wild *wild, const struct rc_draft *draft)
{
	u32 i;

	wild->shapes = kvcalloc(draft->nr_shapes, sizeof(*wild->shapes), GFP_KERNEL_ACCOUNT);
	if (!wild->shapes)
		return -ENOMEM;
	wild->nr_shapes = draft->nr_shapes;
	for (i = 0; i < draft->nr_shapes; i++) {
		struct rc_shape *shape = &wild->shapes[i];
		u32 nr = draft->of[i].nr;

		rc_shape_set_mask(shape, &draft->of[i].mask);
		shape->best = draft->of[i].best;
		shape->shift = 64 - (order_base_2(nr) + 1);
		shape->heads = kvcalloc(rc_shape_nr_heads(shape) + 2, sizeof(*shape->heads), GFP_KERNEL_ACCOUNT);
		shape->entries = kvcalloc(nr, shape->stride * sizeof(u64), GFP_KERNEL_ACCOUNT);
		if (!shape->heads || !shape->entries)
			return -ENOMEM;
		wild->memory += sizeof(*shape) + (rc_shape_nr_heads(shape) + 2) * sizeof(*shape->heads) +
				(u64)nr * shape->stride * sizeof(u64);
	}
	return 0;
}

static void rc_shape_sum_heads(struct rc_shape *shape)
{
	u32 i;

	for (i = 1; i < rc_shape_nr_heads(shape) + 2; i++) {
		shape->heads[i] += shape->heads[i - 1];
		if (!(i % 4096))
			cond_resched();
	}
}

static u64 *rc_shape_entry(const struct rc_shape *shape, u32 at)
{
	return shape->entries + (u64)at * shape->stride;
}

/* Whether one of the entries from @first up to @end has the key of @entry. */
static bool rc_shape_has(const struct rc_shape *shape, u32 first, u32 end, const u64 *entry)
{
	for (; first < end; first++)
		if (!memcmp(rc_shape_entry(shape, first) + 1, entry + 1, (shape->stride - 1) * sizeof(*entry)))
			return true;
	return false;
}

/*
 * Of rules with the same match only the first can be found. So the others are omitted. Otherwise one head could have as
 * many entries as a set may have rules, and each packet that comes to it would pay for them.
 */
static void rc_shape_leave_out_equal(struct rc_shape *shape)
{
	u32 head, first, from = 0, to = 0;

	for (head = 0; head < rc_shape_nr_heads(shape); head++) {
		for (first = to; from < shape->heads[head + 1]; from++) {
			if (!rc_shape_has(shape, first, to, rc_shape_entry(shape, from)))
				memmove(rc_shape_entry(shape, to++), rc_shape_entry(shape, from),
					shape->stride * sizeof(u64));
			if (!(from % 4096))
				cond_resched();
		}
		shape->heads[head + 1] = to;
	}
}

/* ---- the sieves ---- */

static int rc_wild_alloc_sieves(struct rc_wild *wild)
{
	u32 nr = DIV_ROUND_UP(wild->nr_shapes, RC_SIEVE_SHAPES);

	if (wild->nr_shapes < RC_SIEVE_SHAPES_MIN)
		return 0;
	wild->sieves = kvcalloc(nr, sizeof(*wild->sieves), GFP_KERNEL_ACCOUNT);
	if (!wild->sieves)
		return -ENOMEM;
	wild->memory += nr * sizeof(*wild->sieves);
	return 0;
}

/* Whether the mask has the whole field. */
static bool rc_sieve_asks(const struct rc_key *mask, u32 n)
{
	return (mask->w[rc_sieve_word(n)] & rc_sieve_mask(n)) == rc_sieve_mask(n);
}

/* If a shape's mask does not have the whole field, the shape passes for all values of it. */
static void rc_sieve_open(struct rc_wild *wild, u32 n, u32 index)
{
	struct rc_sieve *sieve = &wild->sieves[index / RC_SIEVE_SHAPES];
	u32 row;

	for (row = 0; row < ARRAY_SIZE(sieve->passes[n]); row++)
		sieve->passes[n][row] |= BIT_ULL(index % RC_SIEVE_SHAPES);
}

/* Fourth pass. */
static int rc_draft_sieve(void *arg, u32 rank, const struct rc_match *match)
{
	struct rc_draft *draft = arg;
	struct rc_wild *wild = draft->wild;
	u32 index = rc_draft_find(draft, &match->mask), n;
	struct rc_sieve *sieve = &wild->sieves[index / RC_SIEVE_SHAPES];

	for (n = 0; n < RC_SIEVE_FIELDS; n++)
		if (rc_sieve_asks(&match->mask, n))
			sieve->passes[n][rc_sieve_row(wild, &match->value, n)] |= BIT_ULL(index % RC_SIEVE_SHAPES);
	return 0;
}

static void rc_wild_fill_sieves(struct rc_wild *wild, struct rc_draft *draft)
{
	u32 i, n;

	for (i = 0; i < wild->nr_shapes; i++) {
		for (n = 0; n < RC_SIEVE_FIELDS; n++)
			if (!rc_sieve_asks(&draft->of[i].mask, n))
				rc_sieve_open(wild, n, i);
		cond_resched();
	}
	rc_draft_pass(draft, wild, rc_draft_sieve);
}

static int rc_wild_compile(struct rc_wild *wild, struct rc_draft *draft, struct netlink_ext_ack *extack)
{
	u32 i;
	int err;

	err = rc_draft_pass(draft, wild, rc_draft_count);
	if (err == -E2BIG)
		NL_SET_ERR_MSG(extack,
			       "RINGCAP_A_RULE: the rules have more than 256 mask shapes (sets of fields, prefix lengths, blocks of port ranges): use fewer prefix lengths, or port ranges that begin and end at powers of two");
	if (err == -ENOSPC)
		NL_SET_ERR_MSG(extack,
			       "RINGCAP_A_RULE: the rules' port ranges come to more than 1048576 blocks: use port ranges that begin and end at powers of two");
	if (err)
		return err == -ENOSPC ? -E2BIG : err;
	for (i = 0; i < draft->nr_shapes; i++)
		wild->macs |= !!(draft->of[i].mask.w[0] & RC_HAS_MACS);
	for (i = 0; i < wild->nr_rules; i++)
		wild->inner |= !!(wild->rules[i]->rule.fields & RC_MATCH_INSIDE);
	err = rc_wild_alloc_shapes(wild, draft) ?: rc_wild_alloc_sieves(wild);
	if (err)
		return err;
	draft->shapes = wild->shapes;
	draft->wild = wild;
	rc_draft_pass(draft, wild, rc_draft_tally);
	for (i = 0; i < wild->nr_shapes; i++)
		rc_shape_sum_heads(&wild->shapes[i]);
	rc_draft_pass(draft, wild, rc_draft_place);
	for (i = 0; i < wild->nr_shapes; i++)
		rc_shape_leave_out_equal(&wild->shapes[i]);
	if (wild->sieves)
		rc_wild_fill_sieves(wild, draft);
	return 0;
}

/* Which rule goes first. Sorting 65536 rules takes long, so the comparison lets other tasks run. */
static int rc_rule_compare(const void *a, const void *b)
{
	const struct ringcap_rule *x = &(*(struct rc_rule *const *)a)->rule, *y = &(*(struct rc_rule *const *)b)->rule;

	cond_resched();
	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

struct rc_wild *rc_wild_create(struct rc_rule **rules, u32 nr_rules, struct netlink_ext_ack *extack)
{
	struct rc_draft *draft = kvzalloc(sizeof(*draft), GFP_KERNEL);
	struct rc_wild *wild = kzalloc(sizeof(*wild), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;
	u32 i;

	if (draft && wild) {
		sort(rules, nr_rules, sizeof(*rules), rc_rule_compare, NULL);
		wild->rules = rules;
		wild->nr_rules = nr_rules;
		wild->memory = sizeof(*wild) + nr_rules * (u64)sizeof(*rules);
		draft->seed = get_random_u64();
		for (i = 0; i < RC_KEY_WORDS; i++)
			wild->odds[i] = get_random_u64() | 1;
		err = rc_wild_compile(wild, draft, extack);
	} else {
		kvfree(rules);
	}
	kvfree(draft);
	if (!err)
		return wild;
	if (wild)
		rc_wild_free(wild);
	return ERR_PTR(err);
}

void rc_wild_free(struct rc_wild *wild)
{
	u32 i;

	if (!wild)
		return;
	for (i = 0; i < wild->nr_shapes; i++) {
		kvfree(wild->shapes[i].heads);
		kvfree(wild->shapes[i].entries);
	}
	kvfree(wild->sieves);
	kvfree(wild->shapes);
	kvfree(wild->rules);
	kfree(wild);
}
