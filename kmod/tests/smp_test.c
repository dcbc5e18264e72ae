// SPDX-License-Identifier: GPL-2.0-only
/* Several CPUs produce into one queue at once: no slot is damaged and every counter is exact. */
#define _GNU_SOURCE
#include "fixture.h"

#include <pthread.h>
#include <sched.h>

#define RT_SENDERS_MAX 8

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
	u32 senders;	/* one for each processor */
	struct rt_producer producers[RT_SENDERS_MAX];
	pthread_t threads[RT_SENDERS_MAX];
	u64 sent;
	u64 received;
};

static void rt_smp_start(struct rt_smp *smp, u32 count, bool paced)
{
	u32 i;

	for (i = 0; i < smp->senders; i++) {
		smp->producers[i] = (struct rt_producer){
			.traffic = &smp->traffic, .sender = smp->fixture.sender, .cpu = i, .from = i * count,
			.count = count, .received = paced ? &smp->received : NULL, .sent = &smp->sent };
		RT_CHECK(!pthread_create(&smp->threads[i], NULL, rt_produce, &smp->producers[i]), "no thread");
	}
}

static void rt_smp_join(struct rt_smp *smp)
{
	u32 i;

	for (i = 0; i < smp->senders; i++)
		pthread_join(smp->threads[i], NULL);
}

static void rt_smp_open(struct rt_smp *smp, struct rt_cluster *shape)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (processors < 2)
		rt_skip("this machine has one processor");
	memset(smp, 0, sizeof(*smp));
	smp->senders = processors < RT_SENDERS_MAX ? (u32)processors : RT_SENDERS_MAX;
	smp->traffic = (struct rt_traffic){ .flows = 16, .min_len = 60, .max_len = 1200 };
	rt_fixture_open(&smp->fixture, shape);
}

/* Reads until everything has come, so that nothing is lost. */
static void rt_smp_lossless(struct rt_smp *smp, u32 count)
{
	struct rt_receiver receiver;
	struct rt_queue queue;
	u64 deadline = rt_now() + RT_PATIENCE_NS;

	rt_queue_open(&queue, smp->fixture.cluster, 0);
	rt_receiver_init(&receiver, &smp->traffic, smp->fixture.ifindex, smp->senders * count);
	rt_smp_start(smp, count, true);
	while (receiver.count < smp->senders * count) {
		if (!rt_queue_read(&queue, rt_receive, &receiver))
			rt_queue_poll(&queue, 100);
		__atomic_store_n(&smp->received, receiver.count, __ATOMIC_RELAXED);
		RT_CHECK(rt_now() < deadline, "%llu of %u packets came", (unsigned long long)receiver.count,
			 smp->senders * count);
	}
	rt_smp_join(smp);
	rt_fixture_check(&smp->fixture, smp->senders * count, 0, smp->senders * count, 0, 0);
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
	rt_receiver_init(&receiver, &smp.traffic, smp.fixture.ifindex, smp.senders * count);
	rt_smp_start(&smp, count, false);
	rt_smp_join(&smp);
	rt_ring_wait(smp.fixture.ring, smp.senders * count);
	rt_queue_read(&queue, rt_receive, &receiver);
	RT_CHECK(receiver.count > 0, "nothing came");
	rt_fixture_check(&smp.fixture, smp.senders * count, 0, receiver.count, smp.senders * count - receiver.count, 0);
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

/* The same again and again, from empty queues, in all shapes: what is rare shows itself. */
RT_CASE(smp_hundred_runs)
{
	const u32 runs = getenv("RT_FULL") ? 100 : rt_scaled(12);
	struct rt_smp smp;
	u32 run;

	rt_smp_open(&smp, &(struct rt_cluster){ .timeout_us = 1000 });
	for (run = 0; run < runs; run++) {
		struct rt_cluster shape = { .name = smp.fixture.cluster, .lanes = 1 + run % 3, .timeout_us = 1000,
					    .lane_size = RT_LANE_SIZE << run % 2 };

		/* Another shape has new accounts, and so must the ring. */
		RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, smp.fixture.ring), 0);
		RT_EQUAL(rt_cluster_set(&shape), 0);
		RT_EQUAL(rt_fixture_change(&smp.fixture, &(struct rt_ring){}), 0);
		smp.sent = 0;
		smp.received = 0;
		rt_smp_lossless(&smp, rt_scaled(600));
	}
}

