// SPDX-License-Identifier: GPL-2.0-only
/* A consumer that sleeps is woken at the watermark or after the timeout, and not before. */
#define _GNU_SOURCE
#include "fixture.h"

#include <poll.h>
#include <pthread.h>

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
