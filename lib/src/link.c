// SPDX-License-Identifier: BSD-2-Clause
#include "link.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "handover.h"
#include "internal.h"

#define ANSWER_TICKS 5	/* seconds after which an unanswered request is given up */
#define GONE_TICKS 5	/* seconds without a socket after which the queue counts as deleted */

static void set_ticking(struct ebpf *e, bool on)
{
	struct itimerspec spec = { 0 };

	if (on) {
		spec.it_value.tv_sec = 1;
		spec.it_interval.tv_sec = 1;
	}
	timerfd_settime(e->timer_fd, 0, &spec, NULL);
}

static void hang_up(struct ringcap *h)
{
	struct ebpf *e = &h->ebpf;

	/* If the program has forked since the socket was opened, closing alone would leave it in the epoll set. */
	if (e->link_fd >= 0) {
		epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, e->link_fd, NULL);
		close(e->link_fd);
	}
	shunt_socket_close(&e->shunts);
	e->link_fd = -1;
	e->link = LINK_DOWN;
	e->ticks_waited = 0;
	set_ticking(e, true);
}

/* The queue is gone: stops all further attempts. */
static int give_up(struct ringcap *h)
{
	hang_up(h);
	set_ticking(&h->ebpf, false);
	return -ENODEV;
}

/* Connects again. An agent that ends leaves its sockets behind, but deleting a queue removes its socket. */
static int try_again(struct ringcap *h)
{
	struct ebpf *e = &h->ebpf;
	int fd = handover_connect(e->path);

	if (fd == -ENOENT && ++e->ticks_waited >= GONE_TICKS)
		return give_up(h);
	if (fd != -ENOENT)
		e->ticks_waited = 0;
	if (fd < 0)
		return 0;
	e->link_fd = fd;
	if (handover_ask(fd, e->map_id) || watch(h, fd, EVENT_LINK))
		hang_up(h);
	else
		e->link = LINK_ASKED;
	return 0;
}

/* Returns true if later answers will be the same: the queue is not ours any more, or the agent has no common version. */
static bool is_final(int err, const struct ringcap_handover_reply *reply)
{
	if (err)
		return err == -EPROTO;
	return !reply->error || reply->error == ESTALE || reply->error == EPROTO;
}

static int take_answer(struct ringcap *h)
{
	struct ebpf *e = &h->ebpf;
	struct ringcap_handover_reply reply;
	int fds[HANDOVER_FDS];
	int err = handover_read(e->link_fd, &reply, fds);
	bool granted = !err && !reply.error && reply.map_id == e->map_id;

	for (int i = granted; i < HANDOVER_FDS; i++)	/* the maps of the first answer stay in use */
		if (fds[i] >= 0)
			close(fds[i]);
	if (err == -EAGAIN)
		return 0;
	if (granted) {
		shunt_socket_set(&e->shunts, fds[0]);
		e->link = LINK_UP;
		set_ticking(e, false);
		return 0;
	}
	if (is_final(err, &reply))
		return give_up(h);
	hang_up(h);	/* the agent may not know the owner yet: ask again */
	return 0;
}

int link_event(struct ringcap *h)
{
	struct ebpf *e = &h->ebpf;
	char byte;

	if (e->link == LINK_ASKED)
		return take_answer(h);
	/* A serving agent sends nothing; it only hangs up. */
	if (e->link == LINK_UP && (recv(e->link_fd, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN))
		hang_up(h);
	return 0;
}

int link_tick(struct ringcap *h)
{
	struct ebpf *e = &h->ebpf;
	uint64_t ticks;

	if (read(e->timer_fd, &ticks, sizeof(ticks)) < 0)
		return 0;
	if (e->link == LINK_DOWN)
		return try_again(h);
	if (e->link == LINK_ASKED && ++e->ticks_waited >= ANSWER_TICKS)
		hang_up(h);
	return 0;
}
