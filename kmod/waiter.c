// SPDX-License-Identifier: GPL-2.0-only

#include "waiter.h"

#include <linux/ringcap.h>

#include "compat/compat.h"

static enum hrtimer_restart rc_waiter_timeout(struct hrtimer *timer)
{
	rc_waiter_wake(container_of(timer, struct rc_waiter, timer));
	return HRTIMER_NORESTART;
}

void rc_waiter_init(struct rc_waiter *waiter)
{
	init_waitqueue_head(&waiter->wait);
	rc_compat_hrtimer_setup(&waiter->timer, rc_waiter_timeout, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
}

void rc_waiter_destroy(struct rc_waiter *waiter)
{
	hrtimer_cancel(&waiter->timer);
}

void rc_waiter_wake(struct rc_waiter *waiter)
{
	wake_up_interruptible_poll(&waiter->wait, EPOLLIN | EPOLLRDNORM);
}

void rc_waiter_arm(struct rc_waiter *waiter, u64 ns)
{
	ktime_t end = ktime_add_ns(ktime_get(), ns);

	/* data_race: if another CPU starts the timer just now, it does so for the same packets. */
	if (!hrtimer_is_queued(&waiter->timer) || ktime_before(end, data_race(hrtimer_get_expires(&waiter->timer))))
		hrtimer_start(&waiter->timer, end, HRTIMER_MODE_ABS_PINNED_SOFT);
}

bool rc_waiter_disarm(struct rc_waiter *waiter)
{
	bool stopped = hrtimer_is_queued(&waiter->timer) && hrtimer_try_to_cancel(&waiter->timer) > 0;

	smp_mb(); /* pairs with that in rc_waiter_must_know */
	return stopped;
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

bool rc_waiter_tell(struct rc_waiter *waiter, u64 unread, bool busy)
{
	u64 timeout = rc_waiter_timeout_ns(waiter);

	if ((unread >= READ_ONCE(waiter->watermark) && !busy) || !timeout) {
		rc_waiter_wake(waiter);
		return true;
	}
	rc_waiter_arm(waiter, timeout);
	return false;
}
