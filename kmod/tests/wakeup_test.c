// SPDX-License-Identifier: GPL-2.0-only
/* A consumer that sleeps is woken at the watermark or after the timeout, and not before. */
#define _GNU_SOURCE
#include "fixture.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>

/* One packet and nothing after it: only the timer can tell. */
RT_CASE(wakeup_timeout)
{
	struct rt_cluster shape = { .watermark = 65536, .timeout_us = 50000 };
	struct rt_traffic traffic = {};
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	u32 i;

	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(queue.info->timeout_us, 50000);
	RT_EQUAL(queue.info->watermark, 65536);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 20);
	RT_EQUAL(rt_queue_poll(&queue, 100), 0);
	for (i = 0; i < 20; i++) {
		rt_send(fixture.sender, &traffic, i, 1);
		RT_EQUAL(rt_queue_poll(&queue, RT_PATIENCE_MS), POLLIN);
		RT_EQUAL(rt_queue_read(&queue, rt_receive, &receiver), 1);
	}
	RT_EQUAL(rt_queue_poll(&queue, 100), 0);
	rt_queue_close(&queue);
}

/* The consumer's own timeout; it is in the first lane's data. */
static void rt_own_timeout(struct rt_queue *queue, u64 us)
{
	__atomic_store_n(&queue->consumer[0].timeout_us, us, __ATOMIC_RELAXED);
}

/* A consumer that releases what it was woken for in parts does not sleep between them, and does after the last one. */
RT_CASE(wakeup_released_in_parts)
{
	struct rt_cluster shape = { .lanes = 1, .watermark = 65536, .timeout_us = 1000000 };
	struct rt_traffic traffic = {};
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_own_timeout(&queue, 2000000);
	rt_send(fixture.sender, &traffic, 0, 1);
	RT_EQUAL(rt_queue_poll(&queue, 1000), 0);
	rt_send(fixture.sender, &traffic, 1, 1);
	RT_EQUAL(rt_queue_poll(&queue, RT_PATIENCE_MS), POLLIN);
	RT_EQUAL(rt_queue_peek(&queue, NULL, NULL, 1), 1);
	queue.consumer[0].released = queue.position[0];
	RT_EQUAL(rt_queue_poll(&queue, 0), POLLIN);
	rt_send(fixture.sender, &traffic, 2, 1);
	RT_EQUAL(rt_queue_peek(&queue, NULL, NULL, 1), 1);
	queue.consumer[0].released = queue.position[0];
	RT_EQUAL(rt_queue_poll(&queue, 0), 0);
	RT_EQUAL(rt_queue_poll(&queue, RT_PATIENCE_MS), POLLIN);
	rt_queue_close(&queue);

	/* The next consumer was told nothing, though the packet is still there. */
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(rt_queue_poll(&queue, RT_PATIENCE_MS), POLLIN);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 1);
	rt_queue_close(&queue);
}

/* Sends packet @number and returns how long the consumer sleeps over it, in milliseconds. */
static u64 rt_slept_ms(const struct rt_fixture *fixture, const struct rt_traffic *traffic, struct rt_queue *queue,
		       u32 number)
{
	u64 start = rt_now();

	rt_send(fixture->sender, traffic, number, 1);
	RT_EQUAL(rt_queue_poll(queue, RT_PATIENCE_MS), POLLIN);
	RT_EQUAL(rt_queue_read(queue, NULL, NULL), 1);
	return (rt_now() - start) / 1000000;
}

/*
 * It replaces the cluster's timeout, longer or shorter, within bounds. Whatever the consumer writes there, the
 * watermark wakes it, and the next consumer does not inherit it.
 */
