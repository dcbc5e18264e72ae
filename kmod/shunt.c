// SPDX-License-Identifier: GPL-2.0-only

#include "shunt.h"

#include <linux/netdevice.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "hold.h"
#include "packet.h"
#include "queue.h"
#include "worker.h"

#define RC_SHUNT_HEADS_MIN	1024U	/* of a table that has flows */
#define RC_SHUNT_GROWTH		8U	/* times; each growth waits for a grace period */
#define RC_SHUNT_EXPIRE_HEADS	4096U	/* looked at in one step */

static struct rc_shunt *rc_shunt(struct rc_exact *exact)
{
	return container_of(exact, struct rc_shunt, exact);
}

/* ---- packets ---- */

struct rc_shunt *rc_shunt_find(const struct rc_queue *queue, struct rc_packet *pkt)
{
	struct rc_exact *exact;
	struct rc_frame frame;

	if (!rcu_access_pointer(queue->shunts))
		return NULL;
	rc_packet_frame(pkt, &frame);
	if (!pkt->parsed) {
		rc_parse(&frame, &pkt->flow);
		pkt->parsed = RC_PARSED_OUTER;
	}
	exact = rc_shunt_find_flow(queue, &frame, &pkt->flow);
	return exact ? rc_shunt(exact) : NULL;
}

bool rc_shunt_takes(const struct rc_queue *queue, struct rc_packet *pkt)
{
	struct rc_shunt *shunt = rc_shunt_find(queue, pkt);

	if (shunt)
		rc_shunt_count(queue, &shunt->exact, pkt->len);
	return shunt;
}

/* ---- the table ---- */

static void rc_shunts_set_nr(struct rc_shunts *shunts, u32 nr)
{
	lockdep_assert_held(&shunts->lock);
	WRITE_ONCE(shunts->nr, nr);
}

static void rc_shunts_relink(const struct rc_shunts *shunts, const struct rc_exact_table *old,
			     struct rc_exact_table *new)
{
	struct rc_exact *exact;
	u32 i;

	for (i = 0; i <= old->mask; i++) {
		exact = rc_shunts_dereference(shunts, old->heads[i]);
		for (; exact; exact = rc_shunts_dereference(shunts, exact->next[old->which]))
			rc_exact_table_link(new, exact,
					    rc_exact_hash(&shunts->secret, exact->w, rc_exact_words(exact->w)));
		if (!(i % 1024))
			cond_resched();
	}
}

/* Makes room for one more flow at least. */
static int rc_shunts_grow(struct rc_shunts *shunts)
{
	struct rc_exact_table *old = rc_shunts_dereference(shunts, shunts->table), *new;
	u32 heads = old ? old->mask + 1 : 0;

	if (shunts->nr < heads || heads == RINGCAP_SHUNTS_MAX)
		return 0;
	heads = heads ? min_t(u32, heads * RC_SHUNT_GROWTH, RINGCAP_SHUNTS_MAX) : RC_SHUNT_HEADS_MIN;
	new = rc_exact_table_alloc(heads, old ? !old->which : 0);
	if (!new)
		return -ENOMEM;
	if (old)
		rc_shunts_relink(shunts, old, new);
	rcu_assign_pointer(shunts->table, new);
	if (!old)
		return 0;
	/* After this, no packet follows the links of the old table, which the next growth uses. */
	synchronize_net();
	kvfree(old);
	return 0;
}

static struct rc_shunt *rc_shunt_alloc(const struct rc_exact_key *key, u32 words, struct rc_verdict verdict)
{
	struct rc_shunt *shunt = kzalloc(sizeof(*shunt) + words * sizeof(u64), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);

	if (shunt)
		rc_exact_init(&shunt->exact, key, words, verdict);
	return shunt;
}

void rc_shunt_free(struct rc_shunt *shunt)
{
	kfree(shunt);
}

/* In line, all packets that wait now came before the flow was shunted. */
static void rc_shunts_link(struct rc_shunts *shunts, struct rc_shunt *shunt)
{
	struct rc_exact_table *table = rc_shunts_dereference(shunts, shunts->table);
	u32 hash = rc_exact_hash(&shunts->secret, shunt->exact.w, rc_exact_words(shunt->exact.w));
	struct rc_hold *hold = shunts->queue->hold;

	/* First: a packet that finds the number 0 does not look for flows. */
	rc_shunts_set_nr(shunts, shunts->nr + 1);
	if (!hold) {
		rc_exact_table_link(table, &shunt->exact, hash);
		return;
	}
	spin_lock_bh(&hold->lock);
	shunt->held = shunts->queue->lanes[0].head;
	rc_exact_table_link(table, &shunt->exact, hash);
	spin_unlock_bh(&hold->lock);
}

