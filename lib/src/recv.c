// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define SERVICE_TURNS	1024	/* receives under load until events are looked at */
#define OUTSTANDING_MS	1	/* see wait_outstanding */

const uint32_t never_revoked;

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Waits for events and handles all but packets. 0, or -errno, which for h->gone is final. */
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
		if (h->gone)	/* stays so, for the poller to see the error */
			ringcap_wakeup(h);
	}
	return 0;
}

/*
 * While packets are outstanding the descriptor of an engine without sleep stays readable, and new ones are not announced:
 * the reader looks again after a moment, unless it is woken.
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
	return read(h->wake_fd, &count, sizeof(count)) || true;	/* nothing there: its writer is a moment late */
}

/* Invalid data can be that of a revoked queue: the kernel marks it as revoked, then zeroes it. */
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

/* Looked at when packets were received: what was complete before the queue was taken back is handed on. */
static bool was_revoked(const struct ringcap *h)
{
	return __atomic_load_n(h->revoked, __ATOMIC_ACQUIRE);
}

/* Packets were received: n, or -ENODEV. */
static inline int found(struct ringcap *h, int n)
{
	h->found = true;
	if (h->asleep)
		stir(h);
	if (!h->announced && h->fd_given)
		show(h);
	return was_revoked(h) ? (h->gone = -ENODEV) : n;
}

/* A run, or else up to max packets; their number, or as ringcap_recv. */
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

/* Leaves the descriptor to a program that waits for it: it is readable when packets are there, or will be when they come. */
static void settle(struct ringcap *h)
{
	if (!h->fd_given || !h->engine->sleep)
		return;
	if (h->running || !go_to_sleep(h))
		show(h);
}

/*
 * Waits for packets and events. A look that finds nothing after packets were found is not worth a look at events, too: who
 * does not wait comes again.
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

/* Nothing was there: waits until something is, or something else is to be told. */
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

/* The first read of a forked child: the handle is the child's from now on. */
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

/* Ends the run, if there is one. */
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

/* The run that follows one is n, which is not a packet to be handed on. */
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

/* Short for the run after a run: there may be few packets in it. */
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

/* For programs of before: see the header. Their runs end with stop. */
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
		errno = saved;	/* full: it is readable already */
	errno = saved;
}
