/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiters: consumers that sleep until there is data to read, and when they are woken: at the watermark at once, for
 * less data by a timer.
 */
#ifndef RC_WAITER_H
#define RC_WAITER_H

#include <linux/hrtimer.h>
#include <linux/poll.h>
#include <linux/smp.h>
#include <linux/wait.h>

/**
 * struct rc_waiter - the consumers that wait for a queue
 * @watermark, @timeout_us: unread bytes of a lane for which they are woken, and how long they wait for fewer
 * @polls: how often a consumer has asked whether to sleep
 * @timer: wakes for less than the watermark; armed only while a consumer sleeps
 * @wait: sleeping consumers
 * @own_timeout_us: the consumer's own timeout, in its mapped page; 0 = @timeout_us
 */
struct rc_waiter {
	u32 watermark;
	u32 timeout_us;
	u32 polls;
	struct hrtimer timer;
	wait_queue_head_t wait;
	const u64 *own_timeout_us;
};

void rc_waiter_init(struct rc_waiter *waiter);

/* No consumer sleeps any more, or can begin to. May sleep. */
void rc_waiter_destroy(struct rc_waiter *waiter);

/* A new consumer comes. A timer that runs for the last one would keep it from having its own. May sleep. */
static inline void rc_waiter_reset(struct rc_waiter *waiter)
{
	hrtimer_cancel(&waiter->timer);
}

/* How long the consumer sleeps over less than the watermark, in nanoseconds; 0 = not at all. */
u64 rc_waiter_timeout_ns(const struct rc_waiter *waiter);

/* There is data to read. */
void rc_waiter_wake(struct rc_waiter *waiter);

/*
 * Wakes the waiters @ns nanoseconds from now, or when the running timer ends if that is sooner. It ends later if it was
 * started for a longer timeout.
 */
void rc_waiter_arm(struct rc_waiter *waiter, u64 ns);

/*
 * Stops the timer. Returns whether it was running. After that, the caller sees what was published before the timer was
 * started, and what a producer published that used a barrier and saw the timer running.
 */
bool rc_waiter_disarm(struct rc_waiter *waiter);

/*
 * A consumer waits, and a lane that has published has @unread bytes now. At the watermark, wakes it and returns true,
 * unless it is known to be @busy. Otherwise leaves it to the timer.
 */
bool rc_waiter_tell(struct rc_waiter *waiter, u64 unread, bool busy);

/* If a cluster's timeout is shorter than this, in microseconds, the check for a consumer uses a barrier. */
#define RC_WAITER_SHORT_US 1000

/*
 * Whether a sleeping consumer must be told that a lane has published up to @head. It must if what is unread reaches the
 * watermark, or if no timer is running that will tell it. @released is read only if a consumer sleeps.
 *
 * Without a barrier, this can miss a consumer that went to sleep before it saw what was published. A full barrier would
 * be needed for each packet that arrives alone, which costs more than the slot. So poll looks a second time instead
 * (poll.c).
 */
static __always_inline bool rc_waiter_must_know(struct rc_waiter *waiter, u64 head, const u64 *released)
{
	/*
	 * data_race: the old and the new value are both what the consumer wanted when it looked. READ_ONCE would cost a
	 * register here.
	 */
	if (unlikely(data_race(waiter->timeout_us) < RC_WAITER_SHORT_US))
		smp_mb();	/* pairs with that in rc_poll_queue */
	if (likely(!waitqueue_active(&waiter->wait)))
		return false;
	/* If data was released since we last looked, there is even less. */
	return !hrtimer_is_queued(&waiter->timer) || head - *released >= READ_ONCE(waiter->watermark);
}

#endif /* RC_WAITER_H */
