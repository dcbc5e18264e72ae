// SPDX-License-Identifier: GPL-2.0-only
/* Several CPUs produce into one queue at once: no slot is damaged and every counter is exact. */
#define _GNU_SOURCE
#include "fixture.h"

#include <pthread.h>
#include <sched.h>

#define RT_SENDERS 2

struct rt_producer {
	const struct rt_traffic *traffic;
	int sender;
	u32 cpu;
	u32 from, count;
	const u64 *received;	/* by the consumer, of everybody's packets */
	u64 *sent;
};

/* Sends in bursts, and waits with the next until the consumer is no more than @ahead packets behind. */
static void *rt_produce(void *arg)
{
	const struct rt_producer *producer = arg;
	const u32 burst = 32, ahead = 300;
	u32 done, now;

	rt_pin(producer->cpu);
	for (done = 0; done < producer->count; done += now) {
		now = producer->count - done < burst ? producer->count - done : burst;
		while (producer->received && __atomic_load_n(producer->sent, __ATOMIC_RELAXED) >
		       __atomic_load_n(producer->received, __ATOMIC_RELAXED) + ahead)
			sched_yield();
		rt_send(producer->sender, producer->traffic, producer->from + done, now);
		__atomic_fetch_add(producer->sent, now, __ATOMIC_RELAXED);
	}
	return NULL;
}

struct rt_smp {
	struct rt_fixture fixture;
	struct rt_traffic traffic;
	struct rt_producer producers[RT_SENDERS];
	pthread_t threads[RT_SENDERS];
	u64 sent;
	u64 received;
};

static void rt_smp_start(struct rt_smp *smp, u32 count, bool paced)
{
	u32 i;

	for (i = 0; i < RT_SENDERS; i++) {
		smp->producers[i] = (struct rt_producer){
			.traffic = &smp->traffic, .sender = smp->fixture.sender, .cpu = i, .from = i * count,
			.count = count, .received = paced ? &smp->received : NULL, .sent = &smp->sent };
		RT_CHECK(!pthread_create(&smp->threads[i], NULL, rt_produce, &smp->producers[i]), "no thread");
	}
}

static void rt_smp_join(struct rt_smp *smp)
{
	u32 i;

	for (i = 0; i < RT_SENDERS; i++)
		pthread_join(smp->threads[i], NULL);
}

static void rt_smp_open(struct rt_smp *smp, struct rt_cluster *shape)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < RT_SENDERS)
		rt_skip("this machine has one processor");
	memset(smp, 0, sizeof(*smp));
	smp->traffic = (struct rt_traffic){ .flows = 16, .min_len = 60, .max_len = 1200 };
	rt_fixture_open(&smp->fixture, shape);
}

/* Reads until everything has come, so that nothing is lost. */
static void rt_smp_lossless(struct rt_smp *smp, u32 count)
{
	struct rt_receiver receiver;
	struct rt_queue queue;
	u64 deadline = rt_now() + 60000000000ULL;

	rt_queue_open(&queue, smp->fixture.cluster, 0);
	rt_receiver_init(&receiver, &smp->traffic, smp->fixture.ifindex, RT_SENDERS * count);
	rt_smp_start(smp, count, true);
	while (receiver.count < RT_SENDERS * count) {
		if (!rt_queue_read(&queue, rt_receive, &receiver))
			rt_queue_poll(&queue, 100);
		__atomic_store_n(&smp->received, receiver.count, __ATOMIC_RELAXED);
		RT_CHECK(rt_now() < deadline, "%llu of %u packets came", (unsigned long long)receiver.count,
			 RT_SENDERS * count);
	}
	rt_smp_join(smp);
	rt_fixture_check(&smp->fixture, RT_SENDERS * count, 0, RT_SENDERS * count, 0, 0);
	rt_queue_close(&queue);
}

/* A lane for each CPU. */
RT_CASE(smp_own_lanes)
{
	struct rt_smp smp;

	rt_smp_open(&smp, &(struct rt_cluster){ .timeout_us = 2000 });
	rt_smp_lossless(&smp, rt_scaled(4000));
}

/* One lane for all of them. */
RT_CASE(smp_shared_lane)
{
	struct rt_smp smp;

	rt_smp_open(&smp, &(struct rt_cluster){ .lanes = 1, .timeout_us = 2000 });
	rt_smp_lossless(&smp, rt_scaled(4000));
}

/* Receive packet steering: one CPU sends, both receive. */
RT_CASE(smp_receive_steering)
{
	struct rt_smp smp;

	rt_smp_open(&smp, &(struct rt_cluster){ .lanes = 1, .timeout_us = 2000 });
	RT_CHECK(rt_mount_sysfs(), "sysfs of this namespace: %m");
	RT_CHECK(rt_write_file("/sys/class/net/vb/queues/rx-0/rps_cpus", "3"), "steering: %m");
	rt_smp_lossless(&smp, rt_scaled(4000));
}

/* Too fast for a consumer that reads only at the end: what is there is whole, and the rest is counted. */
static void rt_smp_overrun(struct rt_cluster *shape)
{
	const u32 count = rt_scaled(3000);
	struct rt_receiver receiver;
	struct rt_queue queue;
	struct rt_smp smp;

	rt_smp_open(&smp, shape);
	rt_queue_open(&queue, smp.fixture.cluster, 0);
	rt_receiver_init(&receiver, &smp.traffic, smp.fixture.ifindex, RT_SENDERS * count);
	rt_smp_start(&smp, count, false);
	rt_smp_join(&smp);
	RT_EVENTUALLY(rt_ring_seen(smp.fixture.ring) == RT_SENDERS * count, 10000);
	rt_queue_read(&queue, rt_receive, &receiver);
	RT_CHECK(receiver.count > 0, "nothing came");
	rt_fixture_check(&smp.fixture, RT_SENDERS * count, 0, receiver.count, RT_SENDERS * count - receiver.count, 0);
	rt_queue_close(&queue);
}

RT_CASE(smp_overrun_own_lanes)
{
	rt_smp_overrun(&(struct rt_cluster){ .lane_size = RINGCAP_LANE_SIZE_MIN });
}

RT_CASE(smp_overrun_shared_lane)
{
	rt_smp_overrun(&(struct rt_cluster){ .lane_size = RINGCAP_LANE_SIZE_MIN, .lanes = 1 });
}