static void rc_shunts_unlink(struct rc_shunts *shunts, struct rc_shunt *shunt, struct rc_shunt_list *gone)
{
	struct rc_exact_table *table = rc_shunts_dereference(shunts, shunts->table);
	u32 hash = rc_exact_hash(&shunts->secret, shunt->exact.w, rc_exact_words(shunt->exact.w));
	struct rc_exact __rcu **at = &table->heads[hash & table->mask];
	struct rc_exact *it;

	while ((it = rc_shunts_dereference(shunts, *at)) != &shunt->exact)
		at = &it->next[table->which];
	rcu_assign_pointer(*at, rc_shunts_dereference(shunts, it->next[table->which]));
	rc_shunts_set_nr(shunts, shunts->nr - 1);
	shunts->nr_records++;
	shunt->next = NULL;
	*gone->last = shunt;
	gone->last = &shunt->next;
}

/* ---- records ---- */

static struct rc_shunt *rc_shunts_pop(struct rc_shunts *shunts)
{
	struct rc_shunt *shunt = shunts->records.first;

	lockdep_assert_held(&shunts->lock);
	if (!shunt)
		return NULL;
	shunts->records.first = shunt->next;
	if (!shunt->next)
		shunts->records.last = &shunts->records.first;
	shunts->nr_records--;
	return shunt;
}

static void rc_shunts_append(struct rc_shunts *shunts, const struct rc_shunt_list *gone)
{
	u32 most = max(READ_ONCE(shunts->queue->shunt_quota), 1U);

	*shunts->records.last = gone->first;
	shunts->records.last = gone->last;
	while (shunts->nr_records > most && shunts->records.first) {
		rc_shunt_free(rc_shunts_pop(shunts));
		shunts->lost++;
		cond_resched();
	}
}

void rc_shunts_record(struct rc_shunts *shunts, struct rc_shunt_list *gone)
{
	bool none;

	if (!gone->first)
		return;
	/* After this, no packet counts in them. */
	synchronize_net();
	mutex_lock(&shunts->lock);
	rc_shunts_append(shunts, gone);
	none = !shunts->nr;
	mutex_unlock(&shunts->lock);
	rc_shunt_list_init(gone);
	if (none)
		shunts->note(shunts);
}

struct rc_shunt *rc_shunts_take_record(struct rc_shunts *shunts, u64 *lost)
{
	struct rc_shunt *shunt;

	mutex_lock(&shunts->lock);
	/* At its end, the attachment has counted what it had as lost. */
	shunt = shunts->ended ? NULL : rc_shunts_pop(shunts);
	*lost = shunts->lost;
	mutex_unlock(&shunts->lock);
	return shunt;
}

void rc_shunts_give_record(struct rc_shunts *shunts, struct rc_shunt *shunt)
{
	mutex_lock(&shunts->lock);
	if (!shunts->records.first)
		shunts->records.last = &shunt->next;
	shunt->next = shunts->records.first;
	shunts->records.first = shunt;
	shunts->nr_records++;
	mutex_unlock(&shunts->lock);
}

/* ---- requests ---- */

/* The flow of a request in the table, or NULL. @key gets its key. */
static struct rc_shunt *rc_shunts_find_flow(const struct rc_shunts *shunts, const struct ringcap_exact *flow,
					    struct rc_exact_key *key, u32 *words, int *swapped)
{
	const struct rc_exact_table *table = rc_shunts_dereference(shunts, shunts->table);
	struct rc_exact *exact;

	lockdep_assert_held(&shunts->lock);
	*words = rc_exact_key_of_rule(flow, key, swapped);
	exact = table ? rc_shunts_find(shunts, table, key->w, *words) : NULL;
	return exact ? rc_shunt(exact) : NULL;
}

/* A quarter of the shortest idle time, but at least half a second and at most ten. */
static unsigned long rc_shunts_round(const struct rc_shunts *shunts)
{
	return clamp(shunts->least_idle_s * (HZ / 4UL), HZ / 2UL, 10UL * HZ);
}

static void rc_shunts_watch(struct rc_shunts *shunts, u32 idle_s)
{
	bool sooner = idle_s && (!shunts->least_idle_s || idle_s < shunts->least_idle_s);

	if (!sooner)
		return;
	shunts->least_idle_s = idle_s;
	shunts->expire_at = 0;
	rc_worker_schedule_after(&shunts->expire, rc_shunts_round(shunts));
}