RT_CASE(wakeup_own_timeout)
{
	struct rt_cluster shape = { .lanes = 1, .watermark = 16384, .timeout_us = 1000000 };
	struct rt_traffic traffic = { .min_len = 1000 };
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(queue.consumer[0].timeout_us, 0);
	rt_own_timeout(&queue, 3000000);
	RT_CHECK(rt_slept_ms(&fixture, &traffic, &queue, 0) >= 2900, "not longer than the cluster's");
	rt_own_timeout(&queue, 50000);
	RT_CHECK(rt_slept_ms(&fixture, &traffic, &queue, 1) < 900, "not shorter");
	rt_own_timeout(&queue, 1);
	RT_CHECK(rt_slept_ms(&fixture, &traffic, &queue, 2) < 900, "no lower bound");
	rt_own_timeout(&queue, 0);
	RT_CHECK(rt_slept_ms(&fixture, &traffic, &queue, 3) >= 900, "not the cluster's again");

	rt_own_timeout(&queue, ~0ULL);
	rt_send(fixture.sender, &traffic, 4, 1);
	RT_EQUAL(rt_queue_poll(&queue, 0), 0);
	rt_send(fixture.sender, &traffic, 5, 20);
	RT_EQUAL(rt_queue_poll(&queue, 5000), POLLIN);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 21);
	RT_CHECK(rt_slept_ms(&fixture, &traffic, &queue, 25) >= 9000, "not the upper bound");
	/* A timer runs for ten seconds when this consumer goes. */
	rt_send(fixture.sender, &traffic, 26, 1);
	RT_EQUAL(rt_queue_poll(&queue, 0), 0);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 1);
	rt_queue_close(&queue);

	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(queue.consumer[0].timeout_us, 0);
	RT_CHECK(rt_slept_ms(&fixture, &traffic, &queue, 27) < 5000, "inherited");
	rt_queue_close(&queue);
}

/*
 * A sleep that begins after the consumer chose a shorter timeout has that one, though a timer runs for the longer one.
 */
RT_CASE(wakeup_own_timeout_shortened)
{
	struct rt_cluster shape = { .watermark = 65536, .timeout_us = 1000000 };
	struct rt_traffic traffic = {};
	struct rt_fixture fixture;
	struct rt_queue queue;
	u64 start;

	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_own_timeout(&queue, 10000000);
	rt_send(fixture.sender, &traffic, 0, 1);
	RT_EQUAL(rt_queue_poll(&queue, 100), 0);
	rt_own_timeout(&queue, 2000000);
	start = rt_now();
	RT_EQUAL(rt_queue_poll(&queue, RT_PATIENCE_MS), POLLIN);
	RT_CHECK(rt_now() - start < 6000000000ULL, "slept as long as before");
	rt_queue_close(&queue);
}

/* The same for a consumer that sleeps by epoll, which asks the module again when the consumer modifies the entry. */
RT_CASE(wakeup_own_timeout_epoll)
{
	struct rt_cluster shape = { .watermark = 65536, .timeout_us = 1000000 };
	struct epoll_event event = { .events = EPOLLIN };
	struct rt_traffic traffic = {};
	struct rt_fixture fixture;
	struct rt_queue queue;
	int set;
	u64 start;

	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&queue, fixture.cluster, 0);
	set = epoll_create1(EPOLL_CLOEXEC);
	RT_CHECK(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, queue.fd, &event), "%m");
	/* Until poll has taken its second look. */
	RT_EQUAL(epoll_wait(set, &event, 1, 500), 0);
	rt_own_timeout(&queue, 10000000);
	rt_send(fixture.sender, &traffic, 0, 1);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 1);
	rt_own_timeout(&queue, 2000000);
	RT_CHECK(!epoll_ctl(set, EPOLL_CTL_MOD, queue.fd, &(struct epoll_event){ .events = EPOLLIN }), "%m");
	start = rt_now();
	rt_send(fixture.sender, &traffic, 1, 1);
	RT_EQUAL(epoll_wait(set, &event, 1, RT_PATIENCE_MS), 1);
	RT_CHECK(rt_now() - start < 6000000000ULL, "slept as long as before");
	close(set);
	rt_queue_close(&queue);
}

/* With the timeout 0 the cluster wakes for each packet, whatever the consumer would like. */
RT_CASE(wakeup_own_timeout_at_once)
{
	struct rt_cluster shape = { .watermark = 65536, .at_once = true };
	struct rt_traffic traffic = {};
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_own_timeout(&queue, 10000000);
	RT_CHECK(rt_slept_ms(&fixture, &traffic, &queue, 0) < 5000, "not at once");
	rt_queue_close(&queue);
}

