/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiters: who sleeps until there is something to read, and when they are woken: for the watermark at once, for less of
 * it by a timer.
 */
#ifndef RC_WAITER_H
#define RC_WAITER_H

#include <linux/hrtimer.h>
#include <linux/poll.h>
#include <linux/smp.h>
#include <linux/wait.h>

/**
 * struct rc_waiter - those who wait for a queue
 * @watermark, @timeout_us: unread bytes of a lane for which they are woken, and how long they wait for less
 * @polls: how often someone has asked whether to sleep
 * @timer: wakes for less than the watermark; armed only while someone sleeps
 * @wait: who sleeps
 */
struct rc_waiter {
	u32 watermark;
	u32 timeout_us;
	u32 polls;
	struct hrtimer timer;
	wait_queue_head_t wait;
};

void rc_waiter_init(struct rc_waiter *waiter);

/* Nobody sleeps any more, or can begin to. May sleep. */
void rc_waiter_destroy(struct rc_waiter *waiter);

/* There is something to read. */
void rc_waiter_wake(struct rc_waiter *waiter);

/* Has the waiters woken @ns nanoseconds from now, unless the timer is running already. */
void rc_waiter_arm(struct rc_waiter *waiter, u64 ns);

/*
 * Someone waits, and a lane that has published has @unread bytes now. Wakes for the watermark, unless who waits is
 * known to be @busy, and returns true; or leaves it to the timer.
 */
bool rc_waiter_tell(struct rc_waiter *waiter, u64 unread, bool busy);

/* Consumers that do not wait that long, microseconds, are looked for with a barrier. */
#define RC_WAITER_SHORT_US 1000

/*
 * Whether who sleeps has to be told that a lane has @unread bytes: there are enough of them, or no timer is running
 * that will tell. To see everybody who went to sleep before seeing what was published, this needs a full barrier for
 * each packet that comes alone, which costs more than the slot. So poll looks a second time instead (poll.c).
 */
static __always_inline bool rc_waiter_must_know(struct rc_waiter *waiter, u64 unread)
{
	/*
	 * data_race: old or new, either is what the consumer wanted when it looked; and READ_ONCE costs a register
	 * here.
	 */
	if (unlikely(data_race(waiter->timeout_us) < RC_WAITER_SHORT_US))
		smp_mb();	/* pairs with that in rc_poll_queue */
	if (!waitqueue_active(&waiter->wait))
		return false;
	/* What was released since we last looked makes it less still. */
	return !hrtimer_is_queued(&waiter->timer) || unread >= READ_ONCE(waiter->watermark);
}

#endif /* RC_WAITER_H */
