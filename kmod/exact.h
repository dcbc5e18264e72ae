/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exact rules: a hash table of flows.
 *
 * Packets look up rules under RCU, without a lock. Requests add rules, and so do softirqs that learn flows, both under
 * rc_exacts.lock. Removing a rule and growing the table also need rc_net.control, so these two exclude each other. Each
 * rule has two links, and a table uses one of them. While a table grows, its rules are in the next table as well.
 *
 * A rule takes 80 bytes (IPv4) or 104 bytes (IPv6), and its place in the table 8 to 16. A rule that a request makes is
 * charged to the memory cgroup of the requester. A rule that a softirq learns is charged to that of the process that
 * last set the ring (see rc_rules_learn). limit.h limits the number of learnt rules.
 *
 * The hash is keyed: otherwise a sender could choose flows that all have the same head. It multiplies pairs of 32 bits
 * (M. Thorup, "High speed hashing for integers and strings", 2015, section 3.5). For any two flows that a sender
 * chooses without knowing the key, the probability of equal sums is at most 2^-31. But sums are linear in the values
 * that a sender chooses, and the order in which rules are read back reveals their heads. So the sum is mixed with
 * another secret. Each set also has a key of its own, about which the order of other sets reveals nothing.
 */
#ifndef RC_EXACT_H
#define RC_EXACT_H

#include <linux/jiffies.h>
#include <linux/rcupdate.h>
#include <linux/ringcap.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "account.h"
#include "classify/rule.h"
#include "net.h"
#include "verdict.h"

#define RC_EXACT_SWAPPED	(1U << 0)	/* the rule's destination comes first in the key */
#define RC_EXACT_LEARNT		(1U << 1)
#define RC_EXACT_NO_OWNER	U32_MAX

/**
 * struct rc_exact - an exact rule
 * @next: links in the table in use and in the table that it grows into; the latter also links removed rules
 * @verdict: a struct rc_verdict as one word
 * @packets, @bytes: counted by CPU @owner, the first that the flow came to
 * @other_packets, @other_bytes: counted by other CPUs, with locked operations: a flow mostly stays on one CPU
 * @last: jiffies of the last packet, or of the rule's creation
 * @w: the key's words
 */
struct rc_exact {
	struct rc_exact __rcu *next[2];
	u64 verdict;
	u64 packets;
	u64 bytes;
	atomic64_t other_packets;
	atomic64_t other_bytes;
	u32 last;
	u32 owner;
	u64 w[];
};

/* @mask: number of heads, a power of two, less one. @which: the link of a rule that this table uses. */
struct rc_exact_table {
	u32 mask;
	u32 which;
	struct rc_exact __rcu *heads[];
};

/* The key of a set's hash: two numbers for each word of a flow's key, and one for their sum. */
struct rc_exact_secret {
	u64 word[RC_EXACT_WORDS_IPV6][2];
	u64 sum;
};

/**
 * struct rc_exacts - the exact rules of a set
 * @table: in use
 * @nr: number of rules, including those that requests have reserved room for
 * @lock: for all writes
 * @growing: the table that @table grows into
 * @grown: number of @table's heads that are in @growing already
 * @nr_ipv6: IPv6 rules among @nr
 * @nr_learnt: learnt rules among @nr, each taken from the limit of @rc_net
 * @secret: key of the hash; never changes
 */
struct rc_exacts {
	struct rc_exact_table __rcu *table;
	u32 nr;
	spinlock_t lock;
	struct rc_exact_table *growing;
	u32 grown;
	u32 nr_ipv6;
	u32 nr_learnt;
	struct rc_net *rc_net;
	struct rc_exact_secret secret;
};

int rc_exact_module_init(void);
void rc_exact_module_exit(void);

/* A table of @nr_heads, a power of two. NULL without memory, which is charged to the process. */
struct rc_exact_table *rc_exact_table_alloc(u32 nr_heads, u32 which);

/* Adds @rule with this @hash. One writer at a time. */
void rc_exact_table_link(struct rc_exact_table *table, struct rc_exact *rule, u32 hash);

int rc_exacts_init(struct rc_exacts *exacts, struct rc_net *rc_net);
/* Packets no longer see the rules. */
void rc_exacts_destroy(struct rc_exacts *exacts);
u64 rc_exacts_memory(struct rc_exacts *exacts);

/* What is wrong with the flow of @rule, which a process has made, or NULL. */
const char *rc_exact_refusal(const struct ringcap_exact *rule);

/* Makes a rule that is in no table yet. @gfp: as the context needs, a softirq or a request. */
struct rc_exact *rc_exact_alloc(const struct rc_exact_key *key, u32 words, struct rc_verdict verdict, gfp_t gfp);
/* The same in memory of the caller, which is zeroed and has room for @words. */
void rc_exact_init(struct rc_exact *rule, const struct rc_exact_key *key, u32 words, struct rc_verdict verdict);
void rc_exact_set_verdict(struct rc_exact *rule, struct rc_verdict verdict);
void rc_exact_free(struct rc_exact *rule);
/* Frees a list of rules that are in no table, linked by next[0]. */
void rc_exact_free_list(struct rc_exact *list);

