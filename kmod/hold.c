// SPDX-License-Identifier: GPL-2.0-only

#include "hold.h"

#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/netdevice.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "forward.h"
#include "queue.h"
#include "shunt.h"
#include "worker.h"

#define RC_HOLD_SHIFT	6	/* log2 of the bytes of the shortest slot */

/* In the cb of a packet that waits. @in: by which it came, NULL when that has gone. @since: jiffies. */
struct rc_held {
	u64 position;
	struct net_device *out;
	struct net_device *in;
	u32 since;
};

static LIST_HEAD(rc_hold_list);
static DEFINE_SPINLOCK(rc_hold_list_lock);	/* taken before the lock of a hold */

static struct rc_held *rc_held(const struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct rc_held) > sizeof(skb->cb));
	return (struct rc_held *)skb->cb;
}

static struct rc_lane *rc_hold_lane(const struct rc_hold *hold)
{
	return &hold->queue->lanes[0];
}

static struct sk_buff **rc_hold_entry(const struct rc_hold *hold, u64 position)
{
	return &hold->index[(position & rc_hold_lane(hold)->mask) >> RC_HOLD_SHIFT];
}

static void rc_hold_count(struct rc_hold *hold, u32 stat)
{
	rc_account_add(hold->stats[stat], 1);
}

/* ---- packets that wait ---- */

static void rc_hold_arm(struct rc_hold *hold)
{
	if (hold->armed)
		return;
	hold->armed = true;
	hrtimer_start(&hold->timer, ms_to_ktime(READ_ONCE(hold->hung_ms)), HRTIMER_MODE_REL_SOFT);
}

/* Sets the interface that @skb came by aside: nothing of it may be used when the packet leaves. */
static void rc_hold_add(struct rc_hold *hold, struct sk_buff *skb, u64 position, struct net_device *out)
{
	struct net_device *in = skb->dev;

	rc_forward_prepare(skb);
	*rc_held(skb) = (struct rc_held){ .position = position, .out = out, .in = in, .since = jiffies };
	__skb_queue_tail(&hold->waiting, skb);
	hold->memory += skb->truesize;
	*rc_hold_entry(hold, position) = skb;
	rc_hold_arm(hold);
}

static struct sk_buff *rc_hold_find(const struct rc_hold *hold, u64 position)
{
	struct sk_buff *skb = *rc_hold_entry(hold, position);

	return skb && rc_held(skb)->position == position ? skb : NULL;
}

/* @skb waits no longer. Returns the device that it is to leave by. */
static struct net_device *rc_hold_remove(struct rc_hold *hold, struct sk_buff *skb)
{
	*rc_hold_entry(hold, rc_held(skb)->position) = NULL;
	__skb_unlink(skb, &hold->waiting);
	hold->memory -= skb->truesize;
	return rc_held(skb)->out;
}

static void rc_hold_drop(struct rc_hold *hold, struct sk_buff *skb, u32 stat)
{
	rc_hold_count(hold, stat);
	kfree_skb(skb);
}

/* @stat: what is counted if it leaves. */
static void rc_hold_send(struct rc_hold *hold, struct sk_buff *skb, struct net_device *out, u32 stat)
{
	int loss = rc_forward_send(out, skb);

	rc_hold_count(hold, loss ?: stat);
}

/* Drops the packets whose place in the lane is needed up to position @end, less the lane's size. */
static void rc_hold_drop_unanswered(struct rc_hold *hold, u64 end)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&hold->waiting)) && rc_held(skb)->position + rc_lane_size(rc_hold_lane(hold)) < end) {
		rc_hold_remove(hold, skb);
		rc_hold_drop(hold, skb, RINGCAP_INLINE_UNANSWERED);
	}
}

/* ---- events ---- */

static void rc_hold_tell(struct rc_hold *hold)
{
	rc_queue_get(hold->queue);
	if (!rc_worker_schedule(&hold->work))
		rc_queue_put(hold->queue);
}

static bool rc_hold_is_open(const struct rc_hold *hold, enum ringcap_past event)
{
	return READ_ONCE(hold->open) & (1U << event);
}

/* @skb, which does not wait, goes past the consumer, or is dropped. */
static void rc_hold_let_past(struct rc_hold *hold, struct sk_buff *skb, struct net_device *out, enum ringcap_past event)
{
	hold->now.packets++;
	if (rc_hold_is_open(hold, event))
		rc_hold_send(hold, skb, out, RINGCAP_INLINE_BYPASS_UNATTENDED + event);
	else
		rc_hold_drop(hold, skb, RINGCAP_INLINE_BLOCK_UNATTENDED + event);
}

