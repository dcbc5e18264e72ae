// SPDX-License-Identifier: BSD-2-Clause
#include "shunt_socket.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define SHUNT_ANSWER_MS 500

void shunt_socket_init(struct shunt_socket *s)
{
	*s = (struct shunt_socket){ .fd = -1 };
}

void shunt_socket_close(struct shunt_socket *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void shunt_socket_set(struct shunt_socket *s, int fd)
{
	shunt_socket_close(s);
	s->fd = fd;
	s->late = 0;
	s->known = fd >= 0;
}

/* The agent is gone, or what it says makes no sense. */
static int lost(struct shunt_socket *s)
{
	shunt_socket_close(s);
	return -EAGAIN;
}

static int await(struct shunt_socket *s, short events)
{
	struct pollfd pfd = { .fd = s->fd, .events = events };
	int n;

	do
		n = poll(&pfd, 1, SHUNT_ANSWER_MS);
	while (n < 0 && errno == EINTR);
	s->late = n == 0;
	return n > 0 ? 0 : -EAGAIN;
}

/* Callers read packets. They do not wait again for an agent that has not answered yet. */
static int is_late(struct shunt_socket *s)
{
	struct pollfd pfd = { .fd = s->fd, .events = POLLIN };

	if (s->late && poll(&pfd, 1, 0) > 0)
		s->late = 0;
	return s->late;
}

/* Bytes of an element of a request, and of an answer; 0 = has none. */
static size_t element_size(unsigned int verb, int answer)
{
	if (verb == RINGCAP_SHUNT_READ || (answer && verb == RINGCAP_SHUNT_ENDED))
		return sizeof(struct ringcap_exact_state);
	return answer || verb == RINGCAP_SHUNT_ENDED ? 0 : sizeof(struct ringcap_exact);
}

static int send_request(struct shunt_socket *s, struct ringcap_shunt_message *m, void *elements)
{
	struct iovec iov[] = { { m, sizeof(*m) }, { elements, m->nr * element_size(m->verb, 0) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	int err = 0;

	while (!err && sendmsg(s->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		if (errno == EAGAIN)
			err = await(s, POLLOUT);
		else if (errno != EINTR)
			err = errno == EFAULT ? -EFAULT : lost(s);
	}
	return err;
}

/* Reads an answer into iov; with MSG_PEEK, it stays. Returns its bytes, or an error. */
static ssize_t receive(struct shunt_socket *s, struct iovec *iov, size_t n, int flags)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t got;
	int err;

	for (;;) {
		got = recvmsg(s->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | flags);
		if (got > 0)
			return got;
		if (got < 0 && errno == EFAULT)
			return -EFAULT;
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return lost(s);
		err = errno == EAGAIN ? await(s, POLLIN) : 0;
		if (err)
			return err;
	}
}

/* Throws away answers that came too late for earlier requests. */
static int find_answer(struct shunt_socket *s, struct ringcap_shunt_message *answer)
{
	struct iovec iov = { answer, sizeof(*answer) };
	ssize_t got;

	for (;;) {
		got = receive(s, &iov, 1, MSG_PEEK);
		if (got < 0)
			return (int)got;
		if ((size_t)got < sizeof(*answer) || answer->magic != RINGCAP_MAGIC)
			return lost(s);
		if (answer->number == s->number)
			return 0;
		got = receive(s, &iov, 1, 0);
		if (got < 0)
			return (int)got;
	}
}

static int read_answer(struct shunt_socket *s, struct ringcap_shunt_message *m, void *elements)
{
	struct ringcap_shunt_message answer;
	size_t size = element_size(m->verb, 1);
	struct iovec iov[] = { { &answer, sizeof(answer) }, { elements, m->nr * size } };
	ssize_t got;
	int err;

	err = find_answer(s, &answer);
	if (err)
		return err;
	got = receive(s, iov, 2, 0);
	if (got < 0)
		return (int)got;
	if (answer.result > (int)m->nr || answer.result <= -4096 ||
	    (size_t)got != sizeof(answer) + (answer.result > 0 ? (size_t)answer.result * size : 0))
		return lost(s);
	*m = answer;
	return answer.result;
}

int shunt_socket_ask(struct shunt_socket *s, unsigned int verb, struct ringcap_shunts *argument)
{
	struct ringcap_shunt_message m = {
		.magic = RINGCAP_MAGIC, .verb = verb, .number = ++s->number,
		.nr = argument->nr < RINGCAP_SHUNT_BATCH ? argument->nr : RINGCAP_SHUNT_BATCH,
	};
	void *elements = (void *)(uintptr_t)argument->flows;
	int err;

	if (s->fd < 0)
		return s->known ? -EAGAIN : -ENOTSUP;
	if (is_late(s))
		return -EAGAIN;
	err = send_request(s, &m, elements);
	if (!err)
		err = read_answer(s, &m, elements);
	if (err < 0)
		return err;
	argument->missed = m.missed;
	argument->lost = m.lost;
	argument->shunted = m.shunted;
	argument->shunted_bytes = m.shunted_bytes;
	return err;
}
