// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests libringcap with real BPF maps and a stand-in for the agent. Every consumer is a process with uid 65534.
 * Needs root; exits with 77 (skipped) without it.
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ringcap/ringcap.h>

#include "../src/internal.h"
#include "fake.h"

#define QUEUE_BYTES (1u << 18)

static char dir[64];

/* Makes packet number i. Its size and content follow from i. */
static uint32_t packet(uint64_t i, struct ringcap_slot *slot, uint8_t data[2048])
{
	uint64_t seed = i + 1;

	memset(slot, 0, sizeof(*slot));
	slot->hdr_len = sizeof(*slot);
	slot->caplen = 14 + (uint32_t)(noise(&seed) % 1500);
	slot->len = slot->caplen + (uint32_t)(i % 3);
	slot->ts_ns = 1700000000000000000ULL + i * 1000;
	for (uint32_t k = 0; k < slot->caplen; k += 8) {
		uint64_t word = noise(&seed);

		memcpy(data + k, &word, 8);
	}
	return slot->len;
}

static int put(struct fake_queue *q, uint64_t i)
{
	struct ringcap_slot slot;
	uint8_t data[2048];

	packet(i, &slot, data);
	return fake_put(q, &slot, data);
}

static void check_packet(const struct ringcap_pkt *pkt, uint64_t i)
{
	struct ringcap_slot slot;
	uint8_t data[2048];

	packet(i, &slot, data);
	CHECK_EQ(pkt->slot->ts_ns, slot.ts_ns);
	CHECK_EQ(pkt->slot->len, slot.len);
	CHECK_EQ(pkt->slot->caplen, slot.caplen);
	CHECK(!memcmp(pkt->data, data, slot.caplen));
}

/* Starts a consumer as nobody; a pipe tells its parent of steps, another tells it to go on. */
struct consumer {
	pid_t pid;
	int say, heard;	/* of this side */
};

static struct consumer start(void (*run)(int say, int heard))
{
	struct consumer c;
	int up[2], down[2];

	CHECK(!pipe2(up, O_CLOEXEC) && !pipe2(down, O_CLOEXEC));
	c.pid = fork();
	CHECK(c.pid >= 0);
	if (!c.pid) {
		CHECK(!setgroups(0, NULL) && !setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
		close(up[0]);
		close(down[1]);
		run(up[1], down[0]);
		exit(0);
	}
	close(up[1]);
	close(down[0]);
	c.say = down[1];
	c.heard = up[0];
	return c;
}

static void say(int fd, char what)
{
	CHECK_EQ(write(fd, &what, 1), 1);
}

static char hear(int fd)
{
	char what = 0;

	return read(fd, &what, 1) == 1 ? what : 0;
}

static void join(struct consumer *c)
{
	int status;

	CHECK_EQ(waitpid(c->pid, &status, 0), c->pid);
	CHECK_EQ(status, 0);
	close(c->say);
	close(c->heard);
}

static struct ringcap *must_open(const char *name)
{
	char reason[RINGCAP_ERRBUF_SIZE] = "";
	struct ringcap *h = ringcap_open(name, 0, reason);

