// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define SERVICE_TURNS	64	/* receives under load until events are looked at */
#define OUTSTANDING_MS	1	/* see wait_outstanding */

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
 * While packets are outstanding the queue's descriptor stays readable, and an engine may not announce new ones: the
 * reader looks again after a moment, unless it is woken.
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

/* What a reader wants: up to max packets, or a run. */
struct demand {
	struct ringcap_pkt *pkts;
	unsigned int max;
	struct ringcap_run *run;
};

/* Invalid data can be that of a revoked queue: the kernel marks it as revoked, then zeroes it. */
static int explain(struct ringcap *h, int n)
{
	if (n == -EBADMSG)
		wait_events(h, 0);
	return n == -EBADMSG && h->gone ? h->gone : n;
}

static int fetch(struct ringcap *h, const struct demand *want)
{
	int n = explain(h, want->run ? h->engine->run(h, want->run) : h->engine->fetch(h, want->pkts, want->max));

	if (want->run)
		h->running = n > 0;
	else if (n > 0)
		h->outstanding += (unsigned int)n;
	/* Checked last: what was complete by then is passed on. */
	if (n > 0 && h->engine->revoked && h->engine->revoked(h))
		return h->gone = -ENODEV;
	return n;
}

static void settle(struct ringcap *h)
{
	if (h->engine->settle)
		h->engine->settle(h);
}

/* Nothing was there: waits until something is, or something else is to be told. */
static int fetch_wait(struct ringcap *h, const struct demand *want, int timeout_ms)
{
	int64_t end = timeout_ms > 0 ? now_ms() + timeout_ms : 0;
	int left = timeout_ms;
	int n;

	for (;;) {
		int err;

		settle(h);
		err = h->outstanding && left ? wait_outstanding(h, left) : wait_events(h, left);
		n = fetch(h, want);
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

static int receive(struct ringcap *h, const struct demand *want, int timeout_ms)
{
	int n;

	if (!h->gone && take_wakeup(h))
		return -EINTR;
	n = fetch(h, want);
	if (!n)
		return fetch_wait(h, want, timeout_ms);
	if (++h->turns % SERVICE_TURNS == 0)
		wait_events(h, 0);
	return n;
}

RINGCAP_API int ringcap_recv(struct ringcap *h, struct ringcap_pkt *pkts, unsigned int max, int timeout_ms)
{
	const struct demand want = { .pkts = pkts, .max = max };

	if (!max)
		return -EINVAL;
	return h->running ? -EBUSY : receive(h, &want, timeout_ms);
}

/* Ends the run, if there is one. */
static void pass(struct ringcap *h, struct ringcap_run *run)
{
	if (h->running)
		h->engine->pass(h, run);
	h->running = false;
	run->next = run->stop = NULL;
}

RINGCAP_API int ringcap_read(struct ringcap *h, struct ringcap_run *run, int timeout_ms)
{
	const struct demand want = { .run = run };

	if (h->outstanding)
		return -EBUSY;
	pass(h, run);
	return receive(h, &want, timeout_ms);
}

RINGCAP_API void ringcap_done(struct ringcap *h, struct ringcap_run *run)
{
	pass(h, run);
	if (h->fd_given)
		settle(h);
}

RINGCAP_API void ringcap_release(struct ringcap *h, unsigned int n)
{
	if (n > h->outstanding)
		n = h->outstanding;
	h->outstanding -= n;
	h->engine->release(h, n);
	if (!h->outstanding && h->fd_given)
		settle(h);
}

RINGCAP_API int ringcap_fd(const struct ringcap *h)
{
	((struct ringcap *)(uintptr_t)h)->fd_given = true;	/* const only for the caller */
	return h->epoll_fd;
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