static int rc_shunts_add_new(struct rc_shunts *shunts, const struct rc_exact_key *key, u32 words,
			     struct rc_verdict verdict)
{
	struct rc_shunt *shunt;

	if (shunts->nr >= READ_ONCE(shunts->queue->shunt_quota))
		return -EDQUOT;
	if (rc_shunts_grow(shunts))
		return -ENOMEM;
	shunt = rc_shunt_alloc(key, words, verdict);
	if (!shunt)
		return -ENOMEM;
	rc_shunts_link(shunts, shunt);
	return 0;
}

static int rc_shunts_add_locked(struct rc_shunts *shunts, const struct ringcap_exact *flow)
{
	struct rc_verdict verdict = { .action = flow->action, .idle_s = flow->idle_s };
	struct rc_exact_key key;
	struct rc_shunt *shunt;
	int swapped, err = 1;
	u32 words;

	if (shunts->ended)
		return -ENODEV;
	shunt = rc_shunts_find_flow(shunts, flow, &key, &words, &swapped);
	verdict.flags = swapped ? RC_EXACT_SWAPPED : 0;
	if (shunt)
		rc_exact_set_verdict(&shunt->exact, verdict);
	else
		err = rc_shunts_add_new(shunts, &key, words, verdict);
	if (err >= 0)
		rc_shunts_watch(shunts, flow->idle_s);
	return err;
}

int rc_shunts_add(struct rc_shunts *shunts, const struct ringcap_exact *flow)
{
	bool first;
	int err;

	mutex_lock(&shunts->lock);
	err = rc_shunts_add_locked(shunts, flow);
	first = !err && shunts->nr == 1;
	mutex_unlock(&shunts->lock);
	if (first)
		shunts->note(shunts);
	return err;
}

int rc_shunts_remove(struct rc_shunts *shunts, const struct ringcap_exact *flow, struct rc_shunt_list *gone)
{
	struct rc_exact_key key;
	struct rc_shunt *shunt;
	int swapped;
	u32 words;

	mutex_lock(&shunts->lock);
	shunt = shunts->ended ? NULL : rc_shunts_find_flow(shunts, flow, &key, &words, &swapped);
	if (shunt)
		rc_shunts_unlink(shunts, shunt, gone);
	mutex_unlock(&shunts->lock);
	return !shunt;
}

int rc_shunts_read(struct rc_shunts *shunts, struct ringcap_exact_state *state)
{
	struct rc_exact_key key;
	struct rc_shunt *shunt;
	int swapped;
	u32 words;

	mutex_lock(&shunts->lock);
	shunt = shunts->ended ? NULL : rc_shunts_find_flow(shunts, &state->rule, &key, &words, &swapped);
	if (shunt)
		rc_shunt_state(shunt, state);
	else
		state->counts = (struct ringcap_rule_counts){};
	mutex_unlock(&shunts->lock);
	return !shunt;
}

void rc_shunt_state(const struct rc_shunt *shunt, struct ringcap_exact_state *state)
{
	rc_exact_state(&shunt->exact, state);
	state->counts.flags = RINGCAP_COUNTS_SHUNTED;
}

/* ---- idle flows ---- */

static void rc_shunts_expire_head(struct rc_shunts *shunts, u32 head, struct rc_shunt_list *gone)
{
	const struct rc_exact_table *table = rc_shunts_dereference(shunts, shunts->table);
	struct rc_exact *exact, *next;

	for (exact = rc_shunts_dereference(shunts, table->heads[head]); exact; exact = next) {
		next = rc_shunts_dereference(shunts, exact->next[table->which]);
		if (rc_exact_is_idle(exact))
			rc_shunts_unlink(shunts, rc_shunt(exact), gone);
	}
}

/* Returns jiffies until there is more to do, 0 = nothing until there are flows. */
static unsigned long rc_shunts_expire_step(struct rc_shunts *shunts, struct rc_shunt_list *gone)
{
	const struct rc_exact_table *table = rc_shunts_dereference(shunts, shunts->table);
	u32 nr = RC_SHUNT_EXPIRE_HEADS;

	if (!shunts->nr || shunts->ended) {
		shunts->least_idle_s = 0;
		return 0;
	}
	for (; nr && shunts->expire_at <= table->mask; nr--, shunts->expire_at++) {
		rc_shunts_expire_head(shunts, shunts->expire_at, gone);
		if (!(nr % 1024))
			cond_resched();
	}
	if (shunts->expire_at <= table->mask)
		return 1;
	shunts->expire_at = 0;
	return rc_shunts_round(shunts);
}