	if (!h)
		fprintf(stderr, "%s\n", reason);
	CHECK(h);
	return h;
}

/* Reads packets from number i on until n were read in all; batches of up to 32, sleeping for them. */
static uint64_t read_packets(struct ringcap *h, uint64_t i, uint64_t n)
{
	struct ringcap_pkt pkts[32];

	while (i < n) {
		int got = ringcap_recv(h, pkts, n - i < 32 ? (unsigned int)(n - i) : 32, 10000);

		CHECK(got > 0);
		for (int k = 0; k < got; k++)
			check_packet(&pkts[k], i++);
		ringcap_release(h, (unsigned int)got);
	}
	return i;
}

static uint64_t sum_dropped(const struct ringcap_stats *s)
{
	uint64_t sum = 0;

	for (int i = 0; i < RINGCAP_DROP_REASONS; i++)
		sum += s->dropped[i];
	return sum;
}

/* Grants the queue to the next consumer that asks. */
static int grant(int listener, const struct fake_queue *q, uint32_t want_map_id)
{
	struct ringcap_handover_request request;
	int fd = fake_accept(listener, &request);

	CHECK_EQ(request.abi, RINGCAP_ABI);
	CHECK_EQ(request.abi_min, RINGCAP_HANDOVER_ABI_MIN);
	CHECK_EQ(request.map_id, want_map_id);
	fake_answer(fd, q, "mirror", 0, 0, "", !want_map_id);
	return fd;
}

/* ---------------------------------------------------------------- every packet, in order, as it was */

#define MANY 100000

int old_ringcap_stats(struct ringcap *h, void *stats) __asm__("ringcap_stats");

/* What a program delivers that was built when the account ended with dropped: nothing is written behind that. */
static uint64_t stats_of_before(struct ringcap *h)
{
	struct {
		uint64_t delivered, delivered_bytes, dropped[RINGCAP_DROP_REASONS], behind[2];
	} stats = { .behind = { 1, 2 } };

	CHECK_EQ(old_ringcap_stats(h, &stats), 0);
	CHECK_EQ(stats.behind[0], 1);
	CHECK_EQ(stats.behind[1], 2);
	return stats.delivered;
}

static void read_many(int up, int down)
{
	struct ringcap *h = must_open("mirror");
	struct ringcap_stats stats;
	struct ringcap_queue q;

	(void)down;
	ringcap_queue(h, &q);
	CHECK(!strcmp(q.name, "mirror") && !strcmp(q.engine, "EBPF") && q.queue == 0 && q.nr_queues == 1);
	say(up, 'a');
	read_packets(h, 0, MANY);
	CHECK_EQ(stats_of_before(h), MANY);
	ringcap_stats(h, &stats);
	CHECK_EQ(stats.delivered, MANY);
	CHECK_EQ(stats.truncated, MANY - (MANY + 2) / 3);	/* of three packets, one is whole: see packet */
	CHECK_EQ(stats.truncated_bytes, MANY - 1);
	say(up, 'd');
	ringcap_close(h);
}

static void test_every_packet(void)
{
	uint64_t offered = 0, bytes = 0;
	struct ringcap_lane_stats sum;
	struct ringcap_slot slot;
	struct fake_queue q;
	uint8_t data[2048];
	int listener = fake_listen(dir, "mirror", 0), fd;

	fake_make(&q, QUEUE_BYTES, 1);
	struct consumer c = start(read_many);

	fd = grant(listener, &q, 0);
	CHECK_EQ(hear(c.heard), 'a');
	for (uint64_t i = 0; i < MANY; i++) {
		bytes += packet(i, &slot, data);
		do	/* an unpaced producer would overrun: it waits for room, and the refusals are in the account */
			offered++;
		while (!fake_put(&q, &slot, data) && sched_yield() == 0);
	}
	CHECK_EQ(hear(c.heard), 'd');
	join(&c);
	fake_count(&q, &sum);
	CHECK_EQ(sum.delivered, MANY);
	CHECK_EQ(sum.delivered_bytes + sum.truncated_bytes, bytes);
	CHECK_EQ(sum.delivered + sum.dropped[RINGCAP_DROP_FULL], offered);
	close(fd);
	close(listener);
	fake_free(&q);
}

/* ---------------------------------------------------------------- programs that were built when a run had no list */

struct run_of_before {
	const uint8_t *next, *stop;
	uint64_t behind[2];
};

int old_ringcap_read(struct ringcap *h, struct run_of_before *run, int timeout_ms) __asm__("ringcap_read");
void old_ringcap_done(struct ringcap *h, struct run_of_before *run) __asm__("ringcap_done");

/* Packets of three lanes in turn; nothing is written behind the run. */
static void read_as_before(int up, int down)
{
	struct run_of_before run = { .behind = { 1, 2 } };
	struct ringcap *h = must_open("mirror");
	uint64_t i = 0;

	(void)up;
	(void)down;
	while (i < 300) {
		CHECK_EQ(old_ringcap_read(h, &run, 10000), 1);
		while (run.next < run.stop) {
			const struct ringcap_slot *slot = (const void *)run.next;

			check_packet(&(struct ringcap_pkt){ slot, ringcap_data(slot) }, i++);
			run.next += RINGCAP_SLOT_SIZE(slot->hdr_len, slot->caplen);
		}
		if (i % 7 == 0)
			old_ringcap_done(h, &run);
	}
	old_ringcap_done(h, &run);
	CHECK_EQ(run.behind[0], 1);
	CHECK_EQ(run.behind[1], 2);
	CHECK_EQ(old_ringcap_read(h, &run, 0), 0);
	ringcap_close(h);
}

static void test_programs_of_before(void)
{
	int listener = fake_listen(dir, "mirror", 0), fd;
	struct fake_queue q;

	fake_make(&q, QUEUE_BYTES, 3);
	for (uint64_t i = 0; i < 300; i++)
		CHECK(put(&q, i));
	struct consumer c = start(read_as_before);

	fd = grant(listener, &q, 0);
	join(&c);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(q.consumer->lane[i].released, q.kernel[i].producer);
	close(fd);
	close(listener);
	fake_free(&q);
}

/* ---------------------------------------------------------------- a consumer that is too slow */

static void read_slowly(int up, int down)
{
	struct ringcap *h = must_open("mirror@0");
	struct ringcap_stats stats;

	say(up, 'a');
	CHECK_EQ(hear(down), 'g');	/* the queue is full now */
	ringcap_stats(h, &stats);
	CHECK_EQ(stats.delivered + sum_dropped(&stats), 2000);
	CHECK(stats.dropped[RINGCAP_DROP_FULL] > 0);
	read_packets(h, 0, stats.delivered);
	CHECK_EQ(ringcap_recv(h, &(struct ringcap_pkt){ 0 }, 1, 0), 0);
	ringcap_close(h);
}

static void test_full(void)
{
	int listener = fake_listen(dir, "mirror", 0), fd;
	struct fake_queue q;

	fake_make(&q, QUEUE_BYTES, 1);
	struct consumer c = start(read_slowly);

	fd = grant(listener, &q, 0);
	CHECK_EQ(hear(c.heard), 'a');
	for (uint64_t i = 0, next = 0; i < 2000; i++)
		next += (uint64_t)put(&q, next);	/* numbers only those that were delivered */
	say(c.say, 'g');
	join(&c);
	close(fd);
	close(listener);
	fake_free(&q);
}

/* ---------------------------------------------------------------- the agent restarts, then takes the queue */

static void read_through_restart(int up, int down)
{
	struct ringcap *h = must_open("mirror");
	struct ringcap_pkt pkts[8];
	uint64_t i = 0;
	int n;

	(void)down;
	say(up, 'a');
	i = read_packets(h, i, 1000);
	say(up, 'b');			/* the agent goes */
	i = read_packets(h, i, 2000);	/* and packets keep coming */
	say(up, 'c');
	/* Waiting for packets keeps up the connection, and tells what the agent said in the end. */
	while ((n = ringcap_recv(h, pkts, 8, -1)) > 0) {
		for (int k = 0; k < n; k++)
			check_packet(&pkts[k], i++);
		ringcap_release(h, (unsigned int)n);
	}
	CHECK_EQ(n, -ENODEV);
	CHECK_EQ(i, 3000);
	CHECK_EQ(ringcap_recv(h, pkts, 8, -1), -ENODEV);
	struct pollfd pfd = { .fd = ringcap_fd(h), .events = POLLIN };

	CHECK_EQ(poll(&pfd, 1, 0), 1);
	ringcap_close(h);
}

static void test_agent_restart(void)
{
	struct ringcap_handover_request request;
	struct fake_queue q;
	int listener = fake_listen(dir, "mirror", 0), fd;

	fake_make(&q, 1u << 22, 1);
	struct consumer c = start(read_through_restart);

	fd = grant(listener, &q, 0);
	CHECK_EQ(hear(c.heard), 'a');
	for (uint64_t i = 0; i < 1000; i++)
		CHECK(put(&q, i));
	CHECK_EQ(hear(c.heard), 'b');
	close(fd);
	close(listener);
	for (uint64_t i = 1000; i < 2000; i++)
		CHECK(put(&q, i));
	CHECK_EQ(hear(c.heard), 'c');
	listener = fake_listen(dir, "mirror", 0);
	fd = fake_accept(listener, &request);	/* not ready yet: refuses; the consumer must come again */
	fake_answer(fd, &q, "mirror", 0, EACCES, "starting", 0);
	close(fd);
	fd = grant(listener, &q, q.map_id);
	for (uint64_t i = 2000; i < 3000; i++)
		CHECK(put(&q, i));
	close(fd);
	fd = fake_accept(listener, &request);
	CHECK_EQ(request.map_id, q.map_id);
	fake_answer(fd, &q, "mirror", 0, ESTALE, "the queue belongs to another pod", 0);
	join(&c);
	close(fd);
	close(listener);
	fake_free(&q);
}

/* ---------------------------------------------------------------- shunted flows */

static const struct ringcap_exact some_flows[300] = { { .sport = 1 }, { .sport = 2 } };

/* Waits for the connection until the answer is another one than unwanted. */
static int shunt_again(struct ringcap *h, int unwanted)
{
	int done = unwanted;

	while (done == unwanted) {
		CHECK(ringcap_recv(h, &(struct ringcap_pkt){ 0 }, 1, 20) <= 0);
		done = ringcap_shunt(h, some_flows, 300);
	}
	return done;
}

static void shunt_through_restarts(int up, int down)
{
	struct ringcap *h = must_open("mirror");
	struct ringcap_exact_state states[3] = { 0 };
	struct ringcap_shunt_stats stats;
	uint64_t lost = 0;

	CHECK_EQ(ringcap_shunt(h, some_flows, 300), 300);	/* in two messages */
	CHECK_EQ(ringcap_shunt(h, some_flows, 0), 0);
	CHECK_EQ(ringcap_unshunt(h, some_flows, 2), 2);
	CHECK_EQ(ringcap_shunt_read(h, states, 1), 1);
	CHECK_EQ(states[0].counts.packets, 7);
	CHECK_EQ(ringcap_shunt_ended(h, states, 3, &lost), 3);
	CHECK_EQ(lost, 5);
	CHECK_EQ(ringcap_shunt_stats(h, &stats), 0);
	CHECK_EQ(stats.shunted, 9);
	say(up, 'g');
	CHECK_EQ(hear(down), 'g');	/* the agent has gone */
	CHECK_EQ(ringcap_shunt(h, some_flows, 1), -EAGAIN);
	CHECK_EQ(shunt_again(h, -EAGAIN), 300);
	say(up, 'o');
	CHECK_EQ(hear(down), 'o');	/* and one of before has come */
	CHECK_EQ(shunt_again(h, -EAGAIN), -ENOTSUP);
	say(up, 'd');
	CHECK_EQ(shunt_again(h, -ENOTSUP), -EAGAIN);	/* it has gone, too */
	CHECK_EQ(shunt_again(h, -EAGAIN), -ENODEV);
	ringcap_close(h);
}

/* Handles one request as the agent does. */
static void answer_shunts(int fd)
{
	static struct {
		struct ringcap_shunt_message head;
		struct ringcap_exact_state states[RINGCAP_SHUNT_BATCH];
	} m;
	size_t states = 0;

	CHECK(recv(fd, &m, sizeof(m), 0) >= (ssize_t)sizeof(m.head));
	m.head.result = (int)m.head.nr;
	m.head.lost = 5;
	m.head.shunted = 9;
	if (m.head.verb == RINGCAP_SHUNT_ENDED || m.head.verb == RINGCAP_SHUNT_READ)
		states = m.head.nr;
	m.states[0].counts.packets = 7;
	CHECK(send(fd, &m, sizeof(m.head) + states * sizeof(m.states[0]), 0) > 0);
}

/* Grants the queue with a socket for shunted flows; returns the agent's end. */
static int grant_with_shunts(int listener, struct fake_queue *q, uint32_t want_map_id, int *fd)
{
	int ends[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	q->shunts_fd = ends[1];
	*fd = grant(listener, q, want_map_id);
	q->shunts_fd = 0;
	close(ends[1]);
	return ends[0];
}

static void test_shunts(void)
{
	int listener = fake_listen(dir, "mirror", 0), fd, shunts;
	struct ringcap_handover_request request;
	struct fake_queue q;

	fake_make(&q, QUEUE_BYTES, 1);
	struct consumer c = start(shunt_through_restarts);

	shunts = grant_with_shunts(listener, &q, 0, &fd);
	for (int i = 0; i < 6; i++)
		answer_shunts(shunts);
	CHECK_EQ(hear(c.heard), 'g');
	close(shunts);
	close(fd);
	say(c.say, 'g');
	shunts = grant_with_shunts(listener, &q, q.map_id, &fd);
	answer_shunts(shunts);
	answer_shunts(shunts);
	CHECK_EQ(hear(c.heard), 'o');
	close(shunts);
	close(fd);
	say(c.say, 'o');
	fd = grant(listener, &q, q.map_id);
	CHECK_EQ(hear(c.heard), 'd');
	close(fd);
	shunts = grant_with_shunts(listener, &q, q.map_id, &fd);
	close(shunts);
	close(fd);
	fd = fake_accept(listener, &request);
	fake_answer(fd, &q, "mirror", 0, ESTALE, "the queue belongs to another pod", 0);
	join(&c);
	close(fd);
	close(listener);
	fake_free(&q);
}

/* ---------------------------------------------------------------- killed in mid-read, and what the next one finds */

static void read_and_hang(int up, int down)
{
	struct ringcap *h = must_open("mirror");
	struct ringcap_pkt pkts[32];

	read_packets(h, 0, 100);
	CHECK_EQ(ringcap_recv(h, pkts, 32, 1000), 32);
	ringcap_release(h, 10);	/* 110 given back, 22 in hand */
	say(up, 'r');
	hear(down);
}

static void read_rest(int up, int down)
{
	struct ringcap *h = must_open("mirror");

	(void)up;
	(void)down;
	read_packets(h, 110, 500);
	ringcap_close(h);
}

static void test_killed(void)
{
	int listener = fake_listen(dir, "mirror", 0), fd, status;
	struct fake_queue q;
	char byte;

	fake_make(&q, 1u << 22, 1);
	for (uint64_t i = 0; i < 500; i++)
		CHECK(put(&q, i));
	struct consumer c = start(read_and_hang);

	fd = grant(listener, &q, 0);
	CHECK_EQ(hear(c.heard), 'r');
	kill(c.pid, SIGKILL);
	CHECK_EQ(waitpid(c.pid, &status, 0), c.pid);
	CHECK_EQ(recv(fd, &byte, 1, 0), 0);	/* the agent sees it go */
	close(fd);
	c = start(read_rest);
	fd = grant(listener, &q, 0);
	join(&c);
	close(fd);
	close(listener);
	fake_free(&q);
}

/* ---------------------------------------------------------------- what an earlier consumer left */

#define LEFT 300

/* Opens what has LEFT packets of an earlier consumer and 50 that came since, reads the latter and leaves the queue. */
static void read_new(int up, int down)
{
	char reason[RINGCAP_ERRBUF_SIZE] = "";
	struct ringcap *h;

	(void)up;
	(void)down;
	CHECK(!setenv("RINGCAP_UNREAD", "all", 1));
	CHECK(!ringcap_open("mirror", 0, reason) && errno == EINVAL && strstr(reason, "'all'"));
	CHECK(!unsetenv("RINGCAP_UNREAD"));
	h = must_open("mirror");
	CHECK_EQ(ringcap_skipped(h), LEFT);
	read_packets(h, LEFT, LEFT + 50);
	ringcap_close(h);
}

static void read_new_by_own_word(int up, int down)
{
	struct ringcap *h;

	(void)up;
	(void)down;
	CHECK(!setenv("RINGCAP_UNREAD_DEFAULT", "take", 1));
	CHECK(!setenv("RINGCAP_UNREAD", "skip", 1));
	h = must_open("mirror");
	CHECK_EQ(ringcap_skipped(h), LEFT);
	read_packets(h, LEFT, LEFT + 50);
	ringcap_close(h);
}

static void read_new_by_flag(int up, int down)
{
	struct ringcap *h;

	(void)up;
	(void)down;
	CHECK(!setenv("RINGCAP_UNREAD", "take", 1));
	h = ringcap_open("mirror", RINGCAP_OPEN_SKIP, NULL);
	CHECK(h);
	CHECK_EQ(ringcap_skipped(h), LEFT);
	read_packets(h, LEFT, LEFT + 50);
	ringcap_close(h);
}

static void read_all(int up, int down)
{
	struct ringcap *h;

	(void)up;
	(void)down;
	CHECK(!setenv("RINGCAP_UNREAD", "take", 1));
	h = must_open("mirror");
	CHECK_EQ(ringcap_skipped(h), 0);
	read_packets(h, 0, LEFT + 50);
	ringcap_close(h);
}

static void read_all_by_default(int up, int down)
{
	struct ringcap *h;

	(void)up;
	(void)down;
	CHECK(!unsetenv("RINGCAP_UNREAD"));
	CHECK(!setenv("RINGCAP_UNREAD_DEFAULT", "take", 1));
	h = must_open("mirror");
	CHECK_EQ(ringcap_skipped(h), 0);
	read_packets(h, 0, LEFT + 50);
	ringcap_close(h);
}

static void read_all_by_flag(int up, int down)
{
	struct ringcap *h = ringcap_open("mirror", RINGCAP_OPEN_TAKE, NULL);

	(void)up;
	(void)down;
	CHECK(h);
	CHECK_EQ(ringcap_skipped(h), 0);
	read_packets(h, 0, LEFT + 50);
	ringcap_close(h);
}

/* What came after the agent had let the consumer in is never skipped. */
static void test_left(void)
{
	static void (*const consumers[])(int, int) = {
		read_new, read_new_by_own_word, read_new_by_flag, read_all, read_all_by_default, read_all_by_flag,
	};
	int listener = fake_listen(dir, "mirror", 0), fd;

	for (size_t i = 0; i < sizeof(consumers) / sizeof(consumers[0]); i++) {
		struct fake_queue q;

		fake_make(&q, 1u << 18, 3);
		for (uint64_t k = 0; k < LEFT; k++)
			CHECK(put(&q, k));
		fake_leave(&q);
		for (uint64_t k = LEFT; k < LEFT + 50; k++)
			CHECK(put(&q, k));
		struct consumer c = start(consumers[i]);

		fd = grant(listener, &q, 0);
		join(&c);
		close(fd);
		fake_free(&q);
	}
	close(listener);
}

/* ---------------------------------------------------------------- scribbling over all that a consumer can write */

static void scribble(int up, int down)
{
	struct ringcap_handover_reply reply;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char path[128];
	int fds[3], fd;

	(void)up;
	(void)down;
	snprintf(path, sizeof(path), "%s/mirror/0/handover", dir);
	fd = fake_connect(path);
	fake_take(fd, &reply, fds);
	uint8_t *consumer = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
	uint8_t *bell = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fds[2], 0);

	CHECK(consumer != MAP_FAILED && bell != MAP_FAILED);
	memset(consumer, 0xa5, sizeof(struct ringcap_consumer_page));
	memset(bell, 0xa5, page);
}

static void read_after_scribble(int up, int down)
{
	struct ringcap *h = must_open("mirror");

	(void)down;
	say(up, 'a');
	read_packets(h, 10, 20);	/* asleep at first */
	ringcap_close(h);
}

static void test_scribble(void)
{
	int listener = fake_listen(dir, "mirror", 0), fd;
	struct fake_queue q;

	fake_make(&q, QUEUE_BYTES, 1);
	for (uint64_t i = 0; i < 10; i++)
		CHECK(put(&q, i));
	struct consumer c = start(scribble);

	fd = grant(listener, &q, 0);
	join(&c);
	close(fd);
	c = start(read_after_scribble);
	fd = grant(listener, &q, 0);
	CHECK_EQ(hear(c.heard), 'a');
	poll(NULL, 0, 50);
	for (uint64_t i = 10; i < 20; i++)
		CHECK(put(&q, i));
	join(&c);
	close(fd);
	close(listener);
	fake_free(&q);
}

static void refuse(int listener, const struct fake_queue *q, unsigned int queue, int error, const char *reason)
{
	struct ringcap_handover_request request;
	int fd = fake_accept(listener, &request);

	fake_answer(fd, q, "mirror", queue, error, reason, error == 0 && queue != 1);
	close(fd);
}

/* ---------------------------------------------------------------- queues that go */

static void wait_for_end(int up, int down)
{
	struct ringcap *h = must_open("mirror");
	struct ringcap_pkt pkt;

	(void)down;
	say(up, 'a');
	CHECK_EQ(ringcap_recv(h, &pkt, 1, 60000), -ENODEV);
	ringcap_close(h);
}

/* A consumer is told that its queue was deleted: nobody answers any more, and the socket is gone. */
static void test_deleted(void)
{
	int listener = fake_listen(dir, "mirror", 0), fd;
	struct fake_queue q;

	fake_make(&q, QUEUE_BYTES, 1);
	struct consumer c = start(wait_for_end);

	fd = grant(listener, &q, 0);
	CHECK_EQ(hear(c.heard), 'a');
	CHECK(!fake_remove(dir, "mirror", 0));
	close(listener);
	close(fd);
	join(&c);
	fake_free(&q);
}

static void open_and_close(int up, int down)
{
	(void)up;
	(void)down;
	ringcap_close(must_open("mirror"));
}

/* Nor does one wait for an agent that speaks none of the library's versions: neither when it says so, nor when it grants in its own. */
static void test_another_agent(void)
{
	static const int errors[] = { EPROTO, 0 };
	struct ringcap_handover_request request;
	struct fake_queue q;

	fake_make(&q, QUEUE_BYTES, 1);
	for (int i = 0; i < 2; i++) {
		int listener = fake_listen(dir, "mirror", 0), fd;
		struct consumer c = start(wait_for_end);

		fd = grant(listener, &q, 0);
		CHECK_EQ(hear(c.heard), 'a');
		close(fd);
		fd = fake_accept(listener, &request);
		CHECK_EQ(request.map_id, q.map_id);
		fake_answer_as(fd, 2, &q, "mirror", 0, errors[i], "versions", 0);
		join(&c);
		close(fd);
		close(listener);
	}
	fake_free(&q);
}

/* A consumer that opens a queue while another of its name replaces it gets the other. */
static void test_replaced(void)
{
	int listener = fake_listen(dir, "mirror", 0), fd;
	struct ringcap_handover_request request;
	struct fake_queue q;

	fake_make(&q, QUEUE_BYTES, 1);
	struct consumer c = start(open_and_close);

	close(fake_accept(listener, &request));
	refuse(listener, &q, 0, ESTALE, "this queue was taken from its consumer");
	fd = grant(listener, &q, 0);
	join(&c);
	close(fd);
	close(listener);
	fake_free(&q);
}

/* ---------------------------------------------------------------- refusals */

static void expect_refusals(int up, int down)
{
	char reason[RINGCAP_ERRBUF_SIZE];

	(void)up;
	(void)down;
	CHECK(!ringcap_open("mirror@0", 0, reason));
	CHECK_EQ(errno, EPROTO);
	CHECK(strstr(reason, "the node agent speaks version 2 of the interface, this libringcap 3 to 3: update the node agent"));
	CHECK(!ringcap_open("mirror@0", 0, reason));
	CHECK(strstr(reason, "the node agent speaks version 9 of the interface, this libringcap 3 to 3: update libringcap"));
	CHECK(!ringcap_open("mirror@0", 0, reason));	/* one that grants what it does not speak */
	CHECK_EQ(errno, EPROTO);
	CHECK(strstr(reason, "not of version 3 to 3"));
	CHECK(!ringcap_open("mirror", 0, reason));
	CHECK_EQ(errno, EACCES);
	CHECK(strstr(reason, "this queue was given to pod b"));
	CHECK(!ringcap_open("mirror", 0, reason));	/* both busy */
	CHECK_EQ(errno, EBUSY);
	CHECK(strstr(reason, "all 2 queues of mirror"));
	CHECK(!ringcap_open("mirror@1", 0, reason));	/* granted without descriptors */
	CHECK_EQ(errno, EPROTO);
	CHECK(!ringcap_open("mirror@7", 0, reason));
	CHECK_EQ(errno, ENOENT);
	CHECK(strstr(reason, "ringcap.io/mirror"));
	CHECK(!ringcap_open("../mirror", 0, reason));
	CHECK_EQ(errno, EINVAL);
	CHECK(!ringcap_open("mirror", 4, reason));
	CHECK(!ringcap_open("mirror", RINGCAP_OPEN_TAKE | RINGCAP_OPEN_SKIP, reason));
	CHECK_EQ(errno, EINVAL);
	/* busy, then free: the next one is taken */
	struct ringcap *h = must_open("mirror");
	struct ringcap_queue q;

	ringcap_queue(h, &q);
	CHECK_EQ(q.queue, 1);
	ringcap_close(h);

	struct ringcap_device devices[4];

	CHECK_EQ(ringcap_list(devices, 4), 2);
	CHECK(!strcmp(devices[0].name, "mirror") && devices[0].queue == 0 && devices[1].queue == 1);
}

static void refuse_version(int listener, const struct fake_queue *q, uint32_t abi, int error)
{
	struct ringcap_handover_request request;
	int fd = fake_accept(listener, &request);

	fake_answer_as(fd, abi, q, "mirror", 0, error, "versions", !error);
	close(fd);
}

static void test_refusals(void)
{
	int first = fake_listen(dir, "mirror", 0), second = fake_listen(dir, "mirror", 1), fd;
	struct ringcap_handover_request request;
	struct fake_queue q;

	fake_make(&q, QUEUE_BYTES, 1);
	struct consumer c = start(expect_refusals);

	refuse_version(first, &q, 2, EPROTO);
	refuse_version(first, &q, 9, EPROTO);
	refuse_version(first, &q, 2, 0);
	refuse(first, &q, 0, EACCES, "no");
	refuse(second, &q, 1, EACCES, "this queue was given to pod b");
	refuse(first, &q, 0, EBUSY, "busy");
	refuse(second, &q, 1, EBUSY, "busy");
	refuse(second, &q, 1, 0, "");
	refuse(first, &q, 0, EBUSY, "busy");
	fd = fake_accept(second, &request);
	fake_answer(fd, &q, "mirror", 1, 0, "", 1);
	join(&c);
	close(fd);
	close(first);
	close(second);
	CHECK(!fake_remove(dir, "mirror", 1));
	fake_free(&q);
}

/* ---------------------------------------------------------------- a module's queue that is not ours to open */

static void open_anothers(int up, int down)
{
	char reason[RINGCAP_ERRBUF_SIZE] = "";
	struct ringcap h = { 0 };

	(void)up, (void)down;
	CHECK_EQ(kmod_open(&h, "/proc/1/mem", reason), -EACCES);
	CHECK(strstr(reason, "was this queue given to this container?"));
	if (unshare(CLONE_NEWUSER))
		return; /* a machine may forbid it */
	CHECK_EQ(kmod_open(&h, "/proc/1/mem", reason), -EACCES);
	CHECK(strstr(reason, "hostUsers: true in the pod, or engine: EBPF"));
}

static void test_user_namespace(void)
{
	struct consumer c = start(open_anothers);

	join(&c);
}

/* ---------------------------------------------------------------- waiting */

static void *wake_later(void *h)
{
	poll(NULL, 0, 50);
	ringcap_wakeup(h);
	return NULL;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void wait_for_things(int up, int down)
{
	struct ringcap *h = must_open("mirror");
	struct pollfd pfd = { .fd = ringcap_fd(h), .events = POLLIN };
	struct ringcap_pkt pkts[4];
	struct timespec before, after;
	pthread_t thread;
	int64_t start;

	CHECK_EQ(ringcap_recv(h, pkts, 4, 0), 0);
	start = now_ms();
	CHECK_EQ(ringcap_recv(h, pkts, 4, 100), 0);
	CHECK(now_ms() - start >= 99);
	CHECK_EQ(poll(&pfd, 1, 0), 0);

	CHECK(!pthread_create(&thread, NULL, wake_later, h));
	CHECK_EQ(ringcap_recv(h, pkts, 4, -1), -EINTR);
	pthread_join(thread, NULL);
	CHECK_EQ(ringcap_recv(h, pkts, 4, 0), 0);
	ringcap_wakeup(h);
	ringcap_wakeup(h);	/* twice before it is noticed is once */
	CHECK_EQ(poll(&pfd, 1, 0), 1);
	CHECK_EQ(ringcap_recv(h, pkts, 4, -1), -EINTR);
	CHECK_EQ(ringcap_recv(h, pkts, 4, 0), 0);
	CHECK_EQ(poll(&pfd, 1, 0), 0);

	say(up, 'p');
	CHECK_EQ(poll(&pfd, 1, 10000), 1);	/* a packet */
	CHECK_EQ(ringcap_recv(h, pkts, 4, 10000), 1);
	/* With a packet in hand, waiting for the next neither spins nor misses it. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	CHECK_EQ(ringcap_recv(h, pkts + 1, 3, 300), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	CHECK((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec < 150000000L);
	say(up, 'p');
	CHECK_EQ(ringcap_recv(h, pkts + 1, 3, 10000), 1);
	check_packet(&pkts[0], 0);
	check_packet(&pkts[1], 1);
	ringcap_release(h, 99);	/* more than there are is all */
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	CHECK_EQ(ringcap_recv(h, pkts, 0, 0), -EINVAL);
	say(up, 'e');
	hear(down);
	ringcap_close(h);
	ringcap_close(NULL);
}

static void test_waiting(void)
{
	int listener = fake_listen(dir, "mirror", 0), fd;
	struct fake_queue q;

	fake_make(&q, QUEUE_BYTES, 1);
	struct consumer c = start(wait_for_things);

	fd = grant(listener, &q, 0);
	CHECK_EQ(hear(c.heard), 'p');
	CHECK(put(&q, 0));
	CHECK_EQ(hear(c.heard), 'p');
	CHECK(put(&q, 1));
	CHECK_EQ(hear(c.heard), 'e');
	say(c.say, 'x');
	join(&c);
	close(fd);
	close(listener);
	fake_free(&q);
}

/* ---------------------------------------------------------------- sleeping */

/* A queue and its one consumer, which asks for packets. */
struct session {
	struct fake_queue q;
	struct consumer c;
	int listener, fd;
	uint64_t puts;
};

static void begin_session(struct session *s, uint32_t nr_lanes, void (*run)(int, int))
{
	memset(s, 0, sizeof(*s));
	s->listener = fake_listen(dir, "mirror", 0);
	fake_make(&s->q, QUEUE_BYTES, nr_lanes);
	s->c = start(run);
	s->fd = grant(s->listener, &s->q, 0);
}

static void end_session(struct session *s)
{
	join(&s->c);
	close(s->fd);
	close(s->listener);
	fake_free(&s->q);
}

static void puts_packets(struct session *s, unsigned int n)
{
	while (n--)
		CHECK(put(&s->q, s->puts++));
}

/* Waits for the descriptor, which the program asks for once. */
static int readable(const struct ringcap *h, int timeout_ms)
{
	static const struct ringcap *whose;
	static struct pollfd pfd = { .events = POLLIN };

	if (whose != h)
		pfd.fd = ringcap_fd(h);
	whose = h;
	return poll(&pfd, 1, timeout_ms);
}

static void take(struct ringcap *h, uint64_t i)
{
	struct ringcap_pkt pkt;

	CHECK_EQ(ringcap_recv(h, &pkt, 1, 0), 1);
	check_packet(&pkt, i);
	ringcap_release(h, 1);
}

/* Asks for n packets, and has them when it returns. */
static void ask(int up, int down, unsigned char n)
{
	say(up, (char)n);
	CHECK_EQ(hear(down), 'p');
}

static void serve_asked(struct session *s)
{
	unsigned char n;

	while ((n = (unsigned char)hear(s->c.heard))) {
		if (n == 'T')
			fake_timeout(&s->q);
		else if (n == 'R')
			fake_ring(&s->q);
		else
			puts_packets(s, n);
		say(s->c.say, 'p');
	}
}

/* Whatever a program did before it waits for the descriptor: that is readable when packets are there, and only then. */
static void wait_by_descriptor(int up, int down)
{
	struct ringcap *h = must_open("mirror");
	const struct ringcap_slot *slot;
	struct ringcap_run run = { 0 };
	struct ringcap_pkt pkts[4];
	uint64_t i = 0;

	ask(up, down, 2);
	CHECK_EQ(readable(h, 0), 1);	/* they were there before it had the descriptor */
	take(h, i++);
	CHECK_EQ(readable(h, 0), 1);	/* one is left */
	take(h, i++);
	CHECK_EQ(readable(h, 0), 0);
	ask(up, down, 3);
	CHECK_EQ(readable(h, 0), 1);
	CHECK_EQ(ringcap_recv(h, pkts, 1, 0), 1);
	CHECK_EQ(readable(h, 0), 1);	/* one is in hand, two are left */
	CHECK_EQ(ringcap_recv(h, pkts, 4, 0), 2);
	ringcap_release(h, 3);
	CHECK_EQ(readable(h, 0), 0);
	i += 3;
	/* It reads before it is told, as a program does that also reads by a clock: holding a run with packets in it. */
	CHECK_EQ(ringcap_recv(h, pkts, 1, 0), 0);
	ask(up, down, 3);
	CHECK_EQ(ringcap_read(h, &run, 0), 1);
	slot = ringcap_next(&run);
	check_packet(&(struct ringcap_pkt){ slot, ringcap_data(slot) }, i++);
	CHECK_EQ(readable(h, 0), 1);
	ringcap_done(h, &run);
	CHECK_EQ(readable(h, 0), 1);
	take(h, i++);
	take(h, i++);
	CHECK_EQ(readable(h, 0), 0);
	/* A ring that comes late makes it readable once. */
	ask(up, down, 'R');
	CHECK_EQ(readable(h, 0), 1);
	CHECK_EQ(ringcap_recv(h, pkts, 1, 0), 0);
	CHECK_EQ(readable(h, 0), 0);
	ask(up, down, 1);
	CHECK_EQ(readable(h, 0), 1);
	take(h, i++);
	/* And so for ever. */
	for (int round = 0; round < 1000; round++) {
		CHECK_EQ(readable(h, 0), 0);
		ask(up, down, (unsigned char)(1 + round % 3));
		CHECK_EQ(readable(h, 0), 1);
		for (int k = 0; k <= round % 3; k++)
			take(h, i++);
	}
	ringcap_close(h);
}

static void test_descriptor(void)
{
	struct session s;

	begin_session(&s, 2, wait_by_descriptor);
	serve_asked(&s);
	end_session(&s);
}

/* With a watermark and a timeout: it is woken for either, once, and not before. */
static void wait_for_watermark(int up, int down)
{
	struct ringcap *h = must_open("mirror");
	struct ringcap_pkt pkts[64];
	uint64_t i = 0;

	CHECK_EQ(readable(h, 0), 0);
	ask(up, down, 1);
	CHECK_EQ(readable(h, 20), 0);
	ask(up, down, 'T');
	CHECK_EQ(readable(h, 0), 1);
	take(h, i++);
	CHECK_EQ(readable(h, 0), 0);
	ask(up, down, 'T');	/* nothing is unread */
	CHECK_EQ(readable(h, 0), 0);
	ask(up, down, 40);	/* of 900 bytes on average: above the watermark */
	CHECK_EQ(readable(h, 0), 1);
	i = read_packets(h, i, 41);
	CHECK_EQ(readable(h, 0), 0);
	/* What is read before it was told: the timer finds that sleep over, and rings in the next one only. */
	ask(up, down, 2);
	take(h, i++);
	take(h, i++);
	ask(up, down, 'T');
	CHECK_EQ(readable(h, 0), 0);
	ask(up, down, 2);
	take(h, i++);
	CHECK_EQ(readable(h, 0), 0);
	ask(up, down, 'T');	/* the other one */
	CHECK_EQ(readable(h, 0), 1);
	take(h, i++);
	/* More than the watermark in hand: the next packet is told at once, so that a queue never fills unseen. */
	ask(up, down, 40);
	CHECK_EQ(ringcap_recv(h, pkts, 64, 0), 40);
	CHECK_EQ(ringcap_recv(h, pkts, 64, 0), 0);
	ask(up, down, 1);
	CHECK_EQ(ringcap_recv(h, pkts, 64, 10000), 1);
	ringcap_release(h, 41);
	ringcap_close(h);
}

static void test_watermark(void)
{
	struct session s;

	begin_session(&s, 1, wait_for_watermark);
	s.q.watermark = 20000;
	s.q.timeout_us = 10000;
	serve_asked(&s);
	end_session(&s);
}

/* The server, asked by 't', says whether it sees the timeout that is due. */
static void set_own_timeout(int up, int down)
{
	static const uint32_t refused[] = { 1, 999, 10000001, UINT32_MAX };
	static const uint32_t taken[] = { 1000, 250000, 10000000, 0 };
	struct ringcap *h = must_open("mirror");

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		CHECK_EQ(ringcap_set_timeout(h, taken[i]), 0);
		for (size_t k = 0; k < sizeof(refused) / sizeof(refused[0]); k++)
			CHECK_EQ(ringcap_set_timeout(h, refused[k]), -EINVAL);
		say(up, 't');
		CHECK_EQ(write(up, &taken[i], sizeof(taken[i])), sizeof(taken[i]));
		CHECK_EQ(hear(down), 'p');
	}
	ringcap_close(h);
}

static void test_own_timeout(void)
{
	struct session s;
	uint32_t due;

	begin_session(&s, 2, set_own_timeout);
	while (hear(s.c.heard) == 't') {
		CHECK_EQ(read(s.c.heard, &due, sizeof(due)), sizeof(due));
		CHECK_EQ(s.q.consumer->lane[0].timeout_us, due);
		CHECK_EQ(s.q.consumer->lane[1].timeout_us, 0);
		say(s.c.say, 'p');
	}
	end_session(&s);
}

/* Without the descriptor, a reader that is at work is not rung for, and one that sleeps once. */
static void work_awake(int up, int down)
{
	struct ringcap *h = must_open("mirror");

	say(up, 'a');
	read_packets(h, 0, 1);
	say(up, 'w');
	CHECK_EQ(hear(down), 'g');
	CHECK_EQ(ringcap_recv(h, &(struct ringcap_pkt){ 0 }, 1, 0), 1);
	ringcap_release(h, 1);
	read_packets(h, 2, 101);
	say(up, 'w');
	CHECK_EQ(hear(down), 'g');
	read_packets(h, 101, 102);
	ringcap_close(h);
}

static void test_awake(void)
{
	struct session s;

	begin_session(&s, 2, work_awake);
	CHECK_EQ(hear(s.c.heard), 'a');
	poll(NULL, 0, 50);
	CHECK_EQ(s.q.rings, 0);
	puts_packets(&s, 1);
	CHECK_EQ(hear(s.c.heard), 'w');
	CHECK_EQ(s.q.rings, 1);
	puts_packets(&s, 100);
	CHECK_EQ(s.q.rings, 1);
	say(s.c.say, 'g');
	CHECK_EQ(hear(s.c.heard), 'w');
	CHECK_EQ(s.q.rings, 1);
	say(s.c.say, 'g');
	poll(NULL, 0, 50);
	puts_packets(&s, 1);
	join(&s.c);
	CHECK_EQ(s.q.rings, 2);
	close(s.fd);
	close(s.listener);
	fake_free(&s.q);
}

/* ---------------------------------------------------------------- forks */

static pid_t fork_off(void (*run)(struct ringcap *, struct ringcap_run *), struct ringcap *h, struct ringcap_run *r)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		run(h, r);
		_exit(0);
	}
	return pid;
}

