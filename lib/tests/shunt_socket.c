// SPDX-License-Identifier: BSD-2-Clause
/* Requests for shunted flows, with a stand-in for the agent at the other end of the socket. */
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../src/shunt_socket.h"

struct message {
	struct ringcap_shunt_message head;
	union {
		struct ringcap_exact rules[RINGCAP_SHUNT_BATCH];
		struct ringcap_exact_state states[RINGCAP_SHUNT_BATCH];
	};
};

/* What the agent does with a request of @n bytes; returns the bytes of the answer, 0 = it hangs up, -1 = no answer. */
typedef long (*answer_fn)(struct message *m, size_t n);

struct agent {
	int fd;
	answer_fn answer;
	pthread_t thread;
};

static void *serve(void *argument)
{
	struct agent *agent = argument;
	struct message m;
	ssize_t n;
	long answer;

	while ((n = recv(agent->fd, &m, sizeof(m), 0)) > 0) {
		CHECK_EQ(m.head.magic, RINGCAP_MAGIC);
		answer = agent->answer(&m, (size_t)n);
		if (!answer)
			break;
		if (answer > 0)
			CHECK_EQ(send(agent->fd, &m, (size_t)answer, MSG_NOSIGNAL), answer);
	}
	close(agent->fd);
	return NULL;
}

static void begin(struct agent *agent, struct shunt_socket *s, answer_fn answer)
{
	int fds[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	shunt_socket_init(s);
	shunt_socket_set(s, fds[0]);
	agent->fd = fds[1];
	agent->answer = answer;
	CHECK(!pthread_create(&agent->thread, NULL, serve, agent));
}

static void end(struct agent *agent, struct shunt_socket *s)
{
	shunt_socket_close(s);
	CHECK(!pthread_join(agent->thread, NULL));
}

static long take_all(struct message *m, size_t n)
{
	size_t size = m->head.verb == RINGCAP_SHUNT_READ ? sizeof(m->states[0]) : sizeof(m->rules[0]);

	if (m->head.verb == RINGCAP_SHUNT_ENDED) {
		CHECK_EQ(n, sizeof(m->head));
		memset(m->states, 7, sizeof(m->states));
		m->head.lost = 3;
		m->head.result = m->head.nr < 2 ? (int)m->head.nr : 2;
		return (long)(sizeof(m->head) + (size_t)m->head.result * sizeof(m->states[0]));
	}
	CHECK_EQ(n, sizeof(m->head) + m->head.nr * size);
	m->head.result = (int)m->head.nr;
	m->head.missed = 1;
	m->head.shunted = 8;
	if (m->head.verb != RINGCAP_SHUNT_READ)
		return sizeof(m->head);
	for (unsigned int i = 0; i < m->head.nr; i++)
		m->states[i].counts.packets = m->states[i].rule.sport;
	return (long)n;
}

/* Elements go there and back as they are, at most a message's number of them. */
static void test_elements(void)
{
	static struct ringcap_exact_state states[RINGCAP_SHUNT_BATCH + 1];
	static struct ringcap_exact rules[RINGCAP_SHUNT_BATCH + 1];
	struct ringcap_shunts argument = { .flows = (uint64_t)(uintptr_t)rules, .nr = 3 };
	struct shunt_socket s;
	struct agent agent;

	begin(&agent, &s, take_all);
	CHECK_EQ(shunt_socket_ask(&s, RINGCAP_SHUNT_ADD, &argument), 3);
	CHECK_EQ(argument.missed, 1);
	argument.nr = RINGCAP_SHUNT_BATCH + 1;
	CHECK_EQ(shunt_socket_ask(&s, RINGCAP_SHUNT_REMOVE, &argument), RINGCAP_SHUNT_BATCH);
	for (int i = 0; i <= RINGCAP_SHUNT_BATCH; i++)
		states[i].rule.sport = (uint16_t)i;
	argument.flows = (uint64_t)(uintptr_t)states;
	CHECK_EQ(shunt_socket_ask(&s, RINGCAP_SHUNT_READ, &argument), RINGCAP_SHUNT_BATCH);
	CHECK_EQ(argument.shunted, 8);
	CHECK_EQ(states[255].counts.packets, 255);
	CHECK_EQ(states[256].counts.packets, 0);
	argument.nr = 0;
	CHECK_EQ(shunt_socket_ask(&s, RINGCAP_SHUNT_READ, &argument), 0);
	argument.nr = 5;
	CHECK_EQ(shunt_socket_ask(&s, RINGCAP_SHUNT_ENDED, &argument), 2);
	CHECK_EQ(argument.lost, 3);
	CHECK_EQ(states[1].rule.sport, 0x0707);
	CHECK_EQ(states[2].rule.sport, 2);
	argument.flows = 8;
	CHECK_EQ(shunt_socket_ask(&s, RINGCAP_SHUNT_ADD, &argument), -EFAULT);
	end(&agent, &s);
}

static long refuse(struct message *m, size_t n)
{
	(void)n;
	m->head.result = -EDQUOT;
	return sizeof(m->head);
}

static long claim_too_many(struct message *m, size_t n)
{
	(void)n;
	m->head.result = (int)m->head.nr + 1;
	return sizeof(m->head);
}

static long claim_nonsense(struct message *m, size_t n)
{
	(void)n;
	m->head.magic = 1;
	return sizeof(m->head);
}

static long leave_out(struct message *m, size_t n)
{
	m->head.result = 1;
	return (long)n - 1;
}

static long cut(struct message *m, size_t n)
{
	(void)m;
	(void)n;
	return 7;
}

static long hang_up(struct message *m, size_t n)
{
	(void)m;
	(void)n;
	return 0;
}

static int ask_for_one(struct shunt_socket *s)
{
	struct ringcap_exact_state state = { 0 };
	struct ringcap_shunts argument = { .flows = (uint64_t)(uintptr_t)&state, .nr = 1 };

	return shunt_socket_ask(s, RINGCAP_SHUNT_READ, &argument);
}

static void test_errors(void)
{
	static const answer_fn strange[] = { claim_too_many, claim_nonsense, leave_out, cut, hang_up };
	struct shunt_socket s;
	struct agent agent;

	begin(&agent, &s, refuse);
	CHECK_EQ(ask_for_one(&s), -EDQUOT);
	CHECK_EQ(ask_for_one(&s), -EDQUOT);
	end(&agent, &s);
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		begin(&agent, &s, strange[i]);
		CHECK_EQ(ask_for_one(&s), -EAGAIN);
		CHECK_EQ(s.fd, -1);
		CHECK_EQ(ask_for_one(&s), -EAGAIN);
		end(&agent, &s);
	}
	shunt_socket_init(&s);
	CHECK_EQ(ask_for_one(&s), -ENOTSUP);
	shunt_socket_set(&s, -1);
	CHECK_EQ(ask_for_one(&s), -ENOTSUP);
}

