// SPDX-License-Identifier: GPL-2.0-only

#include "exact.h"

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>

#define RC_EXACT_HEADS_MIN	16U

static struct kmem_cache *rc_exact_cache_ipv4, *rc_exact_cache_ipv6;

int rc_exact_module_init(void)
{
	BUILD_BUG_ON(sizeof(struct rc_verdict) != sizeof(u64));
	rc_exact_cache_ipv4 = kmem_cache_create("ringcap_exact_ipv4",
						sizeof(struct rc_exact) + RC_EXACT_WORDS_IPV4 * sizeof(u64), 8,
						SLAB_ACCOUNT, NULL);
	rc_exact_cache_ipv6 = kmem_cache_create("ringcap_exact_ipv6",
						sizeof(struct rc_exact) + RC_EXACT_WORDS_IPV6 * sizeof(u64), 8,
						SLAB_ACCOUNT, NULL);
	if (rc_exact_cache_ipv4 && rc_exact_cache_ipv6)
		return 0;
	rc_exact_module_exit();
	return -ENOMEM;
}

void rc_exact_module_exit(void)
{
	kmem_cache_destroy(rc_exact_cache_ipv4);
	kmem_cache_destroy(rc_exact_cache_ipv6);
}

/* ---- rules ---- */

const char *rc_exact_refusal(const struct ringcap_exact *rule)
{
	static const u8 zeroes[12];

	if (rule->l3_proto != RC_ETH_P_IPV4 && rule->l3_proto != RC_ETH_P_IPV6)
		return "RINGCAP_A_EXACT: l3_proto is 0x0800 or 0x86dd";
	if (rule->l3_proto == RC_ETH_P_IPV4 && (memcmp(rule->saddr + 4, zeroes, sizeof(zeroes)) ||
						memcmp(rule->daddr + 4, zeroes, sizeof(zeroes))))
		return "RINGCAP_A_EXACT: an IPv4 address is 4 bytes, the other 12 are 0";
	if (rule->vlan_id > 0xfff)
		return "RINGCAP_A_EXACT: a VLAN id is 0 (untagged) to 4095";
	if ((rule->sport || rule->dport) && !rc_proto_has_ports(rule->l4_proto))
		return "RINGCAP_A_EXACT: only TCP, UDP and SCTP have ports: for other protocols they have to be 0";
	return NULL;
}

void rc_exact_set_verdict(struct rc_exact *rule, struct rc_verdict verdict)
{
	union { struct rc_verdict verdict; u64 word; } both = { .verdict = verdict };

	WRITE_ONCE(rule->verdict, both.word);
}

static struct kmem_cache *rc_exact_cache(u32 words)
{
	return words == RC_EXACT_WORDS_IPV4 ? rc_exact_cache_ipv4 : rc_exact_cache_ipv6;
}

void rc_exact_init(struct rc_exact *rule, const struct rc_exact_key *key, u32 words, struct rc_verdict verdict)
{
	memcpy(rule->w, key->w, words * sizeof(*rule->w));
	rc_exact_set_verdict(rule, verdict);
	rule->last = (u32)jiffies;
	rule->owner = RC_EXACT_NO_OWNER;
}

struct rc_exact *rc_exact_alloc(const struct rc_exact_key *key, u32 words, struct rc_verdict verdict, gfp_t gfp)
{
	struct rc_exact *rule = kmem_cache_zalloc(rc_exact_cache(words), gfp);

	if (rule)
		rc_exact_init(rule, key, words, verdict);
	return rule;
}

void rc_exact_free(struct rc_exact *rule)
{
	kmem_cache_free(rc_exact_cache(rc_exact_words(rule->w)), rule);
}

static void rc_exact_free_by(struct rc_exact *list, u32 which)
{
	struct rc_exact *next;

	for (; list; list = next) {
		next = rcu_dereference_protected(list->next[which], true);
		rc_exact_free(list);
		cond_resched();
	}
}

void rc_exact_free_list(struct rc_exact *list)
{
	rc_exact_free_by(list, 0);
}

