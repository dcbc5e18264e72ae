/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shunts: flows that a queue's consumer wants no more of (SHUNTED FLOWS in linux/ringcap.h).
 *
 * Each attachment has its own table, which only packets of its queue look up. So a consumer cannot take packets away from
 * others, whatever flows it names. Packets look up flows under RCU, without a lock. Everything else is done by processes,
 * under the table's mutex: requests of the consumer, the worker that ends idle flows, and the end of the attachment.
 * Memory is charged to the consumer that asks. A table without flows has no heads.
 *
 * A flow is an exact rule, with its key, hash and counters (exact.h). When it ends, packets may still count in it for an
 * RCU grace period. After that its counters are final, and it becomes a record for the consumer.
 *
 * Packets come here only while their cluster has shunted flows: see rc_cluster_note_shunts. In line, the look-up is under
 * the lock of rc_hold, and so is the moment in which a flow becomes shunted: see rc_shunt.held.
 */
#ifndef RC_SHUNT_H
#define RC_SHUNT_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "exact.h"
#include "packet.h"
#include "queue.h"

/**
 * struct rc_shunt - a shunted flow
 * @held: in line, packets of the flow may leave at once when no packet waits whose position is below this. Under the lock
 *	of rc_hold
 * @next: the next flow that has ended
 * @exact: key, action, idle time and counters
 */
struct rc_shunt {
	u64 held;
	struct rc_shunt *next;
	struct rc_exact exact;
};

/* Flows that have ended, in order; @last points to the link behind the last. */
struct rc_shunt_list {
	struct rc_shunt *first;
	struct rc_shunt **last;
};

/**
 * struct rc_shunts - the shunted flows of an attachment
 * @table: NULL until there is a flow
 * @nr: number of flows; read without the lock
 * @lock: for all writes
 * @queue: whose they are; holds a reference
 * @note: called without the lock when there is a first flow, and when the last has ended
 * @least_idle_s: the shortest idle time of any flow so far, 0 = none has one
 * @expire_at: the head that the worker looks at next
 * @records: flows that have ended and whose counters are final
 * @nr_records: number of flows that have ended, also those that are not in @records yet
 * @lost: flows that have ended and whose record was thrown away
 * @ended: the attachment has ended: there are no new flows
 * @ref: the queue has one, and so do requests that are under way
 */
struct rc_shunts {
	struct rc_exact_table __rcu *table;
	u32 nr;
	struct mutex lock;
	struct rc_queue *queue;
	void (*note)(struct rc_shunts *shunts);
	u32 least_idle_s;
	u32 expire_at;
	struct rc_shunt_list records;
	u32 nr_records;
	u64 lost;
	bool ended;
	struct kref ref;
	struct delayed_work expire;
	struct work_struct free;
	struct rc_exact_secret secret;
};

/* ---- packets: with bottom halves off, under RCU, as long as a flow is used ---- */

/* The shunted flow that @pkt belongs to, or NULL. */
struct rc_shunt *rc_shunt_find(const struct rc_queue *queue, struct rc_packet *pkt);

/* Whether @pkt belongs to a shunted flow of @queue, which is not in line: then it is counted. */
bool rc_shunt_takes(const struct rc_queue *queue, struct rc_packet *pkt);

#define rc_shunts_dereference(shunts, p) rcu_dereference_check(p, lockdep_is_held(&(shunts)->lock))

static __always_inline struct rc_exact *rc_shunts_find(const struct rc_shunts *shunts,
						       const struct rc_exact_table *table, const u64 *w, u32 words)
{
	u32 head = rc_exact_hash(&shunts->secret, w, words) & table->mask;
	struct rc_exact *exact = rc_shunts_dereference(shunts, table->heads[head]);

	while (exact && !rc_exact_is(exact, w, words))
		exact = rc_shunts_dereference(shunts, exact->next[table->which]);
	return exact;
}

/* The rule in the shunted flow of a packet that has been parsed, or NULL. */
static __always_inline struct rc_exact *rc_shunt_find_flow(const struct rc_queue *queue, const struct rc_frame *frame,
							   const struct rc_flow *flow)
{
	const struct rc_shunts *shunts = rcu_dereference(queue->shunts);
	const struct rc_exact_table *table = shunts ? rcu_dereference(shunts->table) : NULL;
	struct rc_exact_key key rc_uninitialized;
	u32 words;

	if (!table || !READ_ONCE(shunts->nr))
		return NULL;
	words = rc_exact_key_of_packet(frame, flow, &key);
	return words ? rc_shunts_find(shunts, table, key.w, words) : NULL;
}

/* Counts a packet of @len bytes that is not delivered because of the flow with the rule @exact. */
static __always_inline void rc_shunt_count(const struct rc_queue *queue, struct rc_exact *exact, u32 len)
{
	rc_exact_count(exact, len);
	__this_cpu_inc(queue->producers->shunted);
	__this_cpu_add(queue->producers->shunted_bytes, len);
}

/* rc_shunt_takes for a packet that was parsed as a plain one. Its address is passed to no function. */
static __always_inline bool rc_shunt_takes_plain(const struct rc_queue *queue, const struct rc_packet *pkt)
{
	const struct rc_frame frame = { .data = pkt->data, .avail = pkt->linear };
	struct rc_exact *exact = rc_shunt_find_flow(queue, &frame, &pkt->flow);

	if (exact)
		rc_shunt_count(queue, exact, pkt->len);
	return exact;
}

/* ---- the consumer ---- */

/* For an attachment; @note as in struct rc_shunts. With a reference; NULL without memory. */
struct rc_shunts *rc_shunts_create(struct rc_queue *queue, void (*note)(struct rc_shunts *shunts));
void rc_shunts_put(struct rc_shunts *shunts);

/*
 * Shunts @flow, which is valid. 1 if it was shunted before, and has the new action and idle time now; -EDQUOT, -ENOMEM,
 * -ENODEV. Sleeps.
 */
int rc_shunts_add(struct rc_shunts *shunts, const struct ringcap_exact *flow);

/* Ends @flow, and puts it on @gone, for rc_shunts_record. 1 if it is not shunted. */
int rc_shunts_remove(struct rc_shunts *shunts, const struct ringcap_exact *flow, struct rc_shunt_list *gone);

/* The flows on @gone become records, after a grace period. Sleeps. */
void rc_shunts_record(struct rc_shunts *shunts, struct rc_shunt_list *gone);

/* Fills in @state, which names a flow. 1 if that is not shunted: then its counts are zeroes. */
int rc_shunts_read(struct rc_shunts *shunts, struct ringcap_exact_state *state);

/* Takes the oldest record, or NULL. The caller frees it, or gives it back. @lost: records that were thrown away. */
struct rc_shunt *rc_shunts_take_record(struct rc_shunts *shunts, u64 *lost);
void rc_shunts_give_record(struct rc_shunts *shunts, struct rc_shunt *shunt);
void rc_shunt_free(struct rc_shunt *shunt);
void rc_shunt_state(const struct rc_shunt *shunt, struct ringcap_exact_state *state);

/* ---- under rc_chardev_lock ---- */

/* The attachment ends. */
void rc_shunts_end(struct rc_queue *queue);

/* Flows of @queue that are shunted, and those whose end no consumer was told of. */
u32 rc_shunts_count(const struct rc_queue *queue);
u64 rc_shunts_lost(const struct rc_queue *queue);

static inline void rc_shunt_list_init(struct rc_shunt_list *list)
{
	list->first = NULL;
	list->last = &list->first;
}

#endif /* RC_SHUNT_H */