static sem_t second;

/* The first answer comes when the test asks for it, and the next one at once. */
static long answer_late(struct message *m, size_t n)
{
	static int late = 1;

	if (late) {
		late = 0;
		sem_wait(&second);
		m->head.result = -EPERM;
		return sizeof(m->head);
	}
	return take_all(m, n);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Nobody waits again for an agent that stands still. An answer that was given up is not taken for that of a later request. */
static void test_late_answer(void)
{
	struct ringcap_exact_state state = { .rule.sport = 9 };
	struct ringcap_shunts argument = { .flows = (uint64_t)(uintptr_t)&state, .nr = 1 };
	struct shunt_socket s;
	struct agent agent;
	int64_t start;
	int err;

	sem_init(&second, 0, 0);
	begin(&agent, &s, answer_late);
	CHECK_EQ(shunt_socket_ask(&s, RINGCAP_SHUNT_READ, &argument), -EAGAIN);
	start = now_ms();
	for (int i = 0; i < 100; i++)
		CHECK_EQ(shunt_socket_ask(&s, RINGCAP_SHUNT_READ, &argument), -EAGAIN);
	CHECK(now_ms() - start < 10000);
	sem_post(&second);
	while ((err = shunt_socket_ask(&s, RINGCAP_SHUNT_READ, &argument)) == -EAGAIN)
		;
	CHECK_EQ(err, 1);
	CHECK_EQ(state.counts.packets, 9);
	end(&agent, &s);
}

int main(void)
{
	RUN(test_elements);
	RUN(test_errors);
	RUN(test_late_answer);
	return 0;
}