static void rc_shunts_expire(struct work_struct *work)
{
	struct rc_shunts *shunts = container_of(work, struct rc_shunts, expire.work);
	struct rc_shunt_list gone;
	unsigned long delay;

	rc_shunt_list_init(&gone);
	mutex_lock(&shunts->lock);
	delay = rc_shunts_expire_step(shunts, &gone);
	if (delay)
		rc_worker_schedule_after(&shunts->expire, delay);
	mutex_unlock(&shunts->lock);
	rc_shunts_record(shunts, &gone);
}

/* ---- life ---- */

static void rc_shunts_free_table(struct rc_exact_table *table)
{
	struct rc_exact *exact, *next;
	u32 i;

	for (i = 0; table && i <= table->mask; i++) {
		for (exact = rcu_dereference_protected(table->heads[i], true); exact; exact = next) {
			next = rcu_dereference_protected(exact->next[table->which], true);
			rc_shunt_free(rc_shunt(exact));
		}
		if (!(i % 1024))
			cond_resched();
	}
	kvfree(table);
}

static void rc_shunts_free_records(const struct rc_shunts *shunts)
{
	struct rc_shunt *shunt, *next;

	for (shunt = shunts->records.first; shunt; shunt = next) {
		next = shunt->next;
		rc_shunt_free(shunt);
		cond_resched();
	}
}

static void rc_shunts_free_work(struct work_struct *work)
{
	struct rc_shunts *shunts = container_of(work, struct rc_shunts, free);

	/* There are no requests any more, which would start it. */
	cancel_delayed_work_sync(&shunts->expire);
	/* After this, no packet looks up flows. */
	synchronize_net();
	rc_shunts_free_table(rcu_dereference_protected(shunts->table, true));
	rc_shunts_free_records(shunts);
	rc_queue_put(shunts->queue);
	kfree(shunts);
}

struct rc_shunts *rc_shunts_create(struct rc_queue *queue, void (*note)(struct rc_shunts *shunts))
{
	struct rc_shunts *shunts = kzalloc(sizeof(*shunts), GFP_KERNEL_ACCOUNT);

	if (!shunts)
		return NULL;
	mutex_init(&shunts->lock);
	kref_init(&shunts->ref);
	rc_shunt_list_init(&shunts->records);
	INIT_DELAYED_WORK(&shunts->expire, rc_shunts_expire);
	INIT_WORK(&shunts->free, rc_shunts_free_work);
	get_random_bytes(&shunts->secret, sizeof(shunts->secret));
	shunts->note = note;
	shunts->queue = queue;
	rc_queue_get(queue);
	return shunts;
}

static void rc_shunts_release(struct kref *ref)
{
	struct rc_shunts *shunts = container_of(ref, struct rc_shunts, ref);

	rc_worker_schedule(&shunts->free);
}

void rc_shunts_put(struct rc_shunts *shunts)
{
	kref_put(&shunts->ref, rc_shunts_release);
}

/* Under rc_chardev_lock. */
static struct rc_shunts *rc_shunts_of(const struct rc_queue *queue)
{
	return rcu_dereference_protected(queue->shunts, true);
}

void rc_shunts_end(struct rc_queue *queue)
{
	struct rc_shunts *shunts = rc_shunts_of(queue);

	if (!shunts)
		return;
	mutex_lock(&shunts->lock);
	shunts->ended = true;
	/* Later there is nothing to do, and no timer must start the worker when the module is unloaded. */
	cancel_delayed_work(&shunts->expire);
	queue->shunts_lost += shunts->lost + shunts->nr + shunts->nr_records;
	mutex_unlock(&shunts->lock);
	RCU_INIT_POINTER(queue->shunts, NULL);
	rc_shunts_put(shunts);
}

u32 rc_shunts_count(const struct rc_queue *queue)
{
	const struct rc_shunts *shunts = rc_shunts_of(queue);

	return shunts ? READ_ONCE(shunts->nr) : 0;
}

u64 rc_shunts_lost(const struct rc_queue *queue)
{
	const struct rc_shunts *shunts = rc_shunts_of(queue);

	return queue->shunts_lost + (shunts ? READ_ONCE(shunts->lost) : 0);
}
