// SPDX-License-Identifier: GPL-2.0-only

#include "poll.h"

#include <linux/ktime.h>

#include "queue.h"

/* The first look in a sleep comes after the timeout, but after no more than this and the slack below. */
#define RC_POLL_LOOK_NS ((u64)10 * NSEC_PER_MSEC)

/*
 * How much later than the timeout a timer looks that is started before there are packets. The first packet often comes
 * soon after that, and then the timer does not have to be started once more for the short rest.
 */
static u64 rc_poll_slack(u64 timeout)
{
	return min_t(u64, timeout / 8, NSEC_PER_MSEC);
}

/* How much longer a consumer sleeps that has had unread data since @since; the clock may have been set meanwhile. */
static u64 rc_poll_remaining(const struct rc_queue *queue, u64 since)
{
	u64 timeout = rc_waiter_timeout_ns(&queue->waiter);
	/* If the clock was set back, @since is in the future. Then the age wraps and exceeds every timeout. */
	u64 age = ktime_get_real_ns() - since;

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
 * What the timer does after a look. Packets that are younger than the timeout get the rest of it. A consumer that was
 * woken has its timeout to ask again: then the timer starts with its sleep.
 */
static void rc_poll_go_on(struct rc_waiter *waiter, u64 patience)
{
	if (patience && patience != U64_MAX)
		rc_waiter_arm(waiter, patience);
	else if (!hrtimer_is_queued(&waiter->timer))
		rc_waiter_settle(waiter, max(patience ? 0 : rc_waiter_timeout_ns(waiter), RC_WAITER_SETTLE_NS));
	/* Otherwise somebody has started it since this look began. */
}

/* waiter.h says why there is always a second look behind the last one that producers relied on. */
enum hrtimer_restart rc_poll_look(struct hrtimer *timer)
{
	struct rc_queue *queue = container_of(timer, struct rc_queue, waiter.timer);
	struct rc_waiter *waiter = &queue->waiter;
	unsigned long flags;
	u64 patience;

	/* So that a consumer that goes to sleep meanwhile starts the timer before this look, or after it. */
	spin_lock_irqsave(&waiter->lock, flags);
	patience = rc_poll_patience(queue);
	rc_poll_go_on(waiter, patience);
	spin_unlock_irqrestore(&waiter->lock, flags);
	if (!patience)
		rc_waiter_wake(waiter);
	return HRTIMER_NORESTART;
}

/* When the timer looks in a sleep that begins now, in nanoseconds. */
static u64 rc_poll_first_look(const struct rc_queue *queue, u64 patience)
{
	u64 timeout = rc_waiter_timeout_ns(&queue->waiter);

	if (patience == U64_MAX)
		return min(timeout, RC_POLL_LOOK_NS) + rc_poll_slack(timeout);
	return min(patience, RC_POLL_LOOK_NS);
}

/*
 * A program may wait before each packet, and release many at a time. What it has not read yet is younger than the timeout
 * by then, and it would sleep over each part.
 */
static bool rc_poll_is_told(const struct rc_queue *queue)
{
	u32 i;

	for (i = 0; i < queue->nr_lanes; i++)
		if (rc_lane_is_told(&queue->lanes[i]))
			return true;
	return false;
}

static __poll_t rc_poll_tell(struct rc_queue *queue)
{
	u32 i;

	for (i = 0; i < queue->nr_lanes; i++)
		rc_lane_tell(&queue->lanes[i]);
	return EPOLLIN | EPOLLRDNORM;
}

/* A consumer that sleeps has the timer started, with unread packets or without any. */
__poll_t rc_poll_queue(struct rc_queue *queue)
{
	u64 patience;

	/*
	 * The caller is on the list of waiters, and is counted, before we look; see waiter.h. It is counted also if it was
	 * told before: by edges, epoll does not ask again before the next packet.
	 */
	atomic_inc(&queue->waiter.polls);
	smp_mb__after_atomic();
	if (READ_ONCE(queue->dead))
		return EPOLLHUP | EPOLLERR;
	if (rc_poll_is_told(queue))
		return EPOLLIN | EPOLLRDNORM;
	patience = rc_poll_patience(queue);
	if (!patience)
		return rc_poll_tell(queue);
	rc_waiter_start(&queue->waiter, rc_poll_first_look(queue, patience));
	return 0;
}
