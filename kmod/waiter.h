/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiters: consumers that sleep until there is data to read, and when they are woken: at the watermark at once, for
 * less data by a timer.
 */
#ifndef RC_WAITER_H
#define RC_WAITER_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/poll.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

/**
 * struct rc_waiter - the consumers that wait for a queue
 * @watermark, @timeout_us: unread bytes of a lane for which they are woken, and how long they wait for fewer
 * @timer: looks whether to wake them (poll.c)
 * @wait: sleeping consumers
 * @own_timeout_us: the consumer's own timeout, in its mapped page; 0 = @timeout_us
 * @lock: taken to start @timer and to change @timeout_us
 * @polls: how often a consumer has asked whether to sleep
 * @woken: @polls when the consumers were last woken
 */
struct rc_waiter {
	u32 watermark;
	u32 timeout_us;
	struct hrtimer timer;
	wait_queue_head_t wait;
	const u64 *own_timeout_us;
	spinlock_t lock;
	atomic_t polls;
	int woken;
};

/* @look: the function of the timer. */
void rc_waiter_init(struct rc_waiter *waiter, enum hrtimer_restart (*look)(struct hrtimer *timer));

/* No consumer sleeps any more, or can begin to. May sleep. */
void rc_waiter_destroy(struct rc_waiter *waiter);

/* A new consumer comes. A timer that runs for the last one would keep it from having its own. May sleep. */
static inline void rc_waiter_reset(struct rc_waiter *waiter)
{
	hrtimer_cancel(&waiter->timer);
}

/* Changes when consumers are woken, also for those that sleep already: they ask again. */
void rc_waiter_set(struct rc_waiter *waiter, u32 watermark, u32 timeout_us);

/* How long the consumer sleeps over less than the watermark, in nanoseconds; 0 = not at all. */
u64 rc_waiter_timeout_ns(const struct rc_waiter *waiter);

/* There is data to read. */
void rc_waiter_wake(struct rc_waiter *waiter);

/* A consumer is about to sleep: the timer looks @ns nanoseconds from now, and not earlier. */
void rc_waiter_start(struct rc_waiter *waiter, u64 ns);

/* The timer looks @ns nanoseconds from now, or when it would anyway if that is sooner. The caller holds the lock. */
void rc_waiter_arm(struct rc_waiter *waiter, u64 ns);

/* The consumers were woken, and none of them has asked since. */
static inline bool rc_waiter_is_woken(struct rc_waiter *waiter)
{
	return READ_ONCE(waiter->woken) == atomic_read(&waiter->polls);
}

/*
 * A consumer waits, and a lane that has published has @unread bytes now. At the watermark, wakes it, but only once
 * until it asks again. Otherwise leaves it to the timer.
 */
void rc_waiter_tell(struct rc_waiter *waiter, u64 unread);

/* If a cluster's timeout is shorter than this, in microseconds, the check for a consumer uses a barrier. */
#define RC_WAITER_SHORT_US 1000

/*
 * Whether a sleeping consumer must be told that a lane has published up to @head. It must if what is unread reaches the
 * watermark, or if no timer is running that will look. @released is read only if a consumer sleeps.
 *
 * Without a barrier, this can miss a consumer that went to sleep before it saw what was published. A full barrier would
 * be needed for each packet that arrives alone, which costs more than the slot. So the timer looks a second time
 * instead (poll.c).
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