static void wait_for(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void close_copy(struct ringcap *h, struct ringcap_run *run)
{
	ringcap_release(h, 1);
	ringcap_done(h, run);
	ringcap_close(h);
}

/* A child that gives back and closes what it has a copy of changes nothing for its parent: neither its place nor its sleep. */
static void fork_closing(int up, int down)
{
	struct ringcap *h = must_open("mirror");
	struct ringcap_run run = { 0 };
	struct ringcap_pkt pkts[2];
	pid_t pid;

	ask(up, down, 5);
	CHECK_EQ(ringcap_read(h, &run, 0), 1);
	CHECK(ringcap_next(&run) && ringcap_next(&run));
	wait_for(fork_off(close_copy, h, &run));
	ask(up, down, 'S');	/* nothing was released */
	ringcap_done(h, &run);
	CHECK_EQ(ringcap_recv(h, pkts, 2, 0), 2);
	check_packet(&pkts[0], 2);
	ask(up, down, 'M');
	wait_for(fork_off(close_copy, h, &run));
	ask(up, down, 'S');
	check_packet(&pkts[1], 3);
	ringcap_release(h, 2);
	take(h, 4);
	CHECK_EQ(readable(h, 0), 0);
	wait_for(fork_off(close_copy, h, &run));
	ask(up, down, 1);
	CHECK_EQ(readable(h, 0), 1);
	pid = fork_off(close_copy, h, &run);
	take(h, 5);
	wait_for(pid);
	ringcap_close(h);
}

static void test_fork_closing(void)
{
	uint64_t mark = 0;
	struct session s;
	unsigned char n;

	begin_session(&s, 1, fork_closing);
	while ((n = (unsigned char)hear(s.c.heard))) {
		if (n == 'M')
			mark = s.q.consumer->lane[0].released;
		else if (n == 'S')
			CHECK_EQ(s.q.consumer->lane[0].released, mark);
		else
			puts_packets(&s, n);
		say(s.c.say, 'p');
	}
	join(&s.c);
	CHECK_EQ(s.q.consumer->lane[0].released, s.q.kernel[0].producer);
	close(s.fd);
	close(s.listener);
	fake_free(&s.q);
}

static int forked_up, forked_down;

static void read_on(struct ringcap *h, struct ringcap_run *run)
{
	const struct ringcap_slot *slot;
	struct ringcap_pkt pkt;

	(void)run;
	ringcap_release(h, 1);	/* the first of two in hand; 2 was not received */
	CHECK_EQ(ringcap_recv(h, &pkt, 1, 0), 1);
	check_packet(&pkt, 2);
	ringcap_release(h, 2);
	CHECK_EQ(readable(h, 0), 1);
	CHECK_EQ(ringcap_read(h, run, 0), 1);
	slot = ringcap_next(run);
	check_packet(&(struct ringcap_pkt){ slot, ringcap_data(slot) }, 3);
	ringcap_done(h, run);
	CHECK_EQ(readable(h, 0), 0);
	ask(forked_up, forked_down, 1);
	CHECK_EQ(readable(h, 10000), 1);
	read_packets(h, 4, 5);
	ringcap_close(h);
}

/* A program that puts itself in the background goes on with the handle: each packet comes once. */
static void fork_away(int up, int down)
{
	struct ringcap *h = must_open("mirror");
	struct ringcap_run run = { 0 };
	struct ringcap_pkt pkts[2];

	CHECK_EQ(readable(h, 0), 0);	/* asleep */
	ask(up, down, 4);
	CHECK_EQ(ringcap_recv(h, pkts, 2, 0), 2);
	forked_up = up;
	forked_down = down;
	wait_for(fork_off(read_on, h, &run));
	_exit(0);
}

static void test_fork_away(void)
{
	struct session s;

	begin_session(&s, 1, fork_away);
	serve_asked(&s);
	join(&s.c);
	CHECK_EQ(s.q.consumer->lane[0].released, s.q.kernel[0].producer);
	close(s.fd);
	close(s.listener);
	fake_free(&s.q);
}

/* Closed while asleep; the next one finds what came then, and sleeps for itself. */
static void close_asleep(int up, int down)
{
	struct ringcap *h = must_open("mirror");

	(void)down;
	CHECK_EQ(readable(h, 0), 0);
	ringcap_close(h);
	say(up, 'c');
}

static void open_after(int up, int down)
{
	struct ringcap *h;

	ask(up, down, 1);
	h = must_open("mirror");
	CHECK_EQ(readable(h, 0), 1);
	take(h, 0);
	take(h, 1);
	CHECK_EQ(readable(h, 0), 0);
	ask(up, down, 1);
	CHECK_EQ(readable(h, 0), 1);
	take(h, 2);
	ringcap_close(h);
}

static void test_close_asleep(void)
{
	struct session s;

	begin_session(&s, 1, close_asleep);
	CHECK_EQ(hear(s.c.heard), 'c');
	join(&s.c);
	puts_packets(&s, 1);
	CHECK_EQ(s.q.rings, 1);
	s.c = start(open_after);
	CHECK_EQ(hear(s.c.heard), 1);
	puts_packets(&s, 1);
	CHECK_EQ(s.q.rings, 1);	/* once a sleep */
	say(s.c.say, 'p');
	close(s.fd);
	s.fd = grant(s.listener, &s.q, 0);
	serve_asked(&s);
	end_session(&s);
}

/* ---------------------------------------------------------------- two producers, and readers that sleep */

#define RACES 150000

static uint64_t take_all(struct ringcap *h, unsigned int max)
{
	struct ringcap_pkt pkts[8];
	uint64_t n = 0;
	int got;

	while ((got = ringcap_recv(h, pkts, max, 0)) > 0) {
		n += (uint64_t)got;
		ringcap_release(h, (unsigned int)got);
	}
	CHECK_EQ(got, 0);
	return n;
}

/* A run to its end, or one packet of it that stays in hand, as libpcap's pcap_next_ex does it. */
static uint64_t take_run(struct ringcap *h, struct ringcap_run *run, bool one)
{
	uint64_t n = 0;
	int got = ringcap_read(h, run, 0);

	CHECK(got >= 0);
	while (got && (!one || !n) && ringcap_next(run))
		n++;
	if (!one)
		ringcap_done(h, run);
	return n;
}

/* Sleeps in turns in ringcap_recv and on the descriptor, there after having read one batch, a run, one packet or all. */
static void read_and_sleep(int up, int down)
{
	struct ringcap *h = must_open("mirror");
	struct ringcap_run run = { 0 };
	struct ringcap_pkt pkts[8];

	(void)down;
	say(up, 'a');
	for (uint64_t n = 0, turn = 0; n < 2 * RACES; turn++) {
		int got = 0;

		if (turn % 8 >= 6) {
			CHECK_EQ(readable(h, 10000), 1);
			n += take_run(h, &run, turn % 8 == 7);
			continue;
		}
		ringcap_done(h, &run);
		if (turn % 3 == 0) {
			got = ringcap_recv(h, pkts, 8, 10000);
			CHECK(got > 0);	/* 0: there is a packet, or will be, and nobody says so */
		} else {
			CHECK_EQ(readable(h, 10000), 1);
			got = ringcap_recv(h, pkts, 1 + turn % 8, 0);
			CHECK(got >= 0);
		}
		n += (uint64_t)got;
		ringcap_release(h, (unsigned int)got);
		if (turn % 3 == 1)
			n += take_all(h, 8);
		CHECK(n <= 2 * RACES);
	}
	ringcap_close(h);
}

struct producer {
	struct fake_queue *queue;
	uint32_t lane;
};

static void *produce(void *arg)
{
	struct ringcap_slot slot = { .hdr_len = sizeof(slot), .caplen = 60, .len = 60 };
	const struct producer *p = arg;
	uint8_t data[60] = { 0 };

	for (int i = 0; i < RACES; i++)
		while (!fake_put_in(p->queue, p->lane, &slot, data))
			sched_yield();
	return NULL;
}

struct timer {
	struct fake_queue *queue;
	bool over;
};

static void *run_timer(void *arg)
{
	struct timer *t = arg;

	while (!__atomic_load_n(&t->over, __ATOMIC_RELAXED)) {
		fake_timeout(t->queue);
		poll(NULL, 0, 1);
	}
	return NULL;
}

static void race(uint32_t watermark, uint32_t timeout_us)
{
	struct session s;
	struct producer producers[2] = { { &s.q, 0 }, { &s.q, 1 } };
	struct timer timer = { .queue = &s.q };
	pthread_t threads[3];

	begin_session(&s, 2, read_and_sleep);
	s.q.watermark = watermark;
	s.q.timeout_us = timeout_us;
	CHECK_EQ(hear(s.c.heard), 'a');
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&threads[i], NULL, produce, &producers[i]));
	CHECK(!pthread_create(&threads[2], NULL, run_timer, &timer));
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	join(&s.c);
	__atomic_store_n(&timer.over, true, __ATOMIC_RELAXED);
	pthread_join(threads[2], NULL);
	close(s.fd);
	close(s.listener);
	fake_free(&s.q);
}