/* From here on, packets go past the consumer. Those that wait are the first. */
static void rc_hold_go_past(struct rc_hold *hold, enum ringcap_past event)
{
	struct net_device *out;
	struct sk_buff *skb;

	if (!hold->past) {
		hold->past = true;
		hold->since = ktime_get_ns();
		hold->now = (struct rc_hold_episode){};
		rc_hold_count(hold, RINGCAP_INLINE_BYPASSES);
		rc_hold_tell(hold);
	}
	hold->now.event = event;
	hold->taken = rc_hold_lane(hold)->head;
	/* A consumer that was woken and did not ask is not woken by packets: see rc_lane_wake. */
	rc_waiter_wake(&hold->queue->waiter);
	while ((skb = skb_peek(&hold->waiting))) {
		out = rc_hold_remove(hold, skb);
		rc_hold_let_past(hold, skb, out, event);
	}
}

static void rc_hold_come_back(struct rc_hold *hold)
{
	u64 ms = div_u64(ktime_get_ns() - hold->since, NSEC_PER_MSEC);

	hold->past = false;
	rc_account_add(hold->stats[RINGCAP_INLINE_BYPASS_MS], ms);
	/* If listeners were not told of the last time yet, they are told of both together. */
	hold->now.ms = ms + (hold->ended ? hold->last.ms : 0);
	hold->now.packets += hold->ended ? hold->last.packets : 0;
	hold->last = hold->now;
	hold->ended = true;
	rc_hold_tell(hold);
}

/* Whether the consumer has released everything. The publisher looks at what it has released, too. */
static bool rc_hold_is_empty(const struct rc_hold *hold)
{
	struct rc_lane *lane = rc_hold_lane(hold);
	bool empty;

	spin_lock(&lane->lock);
	rc_lane_refresh_released(lane);
	empty = lane->released == lane->head;
	spin_unlock(&lane->lock);
	return empty;
}

static void rc_hold_try_back(struct rc_hold *hold)
{
	if (unlikely(hold->past) && READ_ONCE(hold->queue->attended) && rc_hold_is_empty(hold))
		rc_hold_come_back(hold);
}

static enum hrtimer_restart rc_hold_timeout(struct hrtimer *timer)
{
	struct rc_hold *hold = container_of(timer, struct rc_hold, timer);
	u32 bound, age;
	const struct sk_buff *oldest;

	spin_lock(&hold->lock);
	bound = max(msecs_to_jiffies(READ_ONCE(hold->hung_ms)), 1UL);
	oldest = skb_peek(&hold->waiting);
	age = oldest ? (u32)jiffies - rc_held(oldest)->since : 0;
	if (oldest && age >= bound)
		rc_hold_go_past(hold, RINGCAP_PAST_HUNG);
	hold->armed = oldest && age < bound;
	/* Not by its return value: rc_hold_configure may have started it meanwhile. */
	if (hold->armed)
		hrtimer_start(timer, ms_to_ktime(jiffies_to_msecs(bound - age)), HRTIMER_MODE_REL_SOFT);
	spin_unlock(&hold->lock);
	return HRTIMER_NORESTART;
}

/* ---- packets that come ---- */

enum rc_hold_offer {
	RC_HOLD_TAKEN,
	RC_HOLD_UNREADABLE,
	RC_HOLD_UNATTENDED,
	RC_HOLD_FULL,
};

/* Only the beginning of a packet may be in the lane, and all of it waits. */
static bool rc_hold_has_memory(const struct rc_hold *hold, const struct sk_buff *skb)
{
	return hold->memory + skb->truesize <= (u64)rc_lane_size(rc_hold_lane(hold)) * RC_HOLD_MEMORY;
}

static enum rc_hold_offer rc_hold_put(struct rc_hold *hold, struct rc_lane *lane, struct rc_packet *pkt, u64 *position)
{
	int snaplen = rc_lane_snaplen(lane);
	u32 size;

