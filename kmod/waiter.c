// SPDX-License-Identifier: GPL-2.0-only

#include "waiter.h"

#include <linux/ringcap.h>

#include "compat/compat.h"

void rc_waiter_init(struct rc_waiter *waiter, enum hrtimer_restart (*look)(struct hrtimer *timer))
{
	init_waitqueue_head(&waiter->wait);
	spin_lock_init(&waiter->lock);
	waiter->woken = -1;
	rc_compat_hrtimer_setup(&waiter->timer, look, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
}

void rc_waiter_destroy(struct rc_waiter *waiter)
{
	hrtimer_cancel(&waiter->timer);
}

void rc_waiter_reset(struct rc_waiter *waiter)
{
	unsigned long flags;

	hrtimer_cancel(&waiter->timer);
	spin_lock_irqsave(&waiter->lock, flags);
	/* Unless a producer has started it again. */
	if (!hrtimer_is_queued(&waiter->timer))
		WRITE_ONCE(waiter->watched, false);
	spin_unlock_irqrestore(&waiter->lock, flags);
}

void rc_waiter_set(struct rc_waiter *waiter, u32 watermark, u32 timeout_us)
{
	unsigned long flags;

	if (waiter->watermark == watermark && waiter->timeout_us == timeout_us)
		return;
	spin_lock_irqsave(&waiter->lock, flags);
	WRITE_ONCE(waiter->watermark, watermark);
	WRITE_ONCE(waiter->timeout_us, timeout_us);
	/* A consumer may wait that is woken but does not ask: for the packets that nobody told of. */
	rc_waiter_settle(waiter, RC_WAITER_SETTLE_NS);
	spin_unlock_irqrestore(&waiter->lock, flags);
	rc_waiter_wake(waiter);
}

void rc_waiter_wake(struct rc_waiter *waiter)
{
	WRITE_ONCE(waiter->woken, atomic_read(&waiter->polls));
	wake_up_interruptible_poll(&waiter->wait, EPOLLIN | EPOLLRDNORM);
}

static void rc_waiter_start_at(struct rc_waiter *waiter, ktime_t end)
{
	/* With the timeout 0, each packet wakes: a watched timer would hide that. */
	if (!waiter->timeout_us)
		return;
	WRITE_ONCE(waiter->watched, true);
	hrtimer_start(&waiter->timer, end, HRTIMER_MODE_ABS_PINNED_SOFT);
}

void rc_waiter_settle(struct rc_waiter *waiter, u64 ns)
{
	lockdep_assert_held(&waiter->lock);
	if (!waiter->watched)
		return;
	WRITE_ONCE(waiter->watched, false);
	hrtimer_start(&waiter->timer, ktime_add_ns(ktime_get(), ns), HRTIMER_MODE_ABS_PINNED_SOFT);
}

void rc_waiter_start(struct rc_waiter *waiter, u64 ns)
{
	ktime_t end = ktime_add_ns(ktime_get(), ns);
	unsigned long flags;

	spin_lock_irqsave(&waiter->lock, flags);
	rc_waiter_start_at(waiter, end);
	spin_unlock_irqrestore(&waiter->lock, flags);
}

void rc_waiter_arm(struct rc_waiter *waiter, u64 ns)
{
	ktime_t end = ktime_add_ns(ktime_get(), ns);

	lockdep_assert_held(&waiter->lock);
	if (!hrtimer_is_queued(&waiter->timer) || ktime_before(end, hrtimer_get_expires(&waiter->timer)))
		rc_waiter_start_at(waiter, end);
}

/* The consumer may have written anything into its page. */
u64 rc_waiter_timeout_ns(const struct rc_waiter *waiter)
{
	u64 timeout_us = READ_ONCE(waiter->timeout_us), own_us = READ_ONCE(*waiter->own_timeout_us);

	BUILD_BUG_ON(RINGCAP_OWN_TIMEOUT_US_MIN < RC_WAITER_SHORT_US);
	if (timeout_us && own_us)
		timeout_us = clamp_t(u64, own_us, RINGCAP_OWN_TIMEOUT_US_MIN, RINGCAP_OWN_TIMEOUT_US_MAX);
	return timeout_us * NSEC_PER_USEC;
}

/* Returns true for one of the producers whose lanes reach the watermark while the consumer sleeps. */
static bool rc_waiter_first(struct rc_waiter *waiter)
{
	int woken = READ_ONCE(waiter->woken), polls = atomic_read(&waiter->polls);

	return woken != polls && cmpxchg(&waiter->woken, woken, polls) == woken;
}

void rc_waiter_tell(struct rc_waiter *waiter, u64 unread)
{
	u64 timeout = rc_waiter_timeout_ns(waiter);
	unsigned long flags;

	if (!timeout || (unread >= READ_ONCE(waiter->watermark) && rc_waiter_first(waiter))) {
		rc_waiter_wake(waiter);
	} else if (!READ_ONCE(waiter->watched)) {
		spin_lock_irqsave(&waiter->lock, flags);
		/* A look that only settles gives way: the timer need not run twice for this packet. */
		if (!waiter->watched)
			rc_waiter_start_at(waiter, ktime_add_ns(ktime_get(), timeout));
		spin_unlock_irqrestore(&waiter->lock, flags);
	}
}
