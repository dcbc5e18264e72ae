// SPDX-License-Identifier: GPL-2.0-only

#include "poll.h"

#include <linux/ktime.h>
#include <linux/rcupdate.h>

#include "queue.h"

/* How much longer a consumer sleeps that has had unread data since @since; the clock may have been set meanwhile. */
static u64 rc_poll_remaining(const struct rc_queue *queue, u64 since)
{
	u64 timeout = rc_waiter_timeout_ns(&queue->waiter);
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
 * visible yet. Then the producer has not woken it (rc_waiter_must_know), and no timer runs for it. Producers run under
 * RCU. After a grace period a producer that did not see the sleeper is done, and the data that it published is visible.
 */
static void rc_poll_look(struct rcu_head *head)
{
	struct rc_queue *queue = container_of(head, struct rc_queue, look);
	u64 patience = rc_poll_patience(queue);

	if (!patience)
		rc_waiter_wake(&queue->waiter);
	else if (patience != U64_MAX)
		rc_waiter_arm(&queue->waiter, patience);
	if (atomic_cmpxchg(&queue->looks, 1, 0) == 1) {
		rc_queue_put(queue);
		return;
	}
	/* For consumers that polled after this grace period had begun. */
	atomic_set(&queue->looks, 1);
	call_rcu(&queue->look, rc_poll_look);
}

/*
 * Looks once more for a consumer that has polled and seen nothing. @looks: 1 = under way, 2 = wanted once more, 0 =
 * neither.
 */
static void rc_poll_look_later(struct rc_queue *queue)
{
	if (atomic_xchg(&queue->looks, 2))
		return;
	rc_queue_get(queue);
	/* Set before the grace period begins: it covers a CPU that sets 2 in between. */
	atomic_set(&queue->looks, 1);
	call_rcu(&queue->look, rc_poll_look);
}

/*
 * A consumer that sleeps with unread packets has the timer armed. For one that sleeps without any, we look again
 * later. So no packet is stranded.
 */
__poll_t rc_poll_queue(struct rc_queue *queue)
{
	u64 patience;

	WRITE_ONCE(queue->waiter.polls, queue->waiter.polls + 1);
	/* The caller is on the list of waiters, and is counted, before we look; see rc_waiter_must_know. */
	smp_mb();
	if (READ_ONCE(queue->dead))
		return EPOLLHUP | EPOLLERR;
	patience = rc_poll_patience(queue);
	/* A timer that still runs for packets that were read would wake for nothing. It may be for new ones, though. */
	if (patience == U64_MAX && rc_waiter_disarm(&queue->waiter))
		patience = rc_poll_patience(queue);
	if (!patience)
		return EPOLLIN | EPOLLRDNORM;
	if (patience == U64_MAX)
		rc_poll_look_later(queue);
	else
		rc_waiter_arm(&queue->waiter, patience);
	return 0;
}