	if (snaplen == RC_LANE_UNATTENDED)
		return RC_HOLD_UNATTENDED;
	size = rc_lane_slot_size(pkt, snaplen);
	if (!rc_lane_has_room(lane, size) || !rc_hold_has_memory(hold, pkt->skb))
		return RC_HOLD_FULL;
	*position = lane->head;
	rc_hold_drop_unanswered(hold, *position + size);
	rc_lane_put(lane, pkt);
	return lane->head == *position ? RC_HOLD_UNREADABLE : RC_HOLD_TAKEN;
}

/* Puts @pkt into the lane, and lets it wait. */
static enum rc_hold_offer rc_hold_offer(struct rc_hold *hold, struct rc_packet *pkt, struct net_device *out)
{
	struct rc_lane *lane = rc_producer_enter(hold->queue);
	enum rc_hold_offer offer;
	u64 position;

	if (!lane)
		return RC_HOLD_UNATTENDED;
	offer = rc_hold_put(hold, lane, pkt, &position);
	rc_producer_leave(lane);
	if (offer == RC_HOLD_TAKEN)
		rc_hold_add(hold, pkt->skb, position, out);
	return offer;
}

/* In the queue's own account. */
static void rc_hold_count_missed(const struct rc_hold *hold, enum ringcap_past event)
{
	struct rc_lane *lane = rc_hold_lane(hold);

	if (event == RINGCAP_PAST_UNATTENDED)
		rc_queue_drop_unattended(hold->queue);
	else if (event == RINGCAP_PAST_FULL)
		rc_lane_drop_full(lane);
	else
		rc_lane_drop(lane, RINGCAP_DROP_HUNG);
}

/* The consumer does not get @pkt. */
static void rc_hold_miss(struct rc_hold *hold, struct rc_packet *pkt, struct net_device *out, enum ringcap_past event)
{
	rc_hold_count_missed(hold, event);
	rc_forward_prepare(pkt->skb);
	rc_hold_let_past(hold, pkt->skb, out, event);
}

/*
 * Handles a packet of a shunted flow. Returns false if it must wait as others do: the consumer has no right to it any
 * more, or its flow's packets that came earlier, or those that came before the flow was shunted, still wait.
 */
static bool rc_hold_shunt(struct rc_hold *hold, struct rc_shunt *shunt, struct rc_packet *pkt, struct net_device *out)
{
	bool passes = rc_exact_verdict(&shunt->exact).action == RINGCAP_ACTION_PASS;
	const struct sk_buff *oldest = skb_peek(&hold->waiting);

	if (!READ_ONCE(hold->queue->shunt_quota))
		return false;
	if (passes && oldest && rc_held(oldest)->position < shunt->held)
		return false;
	rc_shunt_count(hold->queue, &shunt->exact, pkt->len);
	if (!passes) {
		rc_hold_drop(hold, pkt->skb, RINGCAP_INLINE_SHUNT_BLOCKED);
		return true;
	}
	rc_forward_prepare(pkt->skb);
	rc_hold_send(hold, pkt->skb, out, RINGCAP_INLINE_SHUNT_PASSED);
	return true;
}

static void rc_hold_receive_locked(struct rc_hold *hold, struct rc_packet *pkt, struct net_device *out)
{
	struct rc_shunt *shunt = rc_shunt_find(hold->queue, pkt);
	enum rc_hold_offer offer;

	rc_hold_try_back(hold);
	if (unlikely(shunt) && rc_hold_shunt(hold, shunt, pkt, out))
		return;
	if (hold->past) {
		rc_hold_miss(hold, pkt, out, hold->now.event);
		return;
	}
	offer = rc_hold_offer(hold, pkt, out);
	if (unlikely(shunt))
		shunt->held = rc_hold_lane(hold)->head;
	if (offer == RC_HOLD_UNREADABLE) {
		rc_hold_drop(hold, pkt->skb, RINGCAP_INLINE_NOMEM);
	} else if (offer == RC_HOLD_UNATTENDED) {
		rc_hold_go_past(hold, RINGCAP_PAST_UNATTENDED);
		rc_hold_miss(hold, pkt, out, RINGCAP_PAST_UNATTENDED);
	} else if (offer == RC_HOLD_FULL) {
		/* Others go on waiting, if this one must not leave. */
		if (rc_hold_is_open(hold, RINGCAP_PAST_FULL))
			rc_hold_go_past(hold, RINGCAP_PAST_FULL);
		rc_hold_miss(hold, pkt, out, RINGCAP_PAST_FULL);
	}
}

