// SPDX-License-Identifier: GPL-2.0-only

#include "poll.h"

#include <linux/ktime.h>

#include "queue.h"

/* The first look in a sleep comes after the timeout, but no later than this. */
#define RC_POLL_LOOK_NS ((u64)10 * NSEC_PER_MSEC)

/*
 * A timeout may end earlier by so much, but by an eighth of itself at most. The first packet often comes soon after the
 * timer was started. So the timer does not have to be started once more for the short rest.
 */
#define RC_POLL_SLACK_NS ((u64)NSEC_PER_MSEC)

/* How much longer a consumer sleeps that has had unread data since @since; the clock may have been set meanwhile. */
static u64 rc_poll_remaining(const struct rc_queue *queue, u64 since)
{
	u64 full = rc_waiter_timeout_ns(&queue->waiter), timeout = full - min(full / 8, RC_POLL_SLACK_NS);
	u64 now = ktime_get_real_ns();
	/* If the clock was set back, @since is in the future. Then the age wraps and exceeds every timeout. */
	u64 age = now - since;

	return age < timeout ? timeout - age : 0;
}

/* How much longer the consumer may sleep, in nanoseconds: 0 = it must read now, U64_MAX = nothing is unread. */
static u64 rc_poll_patience(const struct rc_queue *queue)
{
	u32 watermark = READ_ONCE(queue->waiter.watermark);
	u64 since = U64_MAX;
	u32 i;

	for (i = 0; i < queue->nr_lanes; i++) {
		struct rc_lane_unread unread;

		rc_lane_unread(&queue->lanes[i], &unread);
		if (!unread.bytes)
			continue;
		if (unread.bytes >= watermark)
			return 0;
		since = min(since, unread.since);
	}
	return since == U64_MAX ? U64_MAX : rc_poll_remaining(queue, since);
}

/*
 * A consumer may go to sleep just after a producer checked for sleepers, while the data that it published is not
 * visible yet. Then the producer has not woken it (rc_waiter_must_know). A store becomes visible within far less than a
 * millisecond, which is the shortest time until the timer looks. Packets that it finds younger than the timeout get the
 * rest of it. After a look that finds nothing the timer stands still: all later producers see the sleeper.
 *
 * Known gap of some nanoseconds: a producer sees the timer queued just before this look, and its store is not visible
 * to the look yet. Its packet then waits until another one comes, or until the consumer asks.
 */
enum hrtimer_restart rc_poll_look(struct hrtimer *timer)
{
	struct rc_queue *queue = container_of(timer, struct rc_queue, waiter.timer);
	struct rc_waiter *waiter = &queue->waiter;
	unsigned long flags;
	u64 patience;

	/* So that a consumer that goes to sleep meanwhile starts the timer before this look, or after it. */
	spin_lock_irqsave(&waiter->lock, flags);
	patience = rc_poll_patience(queue);
	if (patience && patience != U64_MAX)
		rc_waiter_arm(waiter, patience);
	spin_unlock_irqrestore(&waiter->lock, flags);
	if (!patience)
		rc_waiter_wake(waiter);
	return HRTIMER_NORESTART;
}

/* A consumer that sleeps has the timer started, with unread packets or without any. */
__poll_t rc_poll_queue(struct rc_queue *queue)
{
	u64 patience;

	/* The caller is on the list of waiters, and is counted, before we look; see rc_waiter_must_know. */
	atomic_inc(&queue->waiter.polls);
	smp_mb__after_atomic();
	if (READ_ONCE(queue->dead))
		return EPOLLHUP | EPOLLERR;
	patience = rc_poll_patience(queue);
	if (!patience)
		return EPOLLIN | EPOLLRDNORM;
	rc_waiter_start(&queue->waiter, min3(patience, rc_waiter_timeout_ns(&queue->waiter), RC_POLL_LOOK_NS));
	return 0;
}