void rc_exact_state(const struct rc_exact *rule, struct ringcap_exact_state *state)
{
	struct rc_verdict verdict = rc_exact_verdict(rule);

	rc_exact_rule_of_key(rule->w, verdict.flags & RC_EXACT_SWAPPED, &state->rule);
	state->rule.action = verdict.action;
	state->rule.target = verdict.target;
	state->rule.idle_s = verdict.idle_s;
	state->counts = (struct ringcap_rule_counts){
		.packets = READ_ONCE(rule->packets) + atomic64_read(&rule->other_packets),
		.bytes = READ_ONCE(rule->bytes) + atomic64_read(&rule->other_bytes),
		.idle_ms = jiffies_to_msecs(rc_account_idle(&rule->last)),
		.flags = verdict.flags & RC_EXACT_LEARNT ? RINGCAP_COUNTS_LEARNT : 0,
	};
}

/* ---- the table ---- */

/* Packets do not look up the rules yet, or no longer do, or the lock is held. */
#define rc_exacts_protected(exacts, p) rcu_dereference_protected(p, true)

struct rc_exact_table *rc_exact_table_alloc(u32 nr_heads, u32 which)
{
	struct rc_exact_table *table;

	/* Learning from packets makes the table grow: no process of the memory cgroup must be killed for that. */
	table = kvzalloc(struct_size(table, heads, nr_heads), GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!table)
		return NULL;
	table->mask = nr_heads - 1;
	table->which = which;
	return table;
}

int rc_exacts_init(struct rc_exacts *exacts, struct rc_net *rc_net)
{
	struct rc_exact_table *table = rc_exact_table_alloc(RC_EXACT_HEADS_MIN, 0);

	exacts->rc_net = rc_net;
	if (!table)
		return -ENOMEM;
	get_random_bytes(&exacts->secret, sizeof(exacts->secret));
	spin_lock_init(&exacts->lock);
	rcu_assign_pointer(exacts->table, table);
	return 0;
}

void rc_exacts_destroy(struct rc_exacts *exacts)
{
	struct rc_exact_table *table = rc_exacts_protected(exacts, exacts->table);
	u32 i;

	if (!table)
		return;
	for (i = 0; i <= table->mask; i++) {
		rc_exact_free_by(rc_exacts_protected(exacts, table->heads[i]), table->which);
		if (!(i % 1024))
			cond_resched();
	}
	kvfree(table);
	rc_limit_give(&exacts->rc_net->limited, RC_LIMIT_LEARNT, exacts->nr_learnt);
}

u64 rc_exacts_memory(struct rc_exacts *exacts)
{
	struct rc_exact_table *table = rc_exacts_dereference(exacts, exacts->table);
	u32 nr = READ_ONCE(exacts->nr), nr_ipv6 = min(READ_ONCE(exacts->nr_ipv6), nr);

	return struct_size(table, heads, (size_t)table->mask + 1) + (u64)nr * sizeof(struct rc_exact) +
	       ((u64)(nr - nr_ipv6) * RC_EXACT_WORDS_IPV4 + (u64)nr_ipv6 * RC_EXACT_WORDS_IPV6) * sizeof(u64);
}

bool rc_exacts_reserve(struct rc_exacts *exacts, u32 nr)
{
	bool room;

	spin_lock_bh(&exacts->lock);
	room = nr <= RINGCAP_EXACT_MAX - exacts->nr;
	if (room)
		WRITE_ONCE(exacts->nr, exacts->nr + nr);
	spin_unlock_bh(&exacts->lock);
	return room;
}

void rc_exacts_unreserve(struct rc_exacts *exacts, u32 nr)
{
	spin_lock_bh(&exacts->lock);
	WRITE_ONCE(exacts->nr, exacts->nr - nr);
	spin_unlock_bh(&exacts->lock);
}

void rc_exact_table_link(struct rc_exact_table *table, struct rc_exact *rule, u32 hash)
{
	struct rc_exact __rcu **head = &table->heads[hash & table->mask];

	RCU_INIT_POINTER(rule->next[table->which], rcu_dereference_protected(*head, true));
	rcu_assign_pointer(*head, rule);
}