void rc_hold_receive(struct rc_hold *hold, struct rc_packet *pkt, struct net_device *out)
{
	spin_lock(&hold->lock);
	rc_hold_receive_locked(hold, pkt, out);
	spin_unlock(&hold->lock);
}

/* ---- verdicts ---- */

static bool rc_hold_is_own(const struct ringcap_verdict *verdict)
{
	return verdict->verdict == RINGCAP_VERDICT_INJECT_FORWARD || verdict->verdict == RINGCAP_VERDICT_INJECT_REVERSE;
}

/* Sends @own, a packet of the consumer's, the way that @skb goes, or back. @skb goes on waiting. */
static void rc_hold_inject(struct rc_hold *hold, const struct sk_buff *skb, struct sk_buff *own, bool back)
{
	struct net_device *dev = back ? rc_held(skb)->in : rc_held(skb)->out;

	if (!dev)
		rc_hold_drop(hold, own, RINGCAP_INLINE_NOT_INJECTED);
	else
		rc_hold_count(hold, rc_forward_send(dev, own) ? RINGCAP_INLINE_NOT_INJECTED : RINGCAP_INLINE_INJECTED);
}

bool rc_hold_obey(struct rc_hold *hold, const struct ringcap_verdict *verdict, struct sk_buff *other)
{
	struct sk_buff *skb = rc_hold_find(hold, verdict->position);
	struct net_device *out;

	lockdep_assert_held(&hold->lock);
	if (!skb) {
		rc_hold_count(hold, verdict->position < hold->taken ? RINGCAP_INLINE_LATE : RINGCAP_INLINE_UNKNOWN);
		kfree_skb(other);
		return false;
	}
	if (rc_hold_is_own(verdict)) {
		rc_hold_inject(hold, skb, other, verdict->verdict == RINGCAP_VERDICT_INJECT_REVERSE);
		return true;
	}
	out = rc_hold_remove(hold, skb);
	if (verdict->verdict == RINGCAP_VERDICT_PASS) {
		rc_hold_send(hold, skb, out, RINGCAP_INLINE_PASSED);
	} else if (verdict->verdict == RINGCAP_VERDICT_REPLACE) {
		rc_forward_follow(out, other, skb);
		consume_skb(skb);
		rc_hold_send(hold, other, out, RINGCAP_INLINE_REPLACED);
	} else {
		rc_hold_drop(hold, skb, RINGCAP_INLINE_BLOCKED);
	}
	return true;
}

/* ---- consumers come and go ---- */

void rc_hold_begin(struct rc_hold *hold)
{
	struct rc_lane *lane = rc_hold_lane(hold);

	spin_lock_bh(&lane->lock);
	rc_lane_publish_rest(lane);
	*lane->consumer = (struct ringcap_lane_consumer){ .released = lane->head, .left = lane->head };
	spin_unlock_bh(&lane->lock);
}

void rc_hold_look(struct rc_hold *hold)
{
	spin_lock_bh(&hold->lock);
	rc_hold_try_back(hold);
	spin_unlock_bh(&hold->lock);
}

void rc_hold_end(struct rc_hold *hold)
{
	spin_lock_bh(&hold->lock);
	rc_hold_go_past(hold, RINGCAP_PAST_UNATTENDED);
	spin_unlock_bh(&hold->lock);
}

/* ---- devices ---- */

static void rc_hold_forget(struct rc_hold *hold, const struct net_device *dev)
{
	struct sk_buff *skb, *next;

	spin_lock(&hold->lock);
	skb_queue_walk_safe(&hold->waiting, skb, next) {
		if (rc_held(skb)->in == dev)
			rc_held(skb)->in = NULL;
		if (rc_held(skb)->out != dev)
			continue;
		rc_hold_remove(hold, skb);
		rc_hold_drop(hold, skb, RINGCAP_INLINE_DOWN);
	}
	spin_unlock(&hold->lock);
}

void rc_hold_forget_device(const struct net_device *dev)
{
	struct rc_hold *hold;

	spin_lock_bh(&rc_hold_list_lock);
	list_for_each_entry(hold, &rc_hold_list, list)
		rc_hold_forget(hold, dev);
	spin_unlock_bh(&rc_hold_list_lock);
}

/* ---- life ---- */

static u32 rc_hold_entries(u32 lane_size)
{
	return lane_size >> RC_HOLD_SHIFT;
}

