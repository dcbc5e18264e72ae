// SPDX-License-Identifier: BSD-2-Clause
#include "doorbell.h"

#include <time.h>
#include <unistd.h>

static bool has_rung(const struct doorbell *d)
{
	return __atomic_load_n(d->rung, __ATOMIC_ACQUIRE) != __atomic_load_n(d->heard, __ATOMIC_RELAXED);
}

static void wake(struct doorbell *d)
{
	__atomic_store_n(d->sleep, 0, __ATOMIC_RELAXED);
	d->state = DOORBELL_AWAKE;
}

/* Makes the descriptor unreadable. A late ring from an earlier sleep may make it readable once more. */
static void hush(struct doorbell *d)
{
	uint64_t count;

	if (d->ready && read(d->ready_fd, &count, sizeof(count)) != sizeof(count))
		count = 0;	/* it was not readable */
	d->ready = false;
	__atomic_store_n(d->heard, __atomic_load_n(d->rung, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

/* Returns a number that no consumer of the queue has used. It counts nanoseconds, and sleeps are rarer than that. */
static uint64_t first_number(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void doorbell_start(struct doorbell *d)
{
	d->number = first_number();
	d->ready = true;
	wake(d);
	hush(d);
}

bool doorbell_sleep(struct doorbell *d, const struct lanes *lanes)
{
	if (lanes_pending(lanes))
		return false;
	if (d->state == DOORBELL_ASLEEP && !has_rung(d))
		return true;
	hush(d);
	__atomic_store_n(d->sleep, ++d->number, __ATOMIC_RELAXED);
	d->state = DOORBELL_ASLEEP;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);	/* (E) */
	if (!lanes_pending(lanes))
		return true;
	wake(d);
	return false;
}

void doorbell_stir(struct doorbell *d, bool fd_given)
{
	if (fd_given)
		d->state = DOORBELL_STIRRED;
	else
		wake(d);
}

void doorbell_show(struct doorbell *d)
{
	const uint64_t one = 1;

	if (d->state != DOORBELL_AWAKE || d->ready || has_rung(d))
		return;
	d->ready = write(d->ready_fd, &one, sizeof(one)) == sizeof(one);
}