/* Reserves room for @nr more rules; false if there is none. Room that is not used must be given back. */
bool rc_exacts_reserve(struct rc_exacts *exacts, u32 nr);
void rc_exacts_unreserve(struct rc_exacts *exacts, u32 nr);

/*
 * Adds @rule, for which room is reserved. If the flow already has a rule, that rule gets the verdict of @rule, and
 * @rule is freed. Under rc_net.control.
 */
void rc_exacts_put(struct rc_exacts *exacts, struct rc_exact *rule);

/* Adds a learnt rule unless the flow has one. False without room or memory, or at a limit. In a softirq. */
bool rc_exacts_learn(struct rc_exacts *exacts, const struct rc_exact_key *key, u32 words, u32 idle_s);

/* Whether there is more than one rule per head. */
bool rc_exacts_crowded(struct rc_exacts *exacts);

/*
 * Makes the table large enough for @nr rules. On -ENOMEM nothing has changed. @live: packets look up rules in it. Under
 * rc_net.control.
 */
int rc_exacts_grow(struct rc_exacts *exacts, u32 nr, bool live);

/*
 * Removes a rule and puts it on the list @gone. Packets may see it for another RCU grace period. After that the caller
 * frees the list with rc_exacts_free_gone. Under rc_net.control.
 */
void rc_exacts_take(struct rc_exacts *exacts, struct rc_exact *rule, struct rc_exact **gone);
void rc_exacts_free_gone(struct rc_exacts *exacts, struct rc_exact *gone);

/*
 * Removes rules that were idle for too long from @nr heads, beginning at *@at. Returns their number. Advances *@at,
 * which becomes 0 behind the last head.
 */
u32 rc_exacts_expire(struct rc_exacts *exacts, u32 *at, u32 nr, struct rc_exact **gone);

/* Whether no packet has come for as long as the rule's idle time. */
bool rc_exact_is_idle(const struct rc_exact *rule);

void rc_exact_state(const struct rc_exact *rule, struct ringcap_exact_state *state);

#define rc_exacts_dereference(exacts, p) \
	rcu_dereference_check(p, lockdep_is_held(&(exacts)->lock) || rc_net_held((exacts)->rc_net))

static __always_inline struct rc_verdict rc_exact_verdict(const struct rc_exact *rule)
{
	union { u64 word; struct rc_verdict verdict; } both = { .word = READ_ONCE(rule->verdict) };

	return both.verdict;
}

static __always_inline u64 rc_exact_hash_word(u64 w, const u64 secret[2])
{
	return ((w >> 32) + secret[0]) * ((u32)w + secret[1]);
}

static __always_inline u32 rc_exact_hash(const struct rc_exact_secret *secret, const u64 *w, u32 words)
{
	u64 sum = rc_exact_hash_word(w[0], secret->word[0]) + rc_exact_hash_word(w[1], secret->word[1]);
	u32 i;

	for (i = RC_EXACT_WORDS_IPV4; i < words; i++)
		sum += rc_exact_hash_word(w[i], secret->word[i]);
	return rc_mix(sum ^ secret->sum) >> 32;
}

static __always_inline u32 rc_exact_words(const u64 *w)
{
	return w[0] >> 60 ? RC_EXACT_WORDS_IPV6 : RC_EXACT_WORDS_IPV4;
}

/* The first word contains the kind of the key, which determines its length. */
static __always_inline bool rc_exact_is(const struct rc_exact *rule, const u64 *w, u32 words)
{
	if (rule->w[0] != w[0] || rule->w[1] != w[1])
		return false;
	return words == RC_EXACT_WORDS_IPV4 || !memcmp(rule->w + 2, w + 2, (words - 2) * sizeof(*w));
}

/* Under RCU, rc_exacts.lock or rc_net.control. */
static __always_inline struct rc_exact *rc_exacts_find(const struct rc_exacts *exacts, const u64 *w, u32 words)
{
	const struct rc_exact_table *table = rc_exacts_dereference(exacts, exacts->table);
	u32 head = rc_exact_hash(&exacts->secret, w, words) & table->mask;
	struct rc_exact *rule = rc_exacts_dereference(exacts, table->heads[head]);

	while (rule && !rc_exact_is(rule, w, words))
		rule = rc_exacts_dereference(exacts, rule->next[table->which]);
	return rule;
}

/* Counts a packet of @len bytes. Bottom halves off: one CPU at a time is the owner, and nothing interrupts it. */
static __always_inline void rc_exact_count(struct rc_exact *rule, u32 len)
{
	u32 cpu = smp_processor_id(), owner = READ_ONCE(rule->owner), now = (u32)jiffies;

	if (unlikely(owner == RC_EXACT_NO_OWNER)) {
		owner = cmpxchg(&rule->owner, RC_EXACT_NO_OWNER, cpu);
		if (owner == RC_EXACT_NO_OWNER)
			owner = cpu;
	}
	if (likely(owner == cpu)) {
		rc_account_add(rule->packets, 1);
		rc_account_add(rule->bytes, len);
	} else {
		atomic64_inc(&rule->other_packets);
		atomic64_add(len, &rule->other_bytes);
	}
	if (READ_ONCE(rule->last) != now)
		WRITE_ONCE(rule->last, now);
}

#endif /* RC_EXACT_H */