/* ---- several devices ---- */

#define RT_DEVICES 3

struct rt_devices {
	struct rt_receiver receivers[RT_DEVICES];
	u64 count;
};

static void rt_receive_any(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_devices *devices = arg;
	u32 i;

	for (i = 0; i < RT_DEVICES; i++)
		if (devices->receivers[i].ifindex == slot->ifindex)
			break;
	RT_CHECK(i < RT_DEVICES, "interface %u", slot->ifindex);
	rt_receive(slot, packet, &devices->receivers[i]);
	devices->count++;
}

/* A ring for each of several devices into one cluster. The devices' packets arrive on different CPUs. */
static void rt_smp_devices(struct rt_cluster *shape)
{
	const u32 count = rt_scaled(3000);
	u64 received = 0, sent = 0, deadline = rt_now() + RT_PATIENCE_NS;
	struct rt_producer producers[RT_DEVICES];
	struct rt_devices devices = {};
	pthread_t threads[RT_DEVICES];
	struct rt_ring_counts ring;
	struct rt_queue_counts counts;
	struct rt_queue queues[2];
	struct rt_smp smp;
	char a[8], name[16];
	u32 i;

	rt_smp_open(&smp, shape);
	rt_queue_open(&queues[0], smp.fixture.cluster, 0);
	rt_queue_open(&queues[1], smp.fixture.cluster, 1);
	for (i = 0; i < RT_DEVICES; i++) {
		struct rt_ring more = { .name = name, .outputs = { smp.fixture.cluster } };
		char b[8];

		snprintf(a, sizeof(a), "a%u", i);
		snprintf(b, sizeof(b), "b%u", i);
		snprintf(name, sizeof(name), "ring-%u", i);
		rt_veth_create(a, b);
		more.taps[0] = (struct rt_tap){ rt_ifindex(b), RINGCAP_DIRECTION_RX };
		RT_EQUAL(rt_ring_set(&more), 0);
		rt_receiver_init(&devices.receivers[i], &smp.traffic, more.taps[0].ifindex, count);
		producers[i] = (struct rt_producer){ .traffic = &smp.traffic, .sender = rt_sender_open(a),
						     .cpu = i % smp.senders, .count = count, .received = &received, .sent = &sent };
	}
	for (i = 0; i < RT_DEVICES; i++)
		RT_CHECK(!pthread_create(&threads[i], NULL, rt_produce, &producers[i]), "no thread");
	while (devices.count < RT_DEVICES * count) {
		if (!rt_queue_read(&queues[0], rt_receive_any, &devices) + !rt_queue_read(&queues[1], rt_receive_any, &devices) == 2)
			sched_yield();
		__atomic_store_n(&received, devices.count, __ATOMIC_RELAXED);
		RT_CHECK(rt_now() < deadline, "%llu of %u packets came", (unsigned long long)devices.count, RT_DEVICES * count);
	}
	for (i = 0; i < RT_DEVICES; i++)
		pthread_join(threads[i], NULL);
	rt_settle();
	for (i = 0; i < RT_DEVICES; i++) {
		snprintf(name, sizeof(name), "ring-%u", i);
		rt_ring_counts(name, &ring);
		RT_EQUAL(ring.seen, count);
		RT_EQUAL(ring.passed, count);
	}
	rt_cluster_counts(smp.fixture.cluster, &counts);
	RT_EQUAL(counts.delivered, RT_DEVICES * count);
	rt_queue_close(&queues[0]);
	rt_queue_close(&queues[1]);
}

RT_CASE(smp_devices_own_lanes)
{
	rt_smp_devices(&(struct rt_cluster){ .queues = 2, .timeout_us = 1000 });
}

RT_CASE(smp_devices_shared_lane)
{
	rt_smp_devices(&(struct rt_cluster){ .queues = 2, .lanes = 1, .timeout_us = 1000 });
}