/* Adds @rule to the tables. Under the lock. The flow has no rule. */
static void rc_exacts_link(struct rc_exacts *exacts, struct rc_exact *rule)
{
	struct rc_exact_table *table = rc_exacts_protected(exacts, exacts->table);
	u32 words = rc_exact_words(rule->w), hash = rc_exact_hash(&exacts->secret, rule->w, words);

	lockdep_assert_held(&exacts->lock);
	if (exacts->growing && (hash & table->mask) < exacts->grown)
		rc_exact_table_link(exacts->growing, rule, hash);
	rc_exact_table_link(table, rule, hash);
	exacts->nr_ipv6 += words == RC_EXACT_WORDS_IPV6;
}

/* Under the lock. If @rule was learnt, it no longer counts as learnt: it is removed, or a request takes it over. */
static void rc_exacts_unlearn(struct rc_exacts *exacts, const struct rc_exact *rule)
{
	lockdep_assert_held(&exacts->lock);
	if (!(rc_exact_verdict(rule).flags & RC_EXACT_LEARNT))
		return;
	exacts->nr_learnt--;
	rc_limit_give(&exacts->rc_net->limited, RC_LIMIT_LEARNT, 1);
}

void rc_exacts_put(struct rc_exacts *exacts, struct rc_exact *rule)
{
	struct rc_exact *old;

	lockdep_assert_held(&exacts->rc_net->control);
	spin_lock_bh(&exacts->lock);
	old = rc_exacts_find(exacts, rule->w, rc_exact_words(rule->w));
	if (old) {
		rc_exacts_unlearn(exacts, old);
		rc_exact_set_verdict(old, rc_exact_verdict(rule));
		WRITE_ONCE(exacts->nr, exacts->nr - 1);
	} else {
		rc_exacts_link(exacts, rule);
	}
	spin_unlock_bh(&exacts->lock);
	if (old)
		rc_exact_free(rule);
}

/*
 * A learnt rule, or NULL. It takes only memory that the machine can spare: GFP_ATOMIC would exceed the limits of memory
 * cgroups.
 */
static struct rc_exact *rc_exact_alloc_learnt(struct rc_exacts *exacts, const struct rc_exact_key *key, u32 words,
					      u32 idle_s)
{
	struct rc_verdict verdict = {
		.action = RINGCAP_ACTION_PASS, .flags = RC_EXACT_LEARNT, .idle_s = idle_s,
	};
	struct rc_limited *limited = &exacts->rc_net->limited;
	struct rc_exact *rule;

	if (READ_ONCE(exacts->nr) >= RINGCAP_EXACT_MAX || rc_limit_seems_reached(limited, RC_LIMIT_LEARNT) ||
	    rc_limit_take(limited, RC_LIMIT_LEARNT))
		return NULL;
	rule = rc_exact_alloc(key, words, verdict, GFP_NOWAIT | __GFP_NOWARN);
	if (!rule)
		rc_limit_give(limited, RC_LIMIT_LEARNT, 1);
	return rule;
}

bool rc_exacts_learn(struct rc_exacts *exacts, const struct rc_exact_key *key, u32 words, u32 idle_s)
{
	struct rc_exact *rule = rc_exact_alloc_learnt(exacts, key, words, idle_s);
	bool known, room;

	/* While no rule can be learnt, a flood of new flows takes no lock. */
	if (unlikely(!rule))
		return rc_exacts_find(exacts, key->w, words);
	spin_lock(&exacts->lock);
	known = rc_exacts_find(exacts, key->w, words);
	room = !known && exacts->nr < RINGCAP_EXACT_MAX;
	if (room) {
		rc_exacts_link(exacts, rule);
		WRITE_ONCE(exacts->nr, exacts->nr + 1);
		exacts->nr_learnt++;
	}
	spin_unlock(&exacts->lock);
	if (!room) {
		rc_exact_free(rule);
		rc_limit_give(&exacts->rc_net->limited, RC_LIMIT_LEARNT, 1);
	}
	return room || known;
}

bool rc_exacts_crowded(struct rc_exacts *exacts)
{
	return READ_ONCE(exacts->nr) > rc_exacts_dereference(exacts, exacts->table)->mask + 1;
}