/* A queue of one lane with a long timeout, and an epoll set that waits for it. Returns the set. */
static int rt_epoll_open(struct rt_fixture *fixture, struct rt_cluster *shape, struct rt_queue *queue)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set;

	rt_fixture_open(fixture, shape);
	rt_queue_open(queue, fixture->cluster, 0);
	rt_own_timeout(queue, 10000000);
	set = epoll_create1(EPOLL_CLOEXEC);
	RT_CHECK(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, queue->fd, &event), "%m");
	return set;
}

/*
 * Sends 20 packets, releases all or all but the last, asks whether to sleep, and then takes the release back. That
 * looks like packets that a producer published just then, without seeing the sleeper. Returns whether something wakes
 * the consumer, which does not ask again.
 */
static bool rt_wakes_late(const struct rt_fixture *fixture, struct rt_queue *queue, int set, bool but_one)
{
	const struct rt_traffic traffic = { .min_len = 1000 };
	const u64 *producer = (const u64 *)&queue->kernel[0].producer;
	u64 *released = (u64 *)&queue->consumer[0].released;
	u64 before = __atomic_load_n(released, __ATOMIC_RELAXED);
	struct epoll_event event = { .events = EPOLLIN };
	u64 seen = rt_ring_seen(fixture->ring), last;
	int woken;

	/* Until poll has taken its looks of before. */
	RT_EQUAL(epoll_wait(set, &event, 1, 500), 0);
	rt_send(fixture->sender, &traffic, 0, 19);
	rt_ring_wait(fixture->ring, seen + 19);
	last = __atomic_load_n(producer, __ATOMIC_ACQUIRE);
	rt_send(fixture->sender, &traffic, 19, 1);
	rt_ring_wait(fixture->ring, seen + 20);
	__atomic_store_n(released, but_one ? last : __atomic_load_n(producer, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	RT_CHECK(!epoll_ctl(set, EPOLL_CTL_MOD, queue->fd, &event), "%m");
	RT_EQUAL(epoll_wait(set, &event, 1, 0), 0);
	__atomic_store_n(released, before, __ATOMIC_RELEASE);
	woken = epoll_wait(set, &event, 1, 2000);
	RT_EQUAL(rt_queue_read(queue, NULL, NULL), 20);
	return woken;
}

/*
 * Poll looks a second time, for packets that it could not see yet, whether something was unread or nothing. On a slow
 * machine that look may come before the packets are there.
 */
RT_CASE(wakeup_second_look)
{
	struct rt_cluster shape = { .lanes = 1, .watermark = 16384, .timeout_us = 1000000 };
	bool over_nothing = false, over_one = false;
	struct rt_fixture fixture;
	struct rt_queue queue;
	int set, round;

	set = rt_epoll_open(&fixture, &shape, &queue);
	for (round = 0; round < 20 && !over_nothing; round++)
		over_nothing = rt_wakes_late(&fixture, &queue, set, false);
	for (round = 0; round < 20 && !over_one; round++)
		over_one = rt_wakes_late(&fixture, &queue, set, true);
	RT_CHECK(over_nothing, "no look while nothing is unread");
	RT_CHECK(over_one, "no look while something is unread");
	close(set);
	rt_queue_close(&queue);
}

/* Another watermark and another timeout of the cluster take effect in a sleep that has begun. */
RT_CASE(wakeup_changed_asleep)
{
	struct rt_cluster shape = { .lanes = 1, .watermark = 65536, .timeout_us = 1000000 };
	struct rt_traffic traffic = { .min_len = 1000 };
	struct epoll_event event;
	struct rt_fixture fixture;
	struct rt_queue queue;
	int set;

	set = rt_epoll_open(&fixture, &shape, &queue);
	rt_send(fixture.sender, &traffic, 0, 20);
	rt_ring_wait(fixture.ring, 20);
	RT_EQUAL(epoll_wait(set, &event, 1, 100), 0);
	shape.watermark = 16384;
	RT_EQUAL(rt_cluster_set(&shape), 0);
	RT_EQUAL(epoll_wait(set, &event, 1, 5000), 1);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 20);

	/* The timer runs for one packet, and after that over nothing. */
	rt_send(fixture.sender, &traffic, 20, 1);
	RT_EQUAL(epoll_wait(set, &event, 1, 100), 0);
	shape.timeout_us = 0;
	shape.at_once = true;
	RT_EQUAL(rt_cluster_set(&shape), 0);
	RT_EQUAL(epoll_wait(set, &event, 1, 5000), 1);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 1);
	RT_EQUAL(epoll_wait(set, &event, 1, 0), 0);
	rt_send(fixture.sender, &traffic, 21, 1);
	RT_EQUAL(epoll_wait(set, &event, 1, 5000), 1);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 1);
	close(set);
	rt_queue_close(&queue);
}

