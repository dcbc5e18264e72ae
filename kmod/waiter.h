/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiters: consumers that sleep until there is data to read, and when they are woken: at the watermark at once, for
 * less data by a timer.
 *
 * How a packet cannot be missed. A producer stores the new position and then reads whether a consumer waits, and
 * whether the timer is @watched. Between the two it has no full barrier: that would be a locked operation for each
 * packet that comes alone. So the look of a timer, or of a consumer that goes to sleep, may not see a position that was stored
 * just before, though the producer still read what was there before that look. Then the producer tells nobody. Such a
 * store becomes visible within far less than RC_WAITER_SETTLE_NS: this is the only thing here that relies on time.
 *
 *  1. A consumer is on the list, and counted, before it looks. A full barrier is between. If it finds nothing to read,
 *     it starts the timer, watched.
 *  2. While @watched is true, the timer is queued, or its function waits for @lock.
 *  3. The timer does not stop after a watched look, whether it finds nothing or wakes the consumer. It clears @watched,
 *     and looks once more after RC_WAITER_SETTLE_NS or longer. Only after that look, and if no producer has told of a
 *     packet meanwhile, does it stop.
 *  4. A producer that reads @watched as false tells: under @lock, it starts the timer, watched.
 *
 * A producer that read true did so before it could see (3) clear it. So what it had stored by then is visible to the
 * look that comes after. A producer that saw no consumer did so before it could see (1). What it had stored is visible
 * when the timer looks, at least RC_WAITER_SETTLE_NS later, or the consumer is woken sooner for other packets, and looks
 * itself when it asks again. With timeouts below RC_WAITER_SHORT_US, the timer comes too soon for (1), and the producer
 * has the barrier. With the timeout 0 there is no timer at all: each packet wakes. In line, packets do not wake a consumer
 * that was woken and has not asked since. The barrier, which that timeout has too, makes it see them when it asks.
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
 * @watched: the timer will look, and once more after that: producers need not tell of less than the watermark
 * @timer: looks whether to wake them (poll.c)
 * @wait: sleeping consumers
 * @own_timeout_us: the consumer's own timeout, in its mapped page; 0 = @timeout_us
 * @lock: taken to start @timer, and to change @watched and @timeout_us
 * @polls: how often a consumer has asked whether to sleep
 * @woken: @polls when the consumers were last woken
 */
struct rc_waiter {
	u32 watermark;
	u32 timeout_us;
	bool watched;
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
void rc_waiter_reset(struct rc_waiter *waiter);

/* Changes when consumers are woken, also for those that sleep already: they ask again. */
void rc_waiter_set(struct rc_waiter *waiter, u32 watermark, u32 timeout_us);

/* How long the consumer sleeps over less than the watermark, in nanoseconds; 0 = not at all. */
u64 rc_waiter_timeout_ns(const struct rc_waiter *waiter);

/* There is data to read. */
void rc_waiter_wake(struct rc_waiter *waiter);

/* A consumer is about to sleep: the timer looks @ns nanoseconds from now, and not earlier. */
void rc_waiter_start(struct rc_waiter *waiter, u64 ns);

/*
 * The timer looks @ns nanoseconds from now, or when it would anyway if that is sooner, and is watched. The caller holds
 * the lock.
 */
void rc_waiter_arm(struct rc_waiter *waiter, u64 ns);

/*
 * Lets producers tell of their packets from now on. The timer, which is not queued, looks once more @ns nanoseconds from
 * now, if it was watched until now. The caller holds the lock.
 */
void rc_waiter_settle(struct rc_waiter *waiter, u64 ns);

/* After so long, what a producer stored before it read @watched or @wait is visible to all CPUs. */
#define RC_WAITER_SETTLE_NS ((u64)NSEC_PER_MSEC)

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
 * watermark, or if the timer is not watched. @released is read only if a consumer sleeps. Why this needs no barrier
 * between the caller's store and these loads is at the top of this file.
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
	return !READ_ONCE(waiter->watched) || head - *released >= READ_ONCE(waiter->watermark);
}

#endif /* RC_WAITER_H */