/* Links the rules of one head in the new table too. */
static void rc_exacts_grow_head(struct rc_exacts *exacts, struct rc_exact_table *from, u32 head)
{
	struct rc_exact *rule;

	spin_lock_bh(&exacts->lock);
	rule = rc_exacts_protected(exacts, from->heads[head]);
	for (; rule; rule = rc_exacts_protected(exacts, rule->next[from->which]))
		rc_exact_table_link(exacts->growing, rule,
				    rc_exact_hash(&exacts->secret, rule->w, rc_exact_words(rule->w)));
	exacts->grown = head + 1;
	spin_unlock_bh(&exacts->lock);
}

int rc_exacts_grow(struct rc_exacts *exacts, u32 nr, bool live)
{
	struct rc_exact_table *old = rc_exacts_dereference(exacts, exacts->table), *new;
	u32 i;

	lockdep_assert_held(&exacts->rc_net->control);
	nr = min_t(u32, nr, RINGCAP_EXACT_MAX);
	if (nr <= old->mask + 1)
		return 0;
	new = rc_exact_table_alloc(roundup_pow_of_two(nr), !old->which);
	if (!new)
		return -ENOMEM;
	spin_lock_bh(&exacts->lock);
	exacts->growing = new;
	exacts->grown = 0;
	spin_unlock_bh(&exacts->lock);
	for (i = 0; i <= old->mask; i++) {
		rc_exacts_grow_head(exacts, old, i);
		if (!(i % 1024))
			cond_resched();
	}
	spin_lock_bh(&exacts->lock);
	rcu_assign_pointer(exacts->table, new);
	exacts->growing = NULL;
	spin_unlock_bh(&exacts->lock);
	if (live)
		synchronize_net();
	kvfree(old);
	return 0;
}

void rc_exacts_take(struct rc_exacts *exacts, struct rc_exact *rule, struct rc_exact **gone)
{
	struct rc_exact_table *table = rc_exacts_dereference(exacts, exacts->table);
	u32 words = rc_exact_words(rule->w), which = table->which;
	struct rc_exact __rcu **at = &table->heads[rc_exact_hash(&exacts->secret, rule->w, words) & table->mask];
	struct rc_exact *it;

	lockdep_assert_held(&exacts->rc_net->control);
	spin_lock_bh(&exacts->lock);
	while ((it = rc_exacts_protected(exacts, *at)) != rule)
		at = &it->next[which];
	rcu_assign_pointer(*at, rc_exacts_protected(exacts, rule->next[which]));
	WRITE_ONCE(exacts->nr, exacts->nr - 1);
	exacts->nr_ipv6 -= words == RC_EXACT_WORDS_IPV6;
	rc_exacts_unlearn(exacts, rule);
	spin_unlock_bh(&exacts->lock);
	/* A reader that is at the rule continues along the link of the table in use. */
	RCU_INIT_POINTER(rule->next[!which], *gone);
	*gone = rule;
}

void rc_exacts_free_gone(struct rc_exacts *exacts, struct rc_exact *gone)
{
	rc_exact_free_by(gone, !rc_exacts_dereference(exacts, exacts->table)->which);
}

bool rc_exact_is_idle(const struct rc_exact *rule)
{
	u32 idle_s = rc_exact_verdict(rule).idle_s;

	return idle_s && rc_account_idle(&rule->last) >= idle_s * HZ;
}

u32 rc_exacts_expire(struct rc_exacts *exacts, u32 *at, u32 nr, struct rc_exact **gone)
{
	struct rc_exact_table *table = rc_exacts_dereference(exacts, exacts->table);
	struct rc_exact *rule, *next;
	u32 count = 0;

	/* Only this loop removes rules meanwhile, and new rules are added only at the head of a list. */
	for (; nr && *at <= table->mask; nr--, ++*at) {
		for (rule = rc_exacts_dereference(exacts, table->heads[*at]); rule; rule = next) {
			next = rc_exacts_dereference(exacts, rule->next[table->which]);
			if (rc_exact_is_idle(rule)) {
				rc_exacts_take(exacts, rule, gone);
				count++;
			}
		}
		if (!(nr % 1024))
			cond_resched();
	}
	if (*at > table->mask)
		*at = 0;
	return count;
}
