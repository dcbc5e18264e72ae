// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "abi.h"
#include "handover.h"
#include "link.h"

#define ANSWER_MS	15000	/* how long opening waits for the agent's answer */
#define ABSENT_MS	10000	/* and for an agent that is being restarted */
#define ABSENT_STEP_MS	100
#define CHANGE_MS	5000	/* and for a queue that is being replaced by one of another size */

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t producer_size(const struct ebpf *e)
{
	return page_size() + 2 * e->records.size;
}

static size_t stats_size(const struct ebpf *e)
{
	size_t page = page_size();

	return (e->nr_stats * sizeof(struct ringcap_lane_stats) + page - 1) & ~(page - 1);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void ebpf_close(struct ringcap *h)
{
	struct ebpf *e = &h->ebpf;

	if (e->stats)
		munmap((void *)(uintptr_t)e->stats, stats_size(e));
	if (e->producer_pages)
		munmap((void *)(uintptr_t)e->producer_pages, producer_size(e));
	if (e->consumer_page)
		munmap(e->consumer_page, page_size());
	close_fd(&e->map_fd);
	close_fd(&e->stats_fd);
	close_fd(&e->timer_fd);
	close_fd(&e->link_fd);	/* last: from here on the queue is another's */
	memset(e, 0, sizeof(*e));
	e->link_fd = e->timer_fd = e->map_fd = e->stats_fd = -1;
}

/* Maps size bytes of a descriptor, NULL and errno when that fails. */
static void *map(int fd, size_t size, int prot, size_t offset)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED, fd, (off_t)offset);

	return p == MAP_FAILED ? NULL : p;
}

static int map_queue(struct ebpf *e, const struct ringcap_handover_reply *reply, char *errbuf)
{
	struct records *r = &e->records;

	r->size = reply->data_size;
	e->nr_stats = reply->nr_stats;
	e->consumer_page = map(e->map_fd, page_size(), PROT_READ | PROT_WRITE, 0);
	e->producer_pages = e->consumer_page ? map(e->map_fd, producer_size(e), PROT_READ, page_size()) : NULL;
	if (!e->producer_pages)
		return fail(errbuf, errno, "%s: mapping the ring buffer of %u bytes: %s", e->path, reply->data_size,
			    strerror(errno));
	e->stats = map(e->stats_fd, stats_size(e), PROT_READ, 0);
	if (!e->stats)
		return fail(errbuf, errno, "%s: mapping the counters of %u CPUs: %s", e->path, reply->nr_stats,
			    strerror(errno));
	r->consumer = e->consumer_page;
	r->producer = e->producer_pages;
	r->data = (const uint8_t *)e->producer_pages + page_size();
	records_start(r);
	return 0;
}

static int refused(const struct ebpf *e, const struct ringcap_handover_reply *reply, char *errbuf)
{
	int err = (int)reply->error;

	return fail(errbuf, err, "%s: the node agent refused: %s", e->path, reply->reason[0] ? reply->reason : strerror(err));
}

/* Waits for the answer to the first request and takes what came with it. */
static int await_answer(struct ebpf *e, struct ringcap_handover_reply *reply, char *errbuf)
{
	struct pollfd pfd = { .fd = e->link_fd, .events = POLLIN };
	int fds[HANDOVER_FDS];
	int err;

	do
		err = poll(&pfd, 1, ANSWER_MS);
	while (err < 0 && errno == EINTR);
	if (err == 0)
		return fail(errbuf, ETIMEDOUT, "%s: no answer from the node agent within %d seconds: see its log", e->path,
			    ANSWER_MS / 1000);
	err = handover_read(e->link_fd, reply, fds);
	if (err == -EPROTO)
		return fail(errbuf, EPROTO, "%s: the node agent's answer is not of version %u to %u of the interface", e->path,
			    abi_ours.oldest, abi_ours.newest);
	if (err)
		return fail(errbuf, -err, "%s: the node agent hung up: %s", e->path, strerror(-err));
	e->map_fd = fds[HANDOVER_RINGBUF];
	e->stats_fd = fds[HANDOVER_STATS];
	if (reply->error)
		return refused(e, reply, errbuf);
	if (e->map_fd < 0 || e->stats_fd < 0)
		return fail(errbuf, EPROTO, "%s: the node agent's answer came without the queue's descriptors", e->path);
	return 0;
}

/* Connects, also to an agent that leaves its socket behind while it is restarted. */
static int connect_retrying(const char *path)
{
	int fd = handover_connect(path);

	for (int ms = 0; (fd == -ECONNREFUSED || fd == -EAGAIN) && ms < ABSENT_MS; ms += ABSENT_STEP_MS) {
		poll(NULL, 0, ABSENT_STEP_MS);	/* a socket that nobody listens on has no event to wait for */
		fd = handover_connect(path);
	}
	return fd;
}

