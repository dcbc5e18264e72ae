// SPDX-License-Identifier: GPL-2.0-only

#include "wild.h"

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/netlink.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>

#define RC_WILD_MATCHES_MAX	(1U << 20)	/* of a ring's rules together: ranges of ports are many */

/* What of a rule rc_key_add_inner is for. */
#define RC_MATCH_INSIDE	(RINGCAP_MATCH_TUNNEL_ID | RINGCAP_MATCH_INNER_SADDR | RINGCAP_MATCH_INNER_DADDR)

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

/* The sum over all CPUs; @idle: jiffies since the last packet of any, or since the rule was made. */
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

	/* Of a rule that learns what it learnt goes. */
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

/* Calls @fn for all that @rule matches, until it fails. */
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
 * Shapes while it is found out how large they are. @cursor: the shape of the last match: mostly the next one's too.
 * @slots: by the mask's hash: the shape's number plus 1, or 0; in the next one where that is another's.
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
};

/* Where the mask's shape is noted, or is to be. */
static u16 *rc_draft_slot(struct rc_draft *draft, const struct rc_key *mask)
{
	u64 hash = draft->seed;
	u32 i;

	/* Most words of a mask are empty. */
	for (i = 0; i < RC_KEY_WORDS; i++)
		if (mask->w[i])
			hash = rc_wild_mix(hash, mask->w[i] ^ i);
	for (i = rc_mix(hash) % RC_DRAFT_SLOTS; draft->slots[i]; i = (i + 1) % RC_DRAFT_SLOTS)
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

/* First pass: which shapes there are. Rules come by rank, so shapes do by the best of theirs. */
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

static u64 rc_shape_hash(const struct rc_shape *shape, u64 seed, const struct rc_key *value)
{
	u32 i;

	for (i = 0; i < shape->nr_words; i++)
		seed = rc_wild_mix(seed, value->w[shape->words[i]]);
	return rc_mix(seed);
}

/* Second pass: how many have each hash. heads[h + 2], so that the third pass leaves heads[h] at the first of them. */
static int rc_draft_tally(void *arg, u32 rank, const struct rc_match *match)
{
	struct rc_draft *draft = arg;
	struct rc_shape *shape = &draft->shapes[rc_draft_find(draft, &match->mask)];

	shape->heads[(rc_shape_hash(shape, draft->seed, &match->value) & shape->mask_heads) + 2]++;
	return 0;
}

/* Third pass. */
static int rc_draft_place(void *arg, u32 rank, const struct rc_match *match)
{
	struct rc_draft *draft = arg;
	struct rc_shape *shape = &draft->shapes[rc_draft_find(draft, &match->mask)];
	u64 hash = rc_shape_hash(shape, draft->seed, &match->value);
	u32 at = shape->heads[(hash & shape->mask_heads) + 1]++, i;
	u64 *entry = shape->entries + (size_t)at * (1 + shape->nr_words);

	entry[0] = hash >> 32 << 32 | rank;
	for (i = 0; i < shape->nr_words; i++)
		entry[1 + i] = match->value.w[shape->words[i]];
	return 0;
}

static int rc_draft_pass(struct rc_draft *draft, const struct rc_wild *wild, rc_match_fn fn)
{
	u32 rank;
	int err = 0;

	for (rank = 0; rank < wild->nr_rules && !err; rank++) {
		err = rc_rule_each_match(&wild->rules[rank]->rule, rank, fn, draft);
		/* One may have 1,800 of them. */
		cond_resched();
	}
	return err;
}

static void rc_shape_set_mask(struct rc_shape *shape, const struct rc_key *mask)
{
	u32 i;

	shape->has = (u16)mask->w[0];
	for (i = 0; i < RC_KEY_WORDS; i++) {
		if (!mask->w[i])
			continue;
		shape->words[shape->nr_words] = i;
		shape->masks[shape->nr_words++] = mask->w[i];
	}
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
		u32 nr = draft->of[i].nr, nr_heads = roundup_pow_of_two(nr);

		rc_shape_set_mask(shape, &draft->of[i].mask);
		shape->best = draft->of[i].best;
		shape->mask_heads = nr_heads - 1;
		shape->heads = kvcalloc(nr_heads + 2, sizeof(*shape->heads), GFP_KERNEL_ACCOUNT);
		shape->entries = kvcalloc(nr, (1 + shape->nr_words) * sizeof(u64), GFP_KERNEL_ACCOUNT);
		if (!shape->heads || !shape->entries)
			return -ENOMEM;
		wild->memory += sizeof(*shape) + (nr_heads + 2) * sizeof(*shape->heads) +
				(u64)nr * (1 + shape->nr_words) * sizeof(u64);
	}
	return 0;
}

static void rc_shape_sum_heads(struct rc_shape *shape)
{
	u32 i;

	for (i = 1; i <= shape->mask_heads + 2; i++) {
		shape->heads[i] += shape->heads[i - 1];
		if (!(i % 4096))
			cond_resched();
	}
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
	for (i = 0; i < wild->nr_rules; i++)
		wild->inner |= !!(wild->rules[i]->rule.fields & RC_MATCH_INSIDE);
	err = rc_wild_alloc_shapes(wild, draft);
	if (err)
		return err;
	draft->shapes = wild->shapes;
	rc_draft_pass(draft, wild, rc_draft_tally);
	for (i = 0; i < wild->nr_shapes; i++)
		rc_shape_sum_heads(&wild->shapes[i]);
	rc_draft_pass(draft, wild, rc_draft_place);
	return 0;
}

/* Which rule goes first. Sorting 65536 takes its time, so others get in between here. */
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

	if (draft && wild) {
		sort(rules, nr_rules, sizeof(*rules), rc_rule_compare, NULL);
		wild->rules = rules;
		wild->nr_rules = nr_rules;
		wild->memory = sizeof(*wild) + nr_rules * (u64)sizeof(*rules);
		wild->seed = draft->seed = get_random_u64();
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
	kvfree(wild->shapes);
	kvfree(wild->rules);
	kfree(wild);
}
