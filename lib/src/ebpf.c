// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "abi.h"
#include "handover.h"
#include "link.h"

#define ANSWER_MS	15000	/* limit for the agent's answer during opening */
#define ABSENT_MS	10000	/* limit for an agent that is being restarted */
#define ABSENT_STEP_MS	100
#define CHANGE_MS	5000	/* limit for a queue that is being replaced by one of another size */

static size_t whole_pages(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) & ~(page - 1);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void unmap(const void *p, size_t size)
{
	if (p)
		munmap((void *)(uintptr_t)p, size);
}

/* Does not write to mapped memory. So a forked child that closes its copy changes nothing. */
static void ebpf_close(struct ringcap *h)
{
	struct ebpf *e = &h->ebpf;

	unmap(e->kernel, e->data_size);
	unmap(e->consumer, whole_pages(sizeof(*e->consumer)));
	unmap(e->bell_consumer, whole_pages(1));
	unmap(e->bell_producer, whole_pages(1));
	free(e->lanes.stretches);
	close_fd(&e->bell_fd);
	close_fd(&e->doorbell.ready_fd);
	close_fd(&e->timer_fd);
	shunt_socket_close(&e->shunts);
	close_fd(&e->link_fd);	/* last: after this, another consumer may get the queue */
	memset(e, 0, sizeof(*e));
	e->link_fd = e->timer_fd = e->bell_fd = e->doorbell.ready_fd = -1;
	shunt_socket_init(&e->shunts);
}

/* Maps size bytes of a descriptor. On failure, returns NULL and sets errno. */
static void *map(int fd, size_t size, int prot, size_t offset)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED, fd, (off_t)offset);

	return p == MAP_FAILED ? NULL : p;
}

static int map_lanes(struct ebpf *e, const struct ringcap_handover_reply *reply, const int fds[HANDOVER_FDS], char *errbuf)
{
	size_t stride = (size_t)reply->lane_size + RINGCAP_LANE_TAIL;
	struct lanes *l = &e->lanes;

	l->nr = reply->nr_lanes;
	l->lane_size = reply->lane_size;
	l->stretches = calloc(LANES_OUTSTANDING_MAX, sizeof(*l->stretches));
	if (!l->stretches)
		return fail(errbuf, ENOMEM, "%s: out of memory", e->path);
	e->data_size = whole_pages(reply->head_size + l->nr * stride);
	e->kernel = map(fds[HANDOVER_DATA], e->data_size, PROT_READ, 0);
	e->consumer = e->kernel ? map(fds[HANDOVER_CONSUMER], whole_pages(sizeof(*e->consumer)), PROT_READ | PROT_WRITE, 0) : NULL;
	if (!e->consumer)
		return fail(errbuf, errno, "%s: mapping %u lanes of %u bytes: %s", e->path, l->nr, l->lane_size, strerror(errno));
	for (unsigned int i = 0; i < l->nr; i++) {
		l->lane[i].producer = (const uint64_t *)&e->kernel[i].producer;
		l->lane[i].shared = (uint64_t *)&e->consumer->lane[i].released;
		l->lane[i].data = (const uint8_t *)e->kernel + reply->head_size + i * stride;
	}
	lanes_start(l);
	return 0;
}

static int map_doorbell(struct ebpf *e, char *errbuf)
{
	struct doorbell *d = &e->doorbell;

	e->bell_consumer = map(e->bell_fd, whole_pages(1), PROT_READ | PROT_WRITE, 0);
	e->bell_producer = e->bell_consumer ? map(e->bell_fd, whole_pages(1), PROT_READ, whole_pages(1)) : NULL;
	if (!e->bell_producer)
		return fail(errbuf, errno, "%s: mapping the doorbell: %s", e->path, strerror(errno));
	d->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->ready_fd < 0)
		return fail(errbuf, errno, "%s: eventfd: %s", e->path, strerror(errno));
	d->sleep = (uint64_t *)&e->consumer->sleep;
	d->heard = e->bell_consumer;
	d->rung = e->bell_producer;
	doorbell_start(d);
	return 0;
}

/* The maps exist as long as they are mapped. Only the doorbell's descriptor is kept: the reader waits for it. */
static int map_queue(struct ebpf *e, const struct ringcap_handover_reply *reply, int fds[HANDOVER_FDS], char *errbuf)
{
	int err = 0;

	for (int i = 0; i < HANDOVER_SHUNTS; i++)
		if (fds[i] < 0)
			err = fail(errbuf, EPROTO, "%s: the node agent's answer came without the queue's descriptors", e->path);
	if (!err)
		err = map_lanes(e, reply, fds, errbuf);
	e->bell_fd = fds[HANDOVER_DOORBELL];
	shunt_socket_set(&e->shunts, fds[HANDOVER_SHUNTS]);
	close_fd(&fds[HANDOVER_DATA]);
	close_fd(&fds[HANDOVER_CONSUMER]);
	return err ? err : map_doorbell(e, errbuf);
}

static int refused(const struct ebpf *e, const struct ringcap_handover_reply *reply, char *errbuf)
{
	struct abi theirs = { 0, reply->abi };
	int err = (int)reply->error;

	if (err == EPROTO)
		return fail(errbuf, err, "%s: the node agent speaks version %u of the interface, this libringcap %u to %u: update %s",
			    e->path, reply->abi, abi_handover.oldest, abi_handover.newest,
			    abi_older(abi_handover, theirs, "the node agent"));
	return fail(errbuf, err, "%s: the node agent refused: %s", e->path, reply->reason[0] ? reply->reason : strerror(err));
}