static int ask_once(struct ebpf *e, struct ringcap_handover_reply *reply, char *errbuf)
{
	int err;

	e->link_fd = connect_retrying(e->path);
	if (e->link_fd < 0) {
		err = -e->link_fd;
		if (err == ECONNREFUSED || err == ENOENT)
			return fail(errbuf, err, "%s: the node agent is not there (%s): is its pod on this node running?",
				    e->path, strerror(err));
		return fail(errbuf, err, "%s: connecting to the node agent: %s", e->path, strerror(err));
	}
	err = handover_ask(e->link_fd, 0);
	if (err)
		return fail(errbuf, -err, "%s: asking the node agent: %s", e->path, strerror(-err));
	return await_answer(e, reply, errbuf);
}

/* Asks again while the socket is being replaced: a new queue of the same name is on its way. */
static int ask_agent(struct ebpf *e, struct ringcap_handover_reply *reply, char *errbuf)
{
	int err = ask_once(e, reply, errbuf);

	for (int ms = 0; (err == -ECONNRESET || err == -EPIPE || err == -ESTALE) && ms < CHANGE_MS; ms += ABSENT_STEP_MS) {
		close_fd(&e->link_fd);
		poll(NULL, 0, ABSENT_STEP_MS);
		err = ask_once(e, reply, errbuf);
	}
	return err;
}

static int watch_all(struct ringcap *h, char *errbuf)
{
	struct ebpf *e = &h->ebpf;
	int err;

	e->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	err = e->timer_fd < 0 ? -errno : watch(h, e->timer_fd, EVENT_TIMER);
	if (!err)
		err = watch(h, e->map_fd, EVENT_QUEUE);
	if (!err)
		err = watch(h, e->link_fd, EVENT_LINK);
	return err ? fail(errbuf, -err, "%s: epoll: %s", e->path, strerror(-err)) : 0;
}

int ebpf_open(struct ringcap *h, const char *path, char *errbuf)
{
	struct ringcap_handover_reply reply;
	struct ebpf *e = &h->ebpf;
	int err;

	memset(e, 0, sizeof(*e));
	e->link_fd = e->timer_fd = e->map_fd = e->stats_fd = -1;
	snprintf(e->path, sizeof(e->path), "%s", path);
	err = ask_agent(e, &reply, errbuf);
	if (!err)
		err = map_queue(e, &reply, errbuf);
	if (!err)
		err = watch_all(h, errbuf);
	if (err) {
		ebpf_close(h);
		return err;
	}
	if (!h->take_unread)
		h->skipped = records_skip(&e->records, reply.left);
	e->link = LINK_UP;
	e->map_id = reply.map_id;
	h->engine = &engine_ebpf;
	snprintf(h->queue.name, sizeof(h->queue.name), "%s", reply.name);
	h->queue.queue = reply.queue;
	h->queue.nr_queues = reply.nr_queues;
	h->queue.snaplen = reply.snaplen;
	return 0;
}

static int ebpf_fetch(struct ringcap *h, struct ringcap_pkt *pkts, unsigned int max)
{
	return records_fetch(&h->ebpf.records, pkts, max);
}

static void ebpf_release(struct ringcap *h, unsigned int n)
{
	records_release(&h->ebpf.records, n);
}

static int ebpf_run(struct ringcap *h, struct ringcap_run *run)
{
	return records_run(&h->ebpf.records, run);
}

static void ebpf_pass(struct ringcap *h, const struct ringcap_run *run)
{
	records_pass(&h->ebpf.records, run);
}

/*
 * The kernel announces a record only when the consumer had caught up with it, so one that was published while the reader
 * was awake may never have been announced. Touching the descriptor's entry makes epoll look for itself.
 */
static void ebpf_settle(struct ringcap *h)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = EVENT_QUEUE };

	if (!records_settled(&h->ebpf.records))
		epoll_ctl(h->epoll_fd, EPOLL_CTL_MOD, h->ebpf.map_fd, &event);
}

static int ebpf_service(struct ringcap *h, unsigned int events)
{
	int err = 0;

	if (events & EVENT_LINK)
		err = link_event(h);
	if (!err && events & EVENT_TIMER)
		err = link_tick(h);
	return err;
}

static void ebpf_stats(struct ringcap *h, struct ringcap_stats *stats)
{
	for (unsigned int i = 0; i < h->ebpf.nr_stats; i++)
		stats_add(stats, &h->ebpf.stats[i]);
}

const struct engine engine_ebpf = {
	.name = "EBPF",
	.fetch = ebpf_fetch,
	.release = ebpf_release,
	.run = ebpf_run,
	.pass = ebpf_pass,
	.settle = ebpf_settle,
	.service = ebpf_service,
	.stats = ebpf_stats,
	.close = ebpf_close,
};
