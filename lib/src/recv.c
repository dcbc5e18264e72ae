// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define SERVICE_TURNS	1024	/* receives under load until the next check for events */
#define OUTSTANDING_MS	1	/* see wait_outstanding */

const uint32_t never_revoked;

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Waits for events and handles all except packets. Returns 0 or -errno. The error is final if h->gone is set. */
static int wait_events(struct ringcap *h, int timeout_ms)
{
	struct epoll_event events[4];
	unsigned int seen = 0;
	uint64_t count;
	int n = epoll_wait(h->epoll_fd, events, 4, timeout_ms);

	h->found = false;
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		seen |= events[i].data.u32;
		if (events[i].data.u32 == EVENT_QUEUE && events[i].events & (EPOLLHUP | EPOLLERR))
			seen |= EVENT_QUEUE_GONE;
	}
	if (seen & EVENT_WAKE && !h->gone && read(h->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return -errno;
	if (seen & ~(unsigned int)(EVENT_WAKE | EVENT_QUEUE) && !h->gone) {
		h->gone = h->engine->service(h, seen);
		if (h->gone)	/* stays readable, so that a poller sees the error */
			ringcap_wakeup(h);
	}
	return 0;
}

/*
 * In an engine without sleep, the descriptor stays readable while packets are outstanding, so new packets are not
 * announced. The reader therefore checks again after OUTSTANDING_MS, unless it is woken.
 */
static int wait_outstanding(struct ringcap *h, int timeout_ms)
{
	struct pollfd pfd = { .fd = h->wake_fd, .events = POLLIN };

	poll(&pfd, 1, timeout_ms < 0 || timeout_ms > OUTSTANDING_MS ? OUTSTANDING_MS : timeout_ms);
	return wait_events(h, 0);
}

static bool take_wakeup(struct ringcap *h)
{
	uint64_t count;

	if (!atomic_load_explicit(&h->woken, memory_order_relaxed) || !atomic_exchange(&h->woken, 0))
		return false;
	return read(h->wake_fd, &count, sizeof(count)) || true;	/* nothing there yet: the writer is a moment late */
}

/* Explains invalid data. It may come from a revoked queue: the kernel marks the queue as revoked, then zeroes it. */
static int explain(struct ringcap *h, int n)
{
	if (n == -EBADMSG)
		wait_events(h, 0);
	return n == -EBADMSG && h->gone ? h->gone : n;
}

static void stir(struct ringcap *h)
{
	h->asleep = false;
	h->announced = h->fd_given;
	h->engine->stir(h);
}

static void show(struct ringcap *h)
{
	h->announced = true;
	h->engine->show(h);
}

/* Checked after packets were received. Packets that were complete before the queue was taken back are handed on. */
static bool was_revoked(const struct ringcap *h)
{
	return __atomic_load_n(h->revoked, __ATOMIC_ACQUIRE);
}

/* Called when n packets were received. Returns n or -ENODEV. */
static inline int found(struct ringcap *h, int n)
{
	h->found = true;
	if (h->asleep)
		stir(h);
	if (!h->announced && h->fd_given)
		show(h);
	return was_revoked(h) ? (h->gone = -ENODEV) : n;
}

/* Fetches a run if run is not NULL, else up to max packets. Returns their number, or an error as ringcap_recv does. */
static int fetch(struct ringcap *h, struct ringcap_run *run, struct ringcap_pkt *pkts, unsigned int max)
{
	int n = run ? lanes_run(h->lanes, run, h->may_list) : lanes_fetch(h->lanes, pkts, max);

	if (n <= 0)
		return explain(h, n);
	if (run)
		h->running = true;
	else
		h->outstanding += (unsigned int)n;
	return found(h, n);
}

static bool go_to_sleep(struct ringcap *h)
{
	h->asleep = h->announced = h->engine->sleep(h);
	return h->asleep;
}

/* Prepares the descriptor for a program that waits for it: readable now if there are packets, else when they come. */
static void settle(struct ringcap *h)
{
	if (!h->fd_given || !h->engine->sleep)
		return;
	if (h->running || !go_to_sleep(h))
		show(h);
}

/*
 * Waits for packets and events. If a call that does not wait finds nothing just after packets were found, it does not
 * check for events: such a caller calls again.
 */
static int wait(struct ringcap *h, int timeout_ms)
{
	if (!h->engine->sleep && h->outstanding && timeout_ms)
		return wait_outstanding(h, timeout_ms);
	if (h->engine->sleep && (timeout_ms || h->fd_given) && !go_to_sleep(h))
		timeout_ms = 0;
	if (!timeout_ms && h->found) {
		h->found = false;
		return 0;
	}
	return wait_events(h, timeout_ms);
}

/* Called when there was no packet: waits until there is one, or until there is something else to report. */
static int fetch_wait(struct ringcap *h, struct ringcap_run *run, struct ringcap_pkt *pkts, unsigned int max, int timeout_ms)
{
	int64_t end = timeout_ms > 0 ? now_ms() + timeout_ms : 0;
	int left = timeout_ms;
	int n;

	for (;;) {
		int err = wait(h, left);

		n = fetch(h, run, pkts, max);
		if (n)
			return n;
		if (h->gone)
			return h->gone;
		if (take_wakeup(h))
			return -EINTR;
		if (err)
			return err;
		if (timeout_ms > 0)
			left = (int)(end - now_ms());
		if (timeout_ms >= 0 && left <= 0)
			return 0;
	}
}

/* Handles the first read of a forked child: from now on, the handle belongs to the child. */
static void take_over(struct ringcap *h)
{
	*h->reader = 1;
	lanes_resume(h->lanes);
	lanes_release(h->lanes, h->owed);
	h->outstanding -= h->owed;
	h->owed = 0;
	h->asleep = false;
	h->announced = !h->engine->sleep;
	if (h->engine->forked)
		h->engine->forked(h);
}

static int receive(struct ringcap *h, struct ringcap_run *run, struct ringcap_pkt *pkts, unsigned int max, int timeout_ms)
{
	int n;

	if (!h->gone && take_wakeup(h))
		return -EINTR;
	n = fetch(h, run, pkts, max);
	if (!n)
		return fetch_wait(h, run, pkts, max, timeout_ms);
	if (++h->turns % SERVICE_TURNS == 0)
		wait_events(h, 0);
	return n;
}

RINGCAP_API int ringcap_recv(struct ringcap *h, struct ringcap_pkt *pkts, unsigned int max, int timeout_ms)
{
	if (!max)
		return -EINVAL;
	if (h->running)
		return -EBUSY;
	if (!*h->reader)
		take_over(h);
	return receive(h, NULL, pkts, max, timeout_ms);
}

static void forget(const struct ringcap *h, struct ringcap_run *run)
{
	run->next = run->stop = NULL;
	if (h->may_list)
		run->listed = run->listed_end = NULL;
}

/* Ends the current run, if there is one. */
static void pass(struct ringcap *h, struct ringcap_run *run)
{
	if (h->running)
		lanes_pass(h->lanes, run);
	h->running = false;
	forget(h, run);
}

static __attribute__((noinline)) int begin_run(struct ringcap *h, struct ringcap_run *run, int timeout_ms)
{
	if (!*h->reader)
		take_over(h);
	if (h->outstanding)
		return -EBUSY;
	pass(h, run);
	return receive(h, run, NULL, 0, timeout_ms);
}

/* Called when the run after a run gave n, which is no packet to hand on. */
static __attribute__((noinline)) int end_run(struct ringcap *h, struct ringcap_run *run, int n, int timeout_ms)
{
	if (n > 0)
		return h->gone = -ENODEV;
	h->running = false;
	forget(h, run);
	return n ? explain(h, n) : fetch_wait(h, run, NULL, 0, timeout_ms);
}

static bool was_woken(const struct ringcap *h)
{
	return atomic_load_explicit(&h->woken, memory_order_relaxed);
}

/* A short path for the run after a run, because a run may have only few packets. */
static inline int read_run(struct ringcap *h, struct ringcap_run *run, int timeout_ms)
{
	int n;

	if (!h->running || !*h->reader || was_woken(h) || ++h->turns % SERVICE_TURNS == 0)
		return begin_run(h, run, timeout_ms);
	n = lanes_next(h->lanes, run, h->may_list);
	if (n <= 0 || was_revoked(h))
		return end_run(h, run, n, timeout_ms);
	return n;
}

static void end(struct ringcap *h, struct ringcap_run *run)
{
	if (!*h->reader) {	/* a forked child gives nothing back unless it reads */
		if (h->running)
			lanes_drop(h->lanes);
		h->running = false;
		forget(h, run);
		return;
	}
	pass(h, run);
	settle(h);
}

RINGCAP_API int ringcap_read(struct ringcap *h, struct ringcap_run *run, int timeout_ms)
{
	h->may_list = true;
	return read_run(h, run, timeout_ms);
}

RINGCAP_API void ringcap_done(struct ringcap *h, struct ringcap_run *run)
{
	h->may_list = true;
	end(h, run);
}

/* For programs that were built earlier: see the header. Their struct ringcap_run ends with stop. */
RINGCAP_API int read_of_before(struct ringcap *h, struct ringcap_run *run, int timeout_ms) __asm__("ringcap_read");

RINGCAP_API int read_of_before(struct ringcap *h, struct ringcap_run *run, int timeout_ms)
{
	h->may_list = false;
	return read_run(h, run, timeout_ms);
}

RINGCAP_API void done_of_before(struct ringcap *h, struct ringcap_run *run) __asm__("ringcap_done");

RINGCAP_API void done_of_before(struct ringcap *h, struct ringcap_run *run)
{
	h->may_list = false;
	end(h, run);
}

RINGCAP_API void ringcap_release(struct ringcap *h, unsigned int n)
{
	if (n > h->outstanding - h->owed)
		n = h->outstanding - h->owed;
	if (!*h->reader) {
		h->owed += n;
		return;
	}
	h->outstanding -= n;
	lanes_release(h->lanes, n);
	if (!h->outstanding)
		settle(h);
}

RINGCAP_API int ringcap_set_timeout(struct ringcap *h, uint32_t timeout_us)
{
	if (timeout_us && (timeout_us < RINGCAP_OWN_TIMEOUT_US_MIN || timeout_us > RINGCAP_OWN_TIMEOUT_US_MAX))
		return -EINVAL;
	if (__atomic_exchange_n(h->own_timeout, timeout_us, __ATOMIC_SEQ_CST) != timeout_us && h->engine->retime)
		h->engine->retime(h);
	return 0;
}

RINGCAP_API int ringcap_fd(const struct ringcap *h)
{
	struct ringcap *own = (struct ringcap *)(uintptr_t)h;	/* const only for the caller */

	own->fd_given = true;
	if (*own->reader)
		settle(own);
	return own->epoll_fd;
}

RINGCAP_API void ringcap_wakeup(struct ringcap *h)
{
	const uint64_t one = 1;
	int saved = errno;

	atomic_store(&h->woken, 1);
	if (write(h->wake_fd, &one, sizeof(one)) < 0)
		errno = saved;	/* full: it is already readable */
	errno = saved;
}