static void test_nothing_strands(void)
{
	race(0, 0);
	race(1000, 1000);
	race(QUEUE_BYTES / 2, 1000);
}

int main(void)
{
	if (geteuid()) {
		fprintf(stderr, "handover: skipped: making BPF maps needs root\n");
		return 77;
	}
	signal(SIGPIPE, SIG_IGN);
	snprintf(dir, sizeof(dir), "/tmp/ringcap-lib-%d", getpid());
	CHECK(!setenv("RINGCAP_RUN_DIR", dir, 1) && !setenv("RINGCAP_DEV_DIR", "/nonexistent", 1));
	RUN(test_every_packet);
	RUN(test_programs_of_before);
	RUN(test_full);
	RUN(test_agent_restart);
	RUN(test_shunts);
	RUN(test_killed);
	RUN(test_left);
	RUN(test_scribble);
	RUN(test_deleted);
	RUN(test_another_agent);
	RUN(test_replaced);
	RUN(test_refusals);
	RUN(test_user_namespace);
	RUN(test_waiting);
	RUN(test_descriptor);
	RUN(test_watermark);
	RUN(test_own_timeout);
	RUN(test_awake);
	RUN(test_fork_closing);
	RUN(test_fork_away);
	RUN(test_close_asleep);
	RUN(test_nothing_strands);
	CHECK(!fake_remove(dir, "mirror", 0) && !fake_remove_all(dir, "mirror"));
	return 0;
}