struct rc_hold *rc_hold_create(struct rc_queue *queue, u32 lane_size, work_func_t tell)
{
	struct rc_hold *hold = kzalloc(sizeof(*hold), GFP_KERNEL_ACCOUNT);

	if (!hold)
		return NULL;
	hold->index = kvcalloc(rc_hold_entries(lane_size), sizeof(*hold->index), GFP_KERNEL_ACCOUNT);
	if (!hold->index) {
		kfree(hold);
		return NULL;
	}
	spin_lock_init(&hold->lock);
	__skb_queue_head_init(&hold->waiting);
	hold->queue = queue;
	hold->hung_ms = RC_HOLD_MS_DEFAULT;
	rc_compat_hrtimer_setup(&hold->timer, rc_hold_timeout, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	INIT_WORK(&hold->work, tell);
	spin_lock_bh(&rc_hold_list_lock);
	list_add_tail(&hold->list, &rc_hold_list);
	spin_unlock_bh(&rc_hold_list_lock);
	return hold;
}

void rc_hold_destroy(struct rc_hold *hold)
{
	if (!hold)
		return;
	spin_lock_bh(&rc_hold_list_lock);
	list_del(&hold->list);
	spin_unlock_bh(&rc_hold_list_lock);
	hrtimer_cancel(&hold->timer);
	if (WARN_ON_ONCE(!skb_queue_empty(&hold->waiting)))
		__skb_queue_purge(&hold->waiting);
	kvfree(hold->index);
	kfree(hold);
}

void rc_hold_configure(struct rc_hold *hold, u8 open, u32 hung_ms)
{
	WRITE_ONCE(hold->open, open);
	WRITE_ONCE(hold->hung_ms, hung_ms);
	/* For the packets that wait already, the timer looks again now. */
	spin_lock_bh(&hold->lock);
	if (hold->armed)
		hrtimer_start(&hold->timer, 0, HRTIMER_MODE_REL_SOFT);
	spin_unlock_bh(&hold->lock);
}

/* ---- what is told ---- */

static void rc_hold_sum(const struct rc_hold *hold, u64 *stats)
{
	u32 i;

	lockdep_assert_held(&hold->lock);
	for (i = 0; i < RINGCAP_INLINE_STATS; i++)
		stats[i] = hold->before[i] + hold->stats[i];
}

void rc_hold_inherit(struct rc_hold *hold, struct rc_hold *old)
{
	u64 stats[RINGCAP_INLINE_STATS];

	spin_lock_bh(&old->lock);
	rc_hold_sum(old, stats);
	spin_unlock_bh(&old->lock);
	spin_lock_bh(&hold->lock);
	memcpy(hold->before, stats, sizeof(stats));
	spin_unlock_bh(&hold->lock);
}

void rc_hold_stats(struct rc_hold *hold, u64 *stats)
{
	spin_lock_bh(&hold->lock);
	rc_hold_sum(hold, stats);
	stats[RINGCAP_INLINE_HELD] = skb_queue_len(&hold->waiting);
	spin_unlock_bh(&hold->lock);
}

bool rc_hold_is_past(struct rc_hold *hold, struct rc_hold_episode *episode)
{
	bool past;

	spin_lock_bh(&hold->lock);
	past = hold->past;
	*episode = hold->now;
	if (past)
		episode->ms = div_u64(ktime_get_ns() - hold->since, NSEC_PER_MSEC);
	spin_unlock_bh(&hold->lock);
	return past;
}

u64 rc_hold_memory(const struct rc_hold *hold)
{
	return sizeof(*hold) + rc_hold_entries(rc_lane_size(rc_hold_lane(hold))) * sizeof(*hold->index);
}

static u32 rc_hold_news_locked(struct rc_hold *hold, struct rc_hold_episode *episode)
{
	*episode = hold->ended ? hold->last : hold->now;
	if ((hold->ended || hold->past) && !hold->told) {
		hold->told = true;
		return RINGCAP_EVENT_PAST;
	}
	if (!hold->ended)
		return 0;
	hold->told = false;
	hold->ended = false;
	return RINGCAP_EVENT_BACK;
}

u32 rc_hold_news(struct rc_hold *hold, struct rc_hold_episode *episode)
{
	u32 event;

	spin_lock_bh(&hold->lock);
	event = rc_hold_news_locked(hold, episode);
	spin_unlock_bh(&hold->lock);
	return event;
}
