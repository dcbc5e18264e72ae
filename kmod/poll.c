// SPDX-License-Identifier: GPL-2.0-only

#include "poll.h"

#include <linux/ktime.h>
#include <linux/rcupdate.h>

#include "queue.h"

/*
 * A producer that looked for sleepers just before one went to sleep, while what it had published was not visible yet, has
 * told nobody (rc_waiter_must_know). Producers run under RCU: one that did not see the sleeper is done after a grace period,
 * and what it published is to be seen then.
 */
static void rc_poll_look(struct rcu_head *head)
{
	struct rc_queue *queue = container_of(head, struct rc_queue, look);

	if (rc_queue_unread_bytes(queue))
		rc_waiter_wake(&queue->waiter);
	if (atomic_cmpxchg(&queue->looks, 1, 0) == 1) {
		rc_queue_put(queue);
		return;
	}
	/* For who polled after this grace period had begun. */
	atomic_set(&queue->looks, 1);
	call_rcu(&queue->look, rc_poll_look);
}

/* Looks once more for someone who has polled and seen nothing. @looks: 1 = under way, 2 = wanted once more, 0 = neither. */
static void rc_poll_look_later(struct rc_queue *queue)
{
	if (atomic_xchg(&queue->looks, 2))
		return;
	rc_queue_get(queue);
	/* Before the grace period: a CPU that sets 2 in between is served by it. */
	atomic_set(&queue->looks, 1);
	call_rcu(&queue->look, rc_poll_look);
}

/* How long a consumer that has had something unread since @since still sleeps; clocks may have been set meanwhile. */
static u64 rc_poll_remaining(const struct rc_queue *queue, u64 since)
{
	u64 timeout = READ_ONCE(queue->waiter.timeout_us) * NSEC_PER_USEC;
	u64 now = ktime_get_real_ns();
	/* A time to come, because the clock was set back, wraps to an age beyond every timeout. */
	u64 age = now - since;

	return age < timeout ? timeout - age : 0;
}

/* A consumer that is told to sleep on unread packets has the timer armed, and is looked after on none: nothing strands. */
__poll_t rc_poll_queue(struct rc_queue *queue)
{
	u32 watermark = READ_ONCE(queue->waiter.watermark);
	u64 since = U64_MAX, remaining;
	u32 i;

	WRITE_ONCE(queue->waiter.polls, queue->waiter.polls + 1);
	/* We are on the list of waiters, and count, before we look; see rc_waiter_must_know. */
	smp_mb();
	if (READ_ONCE(queue->dead))
		return EPOLLHUP | EPOLLERR;
	for (i = 0; i < queue->nr_lanes; i++) {
		struct rc_lane_unread unread;

		rc_lane_unread(&queue->lanes[i], &unread);
		if (!unread.bytes)
			continue;
		if (unread.bytes >= watermark)
			return EPOLLIN | EPOLLRDNORM;
		since = min(since, unread.since);
	}
	if (since == U64_MAX) {
		rc_poll_look_later(queue);
		return 0;
	}
	remaining = rc_poll_remaining(queue, since);
	if (!remaining)
		return EPOLLIN | EPOLLRDNORM;
	rc_waiter_arm(&queue->waiter, remaining);
	return 0;
}