/* Waits for the answer to the first request. The descriptors that come with it then belong to the caller. */
static int await_answer(struct ebpf *e, struct ringcap_handover_reply *reply, int fds[HANDOVER_FDS], char *errbuf)
{
	struct pollfd pfd = { .fd = e->link_fd, .events = POLLIN };
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
			    abi_handover.oldest, abi_handover.newest);
	if (err)
		return fail(errbuf, -err, "%s: the node agent hung up: %s", e->path, strerror(-err));
	return reply->error ? refused(e, reply, errbuf) : 0;
}

/* Connects. Retries while an agent is being restarted, which leaves its socket behind. */
static int connect_retrying(const char *path)
{
	int fd = handover_connect(path);

	for (int ms = 0; (fd == -ECONNREFUSED || fd == -EAGAIN) && ms < ABSENT_MS; ms += ABSENT_STEP_MS) {
		poll(NULL, 0, ABSENT_STEP_MS);	/* a socket without a listener has no event to wait for */
		fd = handover_connect(path);
	}
	return fd;
}

static int ask_once(struct ebpf *e, struct ringcap_handover_reply *reply, int fds[HANDOVER_FDS], char *errbuf)
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
	return await_answer(e, reply, fds, errbuf);
}

/* Asks the agent. Asks again while the socket is being replaced, because a new queue of the same name will appear. */
static int ask_agent(struct ebpf *e, struct ringcap_handover_reply *reply, int fds[HANDOVER_FDS], char *errbuf)
{
	int err = ask_once(e, reply, fds, errbuf);

	for (int ms = 0; (err == -ECONNRESET || err == -EPIPE || err == -ESTALE) && ms < CHANGE_MS; ms += ABSENT_STEP_MS) {
		close_fd(&e->link_fd);
		poll(NULL, 0, ABSENT_STEP_MS);
		err = ask_once(e, reply, fds, errbuf);
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
		err = watch(h, e->bell_fd, EVENT_QUEUE);
	if (!err)
		err = watch(h, e->doorbell.ready_fd, EVENT_QUEUE);
	if (!err)
		err = watch(h, e->link_fd, EVENT_LINK);
	return err ? fail(errbuf, -err, "%s: epoll: %s", e->path, strerror(-err)) : 0;
}

int ebpf_open(struct ringcap *h, const char *path, char *errbuf)
{
	struct ringcap_handover_reply reply;
	struct ebpf *e = &h->ebpf;
	int fds[HANDOVER_FDS] = { -1, -1, -1, -1 };
	int err;

	memset(e, 0, sizeof(*e));
	e->link_fd = e->timer_fd = e->bell_fd = e->doorbell.ready_fd = -1;
	shunt_socket_init(&e->shunts);
	snprintf(e->path, sizeof(e->path), "%s", path);
	err = ask_agent(e, &reply, fds, errbuf);
	if (!err)
		err = map_queue(e, &reply, fds, errbuf);
	if (!err)
		err = watch_all(h, errbuf);
	if (err) {
		ebpf_close(h);
		return err;
	}
	for (unsigned int i = 0; i < e->lanes.nr && !h->take_unread; i++)
		h->skipped += lanes_skip(&e->lanes, i, __atomic_load_n(&e->consumer->lane[i].left, __ATOMIC_RELAXED));
	h->lanes = &e->lanes;
	h->own_timeout = (uint64_t *)&e->consumer->lane[0].timeout_us;
	h->revoked = &never_revoked;
	e->link = LINK_UP;
	e->map_id = reply.map_id;
	h->engine = &engine_ebpf;
	snprintf(h->queue.name, sizeof(h->queue.name), "%s", reply.name);
	h->queue.queue = reply.queue;
	h->queue.nr_queues = reply.nr_queues;
	h->queue.snaplen = reply.snaplen;
	return 0;
}

static bool ebpf_sleep(struct ringcap *h)
{
	return doorbell_sleep(&h->ebpf.doorbell, &h->ebpf.lanes);
}

static void ebpf_stir(struct ringcap *h)
{
	doorbell_stir(&h->ebpf.doorbell, h->fd_given);
}

static void ebpf_show(struct ringcap *h)
{
	doorbell_show(&h->ebpf.doorbell);
}

static void ebpf_forked(struct ringcap *h)
{
	doorbell_start(&h->ebpf.doorbell);
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
	for (unsigned int i = 0; i < h->ebpf.lanes.nr; i++)
		stats_add(stats, &h->ebpf.kernel[i].stats);
}

static int ebpf_shunt(struct ringcap *h, unsigned int verb, struct ringcap_shunts *argument)
{
	return shunt_socket_ask(&h->ebpf.shunts, verb, argument);
}

const struct engine engine_ebpf = {
	.name = "EBPF",
	.sleep = ebpf_sleep,
	.stir = ebpf_stir,
	.show = ebpf_show,
	.forked = ebpf_forked,
	.service = ebpf_service,
	.stats = ebpf_stats,
	.shunt = ebpf_shunt,
	.close = ebpf_close,
};