struct rt_stream {
	const struct rt_fixture *fixture;
	u32 burst;
	u32 sent;
	bool ended;
};

/* Sends some packets each few milliseconds, for three seconds. */
static void *rt_send_stream(void *arg)
{
	const struct rt_traffic traffic = {};
	struct rt_stream *stream = arg;
	const u64 end = rt_now() + 3000000000ULL;

	while (rt_now() < end) {
		rt_send(stream->fixture->sender, &traffic, stream->sent, stream->burst);
		stream->sent += stream->burst;
		usleep(2000);
	}
	__atomic_store_n(&stream->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

static u32 rt_sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

/*
 * While packets keep coming, the consumer is woken once for each timeout of its own and for each watermark: not by the
 * cluster's timeout, by the second look that poll takes, or by a timer from before the last read.
 */
static void rt_count_wakeups(u32 burst)
{
	struct rt_cluster shape = { .lanes = 1, .watermark = 65536 };
	struct rt_stream stream = { .burst = burst };
	const struct rt_traffic traffic = {};
	struct rt_fixture fixture;
	struct rt_queue queue;
	u32 read = 0, sleeps, watermarks;
	pthread_t thread;

	rt_fixture_open(&fixture, &shape);
	stream.fixture = &fixture;
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_own_timeout(&queue, 500000);
	RT_CHECK(!pthread_create(&thread, NULL, rt_send_stream, &stream), "no thread");
	sleeps = rt_sleeps();
	while (!__atomic_load_n(&stream.ended, __ATOMIC_ACQUIRE)) {
		/* Read by its own clock, too, as libpcap does: the timer for these packets still runs then. */
		rt_queue_poll(&queue, 450);
		read += rt_queue_read(&queue, NULL, NULL);
	}
	sleeps = rt_sleeps() - sleeps;
	pthread_join(thread, NULL);
	RT_EVENTUALLY((read += rt_queue_read(&queue, NULL, NULL)) == stream.sent, 5000);
	watermarks = (rt_traffic_bytes(&traffic, 0, stream.sent) + 40ULL * stream.sent) / shape.watermark;
	RT_CHECK(sleeps <= 9 + watermarks, "slept %u times, %u packets reached the watermark %u times", sleeps,
		 stream.sent, watermarks);
	rt_queue_close(&queue);
}

/* The rates are those of a quick machine: 1,000, 20,000 and 50,000 packets a second. */
RT_CASE(wakeup_count)
{
	rt_count_wakeups(2);
}

RT_CASE(wakeup_count_20000)
{
	rt_count_wakeups(40);
}

RT_CASE(wakeup_count_50000)
{
	rt_count_wakeups(100);
}

struct rt_late_sender {
	const struct rt_fixture *fixture;
	const struct rt_traffic *traffic;
	u32 from, count;
};

static void *rt_send_late(void *arg)
{
	const struct rt_late_sender *late = arg;

	/* So that the other thread is asleep in poll; if it is not, it only finds the packets sooner. */
	usleep(50000);
	rt_send(late->fixture->sender, late->traffic, late->from, late->count);
	return NULL;
}

/* The packet comes while the consumer sleeps already. */
RT_CASE(wakeup_timeout_asleep)
{
	struct rt_cluster shape = { .watermark = 65536, .timeout_us = 20000 };
	struct rt_traffic traffic = {};
	struct rt_late_sender late = { .traffic = &traffic, .count = 1 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	pthread_t thread;

	rt_fixture_open(&fixture, &shape);
	late.fixture = &fixture;
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 20);
	for (late.from = 0; late.from < 10; late.from++) {
		RT_CHECK(!pthread_create(&thread, NULL, rt_send_late, &late), "no thread");
		RT_EQUAL(rt_queue_poll(&queue, RT_PATIENCE_MS), POLLIN);
		RT_EQUAL(rt_queue_read(&queue, rt_receive, &receiver), 1);
		pthread_join(thread, NULL);
	}
	rt_queue_close(&queue);
}

/*
 * Packets below the watermark, from @from to 20 further, wake nobody; the one that reaches it does. Returns false if
 * the timeout passed before that was seen: then the result is not known.
 */
static bool rt_wakes_at_watermark(struct rt_late_sender *late, struct rt_queue *queue, u32 from)
{
	const u64 start = rt_now(), in_time = start + 950000000ULL;
	pthread_t thread;
	int below, at;

	rt_send(late->fixture->sender, late->traffic, from, 20);
	below = rt_queue_poll(queue, 0);
	late->from = from + 20;
	RT_CHECK(!pthread_create(&thread, NULL, rt_send_late, late), "no thread");
	at = rt_queue_poll(queue, RT_PATIENCE_MS);
	pthread_join(thread, NULL);
	RT_EQUAL(at, POLLIN);
	return !below && rt_now() < in_time;
}

/* With the longest timeout. On a slow machine it may take several rounds to see the one without the other. */
RT_CASE(wakeup_watermark)
{
	struct rt_cluster shape = { .lanes = 1, .watermark = 40000, .timeout_us = 1000000 };
	struct rt_traffic traffic = { .min_len = 1000 };
	struct rt_late_sender late = { .traffic = &traffic, .count = 40 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	bool seen = false;
	u32 round;

	rt_fixture_open(&fixture, &shape);
	late.fixture = &fixture;
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 20 * 60);
	for (round = 0; round < 20 && !seen; round++) {
		seen = rt_wakes_at_watermark(&late, &queue, round * 60);
		RT_EVENTUALLY(rt_queue_read(&queue, rt_receive, &receiver) == 0 && receiver.count == (round + 1) * 60, 5000);
	}
	RT_CHECK(seen, "only the timeout wakes");
	rt_queue_close(&queue);
}

/* Two consumers of two queues sleep; only the one with packets is woken. */
RT_CASE(wakeup_own_queue)
{
	struct rt_cluster shape = { .queues = 8, .timeout_us = 1000 };
	struct rt_traffic traffic = {};
	struct rt_fixture fixture;
	struct rt_queue queues[8];
	struct pollfd ready[8];
	u32 i, awake = 0;

	rt_fixture_open(&fixture, &shape);
	for (i = 0; i < 8; i++) {
		rt_queue_open(&queues[i], fixture.cluster, i);
		ready[i] = (struct pollfd){ .fd = queues[i].fd, .events = POLLIN };
	}
	rt_send(fixture.sender, &traffic, 0, 10);
	RT_EQUAL(poll(ready, 8, RT_PATIENCE_MS), 1);
	/* The first has woken us; the others follow. */
	rt_ring_wait(fixture.ring, 10);
	for (i = 0; i < 8; i++) {
		awake += !!ready[i].revents;
		RT_EQUAL(rt_queue_read(&queues[i], NULL, NULL), ready[i].revents ? 10 : 0);
		rt_queue_close(&queues[i]);
	}
	RT_EQUAL(awake, 1);
}

/* ---- lone packets ---- */

/*
 * Each sender of a round sends one packet, and nobody sends another before the consumer has been told of these. So a
 * packet that neither its producer nor a timer tells of is never read.
 */
struct rt_lone {
	struct rt_fixture fixture;
	struct rt_traffic traffic;
	struct rt_queue queue;
	u32 senders, rounds;
	u32 round;	/* the one that is under way; then @rounds */
};

struct rt_lone_sender {
	struct rt_lone *lone;
	u32 cpu;
	pthread_t thread;
};

/* A few in each round, at least one. */
static bool rt_lone_sends(const struct rt_lone *lone, u32 cpu, u32 round)
{
	return cpu == round % lone->senders || cpu == round / lone->senders % lone->senders;
}

static u32 rt_lone_count(const struct rt_lone *lone, u32 round)
{
	u32 cpu, count = 0;

	for (cpu = 0; cpu < lone->senders; cpu++)
		count += rt_lone_sends(lone, cpu, round);
	return count;
}

/*
 * Sends at about the time of one of the looks: that of the timer, which comes a timeout after the sleep began, those
 * that follow it a millisecond later each, or that of the consumer itself.
 */
static void *rt_send_lone(void *arg)
{
	const struct rt_lone_sender *sender = arg;
	struct rt_lone *lone = sender->lone;
	u64 seed = sender->cpu;
	u32 round, done = ~0U;

	rt_pin(sender->cpu);
	while ((round = __atomic_load_n(&lone->round, __ATOMIC_ACQUIRE)) < lone->rounds) {
		if (round == done || !rt_lone_sends(lone, sender->cpu, round)) {
			usleep(100);
			continue;
		}
		usleep(round % 5 * 1000 + rt_random(&seed) % 400);
		rt_send(lone->fixture.sender, &lone->traffic, round * lone->senders + sender->cpu, 1);
		done = round;
	}
	return NULL;
}

/* How a consumer waits: by poll; by epoll, which asks before each sleep; by one that asks only when it is woken. */
enum rt_wait {
	RT_WAIT_POLL,
	RT_WAIT_LEVEL,
	RT_WAIT_EDGE,
};

static int rt_lone_set(struct rt_queue *queue, enum rt_wait how)
{
	struct epoll_event event = { .events = EPOLLIN | (how == RT_WAIT_EDGE ? EPOLLET : 0) };
	int set = epoll_create1(EPOLL_CLOEXEC);

	RT_CHECK(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, queue->fd, &event), "%m");
	return set;
}

static void rt_lone_read(struct rt_lone *lone, enum rt_wait how, int set)
{
	u32 got = 0, count = rt_lone_count(lone, lone->round);
	struct epoll_event event;

	while (got < count) {
		int woken = how == RT_WAIT_POLL ? !!rt_queue_poll(&lone->queue, RT_PATIENCE_MS) :
						  epoll_wait(set, &event, 1, RT_PATIENCE_MS);

		RT_CHECK(woken == 1, "round %u: nobody tells of packet %u of %u", lone->round, got + 1, count);
		got += rt_queue_read(&lone->queue, NULL, NULL);
	}
	RT_EQUAL(got, count);
}

static void rt_lone_run(enum rt_wait how, u32 timeout_us)
{
	struct rt_cluster shape = { .watermark = 65536, .timeout_us = timeout_us };
	struct rt_lone lone = { .senders = (u32)sysconf(_SC_NPROCESSORS_ONLN), .rounds = rt_scaled(600) };
	struct rt_lone_sender senders[8];
	u32 i;
	int set;

	lone.senders = lone.senders < 8 ? lone.senders : 8;
	rt_fixture_open(&lone.fixture, &shape);
	rt_queue_open(&lone.queue, lone.fixture.cluster, 0);
	set = rt_lone_set(&lone.queue, how);
	for (i = 0; i < lone.senders; i++) {
		senders[i] = (struct rt_lone_sender){ .lone = &lone, .cpu = i };
		RT_CHECK(!pthread_create(&senders[i].thread, NULL, rt_send_lone, &senders[i]), "no thread");
	}
	while (lone.round < lone.rounds) {
		rt_lone_read(&lone, how, set);
		__atomic_store_n(&lone.round, lone.round + 1, __ATOMIC_RELEASE);
	}
	for (i = 0; i < lone.senders; i++)
		pthread_join(senders[i].thread, NULL);
	close(set);
	rt_queue_close(&lone.queue);
}

RT_CASE(wakeup_lone_poll)
{
	rt_lone_run(RT_WAIT_POLL, 1000);
}

RT_CASE(wakeup_lone_level)
{
	rt_lone_run(RT_WAIT_LEVEL, 1000);
}

RT_CASE(wakeup_lone_edge)
{
	rt_lone_run(RT_WAIT_EDGE, 1000);
}

/* Below a millisecond, producers have a barrier. */
RT_CASE(wakeup_lone_short)
{
	rt_lone_run(RT_WAIT_EDGE, 200);
}
