// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPUs get lanes of their own, lose them and get others, under traffic. No packet is lost, and the packets of each CPU
 * are read in order.
 */
#define _GNU_SOURCE
#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#define RT_SOURCES_MAX	8
#define RT_BURST	16

struct rt_lanes;

/**
 * struct rt_source - a thread that sends
 * @cpu: where it does, -1 = on several in turn
 * @pause_us: between bursts
 * @rest_us: after each 16 of them
 * @first: number of its first packet
 * @sent, @received: packets of it
 * @next: no packet below this may come any more; 0 = in any order
 * @lanes: a bit for each lane that one came by
 */
struct rt_source {
	struct rt_lanes *all;
	pthread_t thread;
	int cpu;
	u32 pause_us;
	u32 rest_us;
	u32 first;
	u32 sent;
	u32 received;
	u32 next;
	u64 lanes;
};

/**
 * struct rt_lanes - a queue that several processors produce into
 * @count: packets of each source; 0 = until @stop, without waiting for the consumer
 */
struct rt_lanes {
	struct rt_fixture fixture;
	struct rt_traffic traffic;
	struct rt_queue queue;
	struct rt_receiver receiver;
	struct rt_source sources[RT_SOURCES_MAX];
	u32 nr_sources;
	u32 nr_cpus;
	u32 count;
	int stop;
};

static void rt_set_idle(const char *milliseconds)
{
	RT_CHECK(rt_write_file("/sys/module/ringcap/parameters/lane_idle_ms", milliseconds), "%m");
}

/* It may have been taken offline. */
static void rt_move_to(u32 cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static bool rt_is_stopped(const struct rt_lanes *lanes)
{
	return __atomic_load_n(&lanes->stop, __ATOMIC_RELAXED);
}

static u32 rt_under_way(const struct rt_source *source)
{
	return source->sent - __atomic_load_n(&source->received, __ATOMIC_RELAXED);
}

/* A source that moves does so when all its packets have been read: CPUs do not wait for each other. */
static void rt_source_place(const struct rt_source *source, u32 burst)
{
	const struct rt_lanes *lanes = source->all;

	if (source->cpu >= 0) {
		rt_move_to((u32)source->cpu);
		return;
	}
	if (burst % 4)
		return;
	while (lanes->count && rt_under_way(source) && !rt_is_stopped(lanes))
		sched_yield();
	rt_move_to((source->first + burst / 4) % lanes->nr_cpus);
}

static void *rt_source_run(void *arg)
{
	struct rt_source *source = arg;
	const struct rt_lanes *lanes = source->all;
	u32 burst;

	for (burst = 0; !rt_is_stopped(lanes) && (!lanes->count || source->sent < lanes->count); burst++) {
		rt_source_place(source, burst);
		rt_send(lanes->fixture.sender, &lanes->traffic, source->first + source->sent % (1 << 20), RT_BURST);
		source->sent += RT_BURST;
		if (source->pause_us)
			usleep(source->pause_us);
		if (source->rest_us && burst % 16 == 15)
			usleep(source->rest_us);
		while (lanes->count && rt_under_way(source) > 4 * RT_BURST && !rt_is_stopped(lanes))
			sched_yield();
	}
	return NULL;
}

static void rt_lanes_open(struct rt_lanes *lanes, struct rt_cluster *shape)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (processors < 2)
		rt_skip("this machine has one processor");
	memset(lanes, 0, sizeof(*lanes));
	lanes->nr_cpus = processors < RT_SOURCES_MAX ? (u32)processors : RT_SOURCES_MAX;
	lanes->nr_sources = lanes->nr_cpus;
	lanes->traffic = (struct rt_traffic){ .flows = 16, .min_len = 60, .max_len = 300 };
	rt_fixture_open(&lanes->fixture, shape);
	rt_queue_open(&lanes->queue, lanes->fixture.cluster, 0);
}

/* @count packets of each source, a multiple of RT_BURST. */
static void rt_lanes_start(struct rt_lanes *lanes, u32 count)
{
	u32 i;

	lanes->count = count;
	if (count)
		rt_receiver_init(&lanes->receiver, &lanes->traffic, lanes->fixture.ifindex, lanes->nr_sources * count);
	for (i = 0; i < lanes->nr_sources; i++) {
		struct rt_source *source = &lanes->sources[i];

		source->all = lanes;
		source->first = i * count;
		RT_CHECK(!pthread_create(&source->thread, NULL, rt_source_run, source), "no thread");
	}
}

static u32 rt_lanes_join(struct rt_lanes *lanes)
{
	u32 i, sent = 0;

	for (i = 0; i < lanes->nr_sources; i++) {
		pthread_join(lanes->sources[i].thread, NULL);
		sent += lanes->sources[i].sent;
	}
	return sent;
}

static void rt_lanes_receive(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_lanes *lanes = arg;
	u32 number = rt_packet_number(packet, slot->caplen);
	struct rt_source *source = &lanes->sources[number / lanes->count];

	rt_receive(slot, packet, &lanes->receiver);
	if (source->next) {
		RT_CHECK(number >= source->next - 1, "packet %u came behind %u, in lane %u", number, source->next - 1,
			 rt_queue_lane_of(&lanes->queue, slot));
		source->next = number + 1;
	}
	source->lanes |= 1ULL << rt_queue_lane_of(&lanes->queue, slot);
	__atomic_store_n(&source->received, source->received + 1, __ATOMIC_RELAXED);
}

/* Reads until everything has come, with @meanwhile between reads. */
static void rt_lanes_read_all(struct rt_lanes *lanes, void (*meanwhile)(struct rt_lanes *lanes))
{
	const u32 all = lanes->nr_sources * lanes->count;
	u64 deadline = rt_now() + RT_PATIENCE_NS;

	while (lanes->receiver.count < all) {
		if (!rt_queue_read_in_order(&lanes->queue, rt_lanes_receive, lanes))
			rt_queue_poll(&lanes->queue, 10);
		if (meanwhile)
			meanwhile(lanes);
		RT_CHECK(rt_now() < deadline, "%llu of %u packets came", (unsigned long long)lanes->receiver.count, all);
	}
}

static void rt_lanes_finish(struct rt_lanes *lanes)
{
	const u32 all = lanes->nr_sources * lanes->count;

	rt_lanes_read_all(lanes, NULL);
	rt_lanes_join(lanes);
	rt_fixture_check(&lanes->fixture, all, 0, all, 0, 0);
	rt_queue_close(&lanes->queue);
}

static void rt_expect_order(struct rt_lanes *lanes)
{
	u32 i;

	for (i = 0; i < lanes->nr_sources; i++)
		lanes->sources[i].next = 1;
}

/* A processor that produces gets a lane for itself, and then touches the shared one no more. */
RT_CASE(producer_gets_lane)
{
	u64 deadline = rt_now() + RT_PATIENCE_NS;
	struct rt_queue_counts counts;
	struct rt_lanes lanes;
	u64 shared;
	u32 from;

	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 2 });
	rt_pin(1);
	rt_receiver_init(&lanes.receiver, &lanes.traffic, lanes.fixture.ifindex, 1 << 20);
	for (from = 0; !lanes.queue.kernel[1].producer; from += 8) {
		rt_exchange(lanes.fixture.sender, &lanes.traffic, from, 8, &lanes.queue, 1, &lanes.receiver);
		RT_CHECK(rt_now() < deadline, "no lane after %u packets", from);
	}
	shared = lanes.queue.kernel[0].producer;
	RT_CHECK(shared, "the first packet came by no shared lane");
	rt_exchange(lanes.fixture.sender, &lanes.traffic, from, 400, &lanes.queue, 1, &lanes.receiver);
	RT_EQUAL(lanes.queue.kernel[0].producer, shared);
	rt_queue_counts(lanes.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.shared, lanes.queue.kernel[0].stats.delivered);
	rt_fixture_check(&lanes.fixture, from + 400, 0, from + 400, 0, 0);
	rt_queue_close(&lanes.queue);
}

/* Each has one: all of them come by others than the shared one, in the end. */
RT_CASE(producer_each_its_own)
{
	struct rt_lanes lanes;
	u64 had = 0;
	u32 i;

	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = RT_SOURCES_MAX + 1, .timeout_us = 1000 });
	for (i = 0; i < lanes.nr_sources; i++)
		lanes.sources[i].cpu = (int)i;
	rt_expect_order(&lanes);
	rt_lanes_start(&lanes, rt_scaled(8192) / RT_BURST * RT_BURST);
	rt_lanes_finish(&lanes);
	for (i = 0; i < lanes.nr_sources; i++) {
		u64 own = lanes.sources[i].lanes & ~1ULL;

		RT_CHECK(own && !(own & (own - 1)) && !(own & had), "processor %u had lanes %#llx, others %#llx", i,
			 (unsigned long long)own, (unsigned long long)had);
		had |= own;
	}
}

/* More producers than lanes: those without one share the first, all the time. */
RT_CASE(producer_more_than_lanes)
{
	struct rt_lanes lanes;
	u32 i;

	rt_set_idle("1");
	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 2, .timeout_us = 1000 });
	for (i = 0; i < lanes.nr_sources; i++)
		lanes.sources[i].cpu = (int)i;
	rt_expect_order(&lanes);
	rt_lanes_start(&lanes, rt_scaled(8192) / RT_BURST * RT_BURST);
	rt_lanes_finish(&lanes);
	rt_set_idle("1000");
}

/* All of them produce now and then, and take the one lane from each other. The reader pauses at the worst places. */
RT_CASE(producer_lane_changes_hands)
{
	struct rt_lanes lanes;
	u32 i, had = 0;

	rt_set_idle("1");
	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 2, .timeout_us = 1000 });
	for (i = 0; i < lanes.nr_sources; i++) {
		lanes.sources[i].cpu = (int)i;
		lanes.sources[i].pause_us = 7000 + 3000 * i;
		lanes.sources[i].rest_us = 100000;
	}
	lanes.queue.stop_us = 25000;
	rt_expect_order(&lanes);
	rt_lanes_start(&lanes, rt_scaled(4096) / RT_BURST * RT_BURST);
	rt_lanes_finish(&lanes);
	for (i = 0; i < lanes.nr_sources; i++)
		had += !!(lanes.sources[i].lanes & 2);
	RT_CHECK(had > 1, "%u of %u processors had the lane", had, lanes.nr_sources);
	rt_set_idle("1000");
}

/* Sends a few packets from @cpu. Returns how far the second lane is published then. */
static u64 rt_send_from(struct rt_lanes *lanes, u32 cpu)
{
	rt_pin(cpu);
	rt_send(lanes->fixture.sender, &lanes->traffic, 0, 4);
	usleep(2000);
	return __atomic_load_n(&lanes->queue.kernel[1].producer, __ATOMIC_ACQUIRE);
}

/* The module tells how full the fullest lane is, also where another lane is nearly empty. */
RT_CASE(producer_fullest_lane)
{
	u64 deadline = rt_now() + RT_PATIENCE_NS, own = 0, shared;
	struct rt_queue_counts counts;
	struct rt_lanes lanes;
	u32 i;

	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 2 });
	while (!own) {
		own = rt_send_from(&lanes, 0);
		RT_CHECK(rt_now() < deadline, "no lane");
	}
	for (i = 0; i < 50; i++)
		own = rt_send_from(&lanes, 0);
	rt_send_from(&lanes, 1);
	shared = __atomic_load_n(&lanes.queue.kernel[0].producer, __ATOMIC_ACQUIRE);
	RT_CHECK(shared && shared < own, "%llu bytes in the shared lane, %llu in the other", (unsigned long long)shared,
		 (unsigned long long)own);
	rt_queue_counts(lanes.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.unread, shared + own);
	RT_EQUAL(counts.fullest_lane, own);
	rt_queue_read(&lanes.queue, NULL, NULL);
	rt_queue_counts(lanes.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.fullest_lane, 0);
	rt_queue_close(&lanes.queue);
}

/* A CPU does not lose a lane that has unread packets of the CPU, however long it is idle. */
RT_CASE(producer_keeps_unread)
{
	u64 deadline = rt_now() + RT_PATIENCE_NS, end = 0;
	struct rt_lanes lanes;
	u32 i;

	rt_set_idle("1");
	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 2 });
	while (!end) {
		end = rt_send_from(&lanes, 0);
		RT_CHECK(rt_now() < deadline, "no lane");
	}
	for (i = 0; i < 50; i++)
		RT_EQUAL(rt_send_from(&lanes, 1), end);
	while (rt_send_from(&lanes, 1) == end) {
		rt_queue_read(&lanes.queue, NULL, NULL);
		RT_CHECK(rt_now() < deadline, "the lane stays with a processor that is idle");
	}
	rt_queue_close(&lanes.queue);
	rt_set_idle("1000");
}

/* Interrupts move between CPUs, as when their affinity is set, while other CPUs have traffic. */
RT_CASE(producer_affinity_moves)
{
	struct rt_lanes lanes;
	u32 i;

	rt_set_idle("1");
	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 3, .timeout_us = 1000 });
	for (i = 0; i < lanes.nr_sources; i++)
		lanes.sources[i].cpu = i % 2 ? -1 : (int)i;
	rt_expect_order(&lanes);
	rt_lanes_start(&lanes, rt_scaled(6144) / RT_BURST * RT_BURST);
	rt_lanes_finish(&lanes);
	rt_set_idle("1000");
}

/* ---- processors go and come ---- */

static bool rt_cpu_online(u32 cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	return rt_write_file(path, online ? "1" : "0");
}

/* One after the other, now off, now on again. */
static void rt_toggle_cpu(struct rt_lanes *lanes)
{
	static u32 turn, looks;
	u32 cpu = 1 + turn / 2 % (lanes->nr_cpus - 1);

	if (++looks % 20)
		return;
	RT_CHECK(rt_cpu_online(cpu, turn % 2), "processor %u: %m", cpu);
	turn++;
}

/* The first processor stays: what it has is read in its order. What others have is all read. */
RT_CASE(producer_hotplug)
{
	struct rt_lanes lanes;
	u32 i;

	rt_set_idle("1");
	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 3, .timeout_us = 1000 });
	RT_CHECK(rt_mount_sysfs(), "sysfs of this namespace: %m");
	if (!rt_cpu_online(1, true))
		rt_skip("processors of this machine cannot be taken offline");
	for (i = 0; i < lanes.nr_sources; i++)
		lanes.sources[i].cpu = (int)i;
	lanes.sources[0].next = 1;
	rt_lanes_start(&lanes, rt_scaled(6144) / RT_BURST * RT_BURST);
	rt_lanes_read_all(&lanes, rt_toggle_cpu);
	for (i = 1; i < lanes.nr_cpus; i++)
		rt_cpu_online(i, true);
	rt_lanes_finish(&lanes);
	rt_set_idle("1000");
}

/* ---- consumers that are no help ---- */

/* What came is in the account, whatever became of it. */
static void rt_lanes_check_sum(struct rt_lanes *lanes, u32 sent)
{
	struct rt_ring_counts ring;
	struct rt_queue_counts counts;

	rt_ring_wait(lanes->fixture.ring, sent);
	rt_ring_counts(lanes->fixture.ring, &ring);
	rt_cluster_counts(lanes->fixture.cluster, &counts);
	RT_EQUAL(ring.passed, sent);
	RT_EQUAL(counts.delivered + counts.dropped[RINGCAP_DROP_FULL] + counts.dropped[RINGCAP_DROP_UNATTENDED], sent);
}

/* Writes nonsense to all that it can write of all lanes, while they change hands. */
RT_CASE(producer_hostile_consumer)
{
	u64 seed = 7, deadline = rt_now() + rt_scaled(4) * 1000000000ULL;
	struct rt_lanes lanes;
	u32 i;

	rt_set_idle("1");
	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 3, .lane_size = RINGCAP_LANE_SIZE_MIN });
	for (i = 0; i < lanes.nr_sources; i++) {
		lanes.sources[i].cpu = (int)i;
		lanes.sources[i].pause_us = 1000 * (1 + i % 3 * 5);
	}
	rt_lanes_start(&lanes, 0);
	while (rt_now() < deadline) {
		volatile u64 *words = (void *)lanes.queue.consumer;

		for (i = 0; i < lanes.queue.consumer_len / 8; i++) {
			u64 value = (u64)rt_random(&seed) << 32 | rt_random(&seed);
			u32 lane = rt_random(&seed) % lanes.queue.nr_lanes;

			words[i] = rt_random(&seed) % 3 ? value : lanes.queue.kernel[lane].producer + value % 4096 - 2048;
		}
		rt_queue_poll(&lanes.queue, 0);
	}
	__atomic_store_n(&lanes.stop, 1, __ATOMIC_RELAXED);
	rt_lanes_check_sum(&lanes, rt_lanes_join(&lanes));
	rt_queue_close(&lanes.queue);
	rt_set_idle("1000");
}

/* Consumers come and go, and the queue is emptied, and taken back, while lanes change hands. */
RT_CASE(producer_consumers_come_and_go)
{
	const char *cluster;
	struct rt_lanes lanes;
	u32 i, sent, rounds = rt_scaled(60);

	rt_set_idle("1");
	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 3, .lane_size = RINGCAP_LANE_SIZE_MIN });
	cluster = lanes.fixture.cluster;
	rt_queue_close(&lanes.queue);
	for (i = 0; i < lanes.nr_sources; i++) {
		lanes.sources[i].cpu = i % 2 ? -1 : (int)i;
		lanes.sources[i].pause_us = 500 * (1 + i % 3 * 5);
	}
	rt_lanes_start(&lanes, 0);
	for (i = 0; i < rounds; i++) {
		rt_queue_open(&lanes.queue, cluster, 0);
		usleep(4000);
		rt_queue_read(&lanes.queue, NULL, NULL);
		if (i % 3 == 0)
			RT_EQUAL(rt_queue_revoke(cluster, 0, 0), 0);
		rt_queue_close(&lanes.queue);
		if (i % 3 == 1)
			RT_EQUAL(rt_queue_reset(cluster, 0), 0);
		if (i % 3 == 2)
			RT_EQUAL(rt_queue_revoke(cluster, 0, 0), 0);
	}
	__atomic_store_n(&lanes.stop, 1, __ATOMIC_RELAXED);
	sent = rt_lanes_join(&lanes);
	rt_lanes_check_sum(&lanes, sent);
	rt_queue_open(&lanes.queue, cluster, 0);
	rt_receiver_init(&lanes.receiver, &lanes.traffic, lanes.fixture.ifindex, 200);
	rt_queue_read(&lanes.queue, NULL, NULL);
	rt_exchange(lanes.fixture.sender, &lanes.traffic, 0, 200, &lanes.queue, 1, &lanes.receiver);
	rt_lanes_check_sum(&lanes, sent + 200);
	rt_queue_close(&lanes.queue);
	rt_set_idle("1000");
}

/* ---- memory ---- */

/* A queue has memory for the lanes that are wanted, and the account of this is exact. */
RT_CASE(producer_memory_follows)
{
	const u64 lane = RT_LANE_SIZE + 2 * RT_LANE_SIZE / 4096 * sizeof(void *);
	u64 deadline = rt_now() + RT_PATIENCE_NS, first;
	struct rt_queue_counts counts;
	struct rt_lanes lanes;
	u32 from;

	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 3 });
	rt_queue_counts(lanes.fixture.cluster, 0, &counts);
	first = counts.memory;
	RT_EQUAL(counts.lanes, 1);
	RT_CHECK(first > lane && first < 2 * lane, "%llu bytes", (unsigned long long)first);
	rt_pin(0);
	rt_receiver_init(&lanes.receiver, &lanes.traffic, lanes.fixture.ifindex, 1 << 20);
	for (from = 0; !lanes.queue.kernel[1].producer; from += 8) {
		rt_exchange(lanes.fixture.sender, &lanes.traffic, from, 8, &lanes.queue, 1, &lanes.receiver);
		rt_pin(0);
		RT_CHECK(rt_now() < deadline, "no lane after %u packets", from);
	}
	rt_queue_counts(lanes.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.memory, first + lane);
	RT_EQUAL(counts.lanes, 2);
	/* The lane that was never wanted can be read, and is empty. */
	for (from = 0; from < 2 * lanes.queue.lane_size; from += 4096)
		RT_EQUAL(lanes.queue.data[2][from], 0);
	rt_queue_counts(lanes.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.memory, first + 2 * lane);
	rt_queue_close(&lanes.queue);
}

/* A processor gets a lane that has memory rather than one that does not. */
RT_CASE(producer_prefers_memory)
{
	u64 deadline = rt_now() + RT_PATIENCE_NS;
	struct rt_queue_counts counts;
	struct rt_lanes lanes;

	rt_set_idle("1");
	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 3 });
	RT_EQUAL(lanes.queue.data[2][0], 0);
	while (!__atomic_load_n(&lanes.queue.kernel[2].producer, __ATOMIC_ACQUIRE)) {
		RT_EQUAL(rt_send_from(&lanes, 0), 0);
		RT_CHECK(rt_now() < deadline, "no lane");
	}
	rt_queue_counts(lanes.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.lanes, 2);
	rt_queue_close(&lanes.queue);
	rt_set_idle("1000");
}

/* A queue that was taken back takes no more memory, whatever its last consumer does. */
RT_CASE(producer_dead_queue_stays_small)
{
	const u32 size = 32 << 20;
	struct rt_lanes lanes;
	u64 available;
	u32 i, lane;

	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 3, .lane_size = size });
	RT_EQUAL(lanes.queue.data[1][0], 0);
	RT_EQUAL(rt_queue_revoke(lanes.fixture.cluster, 0, 0), 0);
	available = rt_available();
	for (lane = 0; lane < 3; lane++)
		for (i = 0; i < 2 * size; i += 4096)
			RT_EQUAL(lanes.queue.data[lane][i], 0);
	RT_CHECK(rt_available() + (size >> 11) > available, "%llu kB less",
		 (unsigned long long)(available - rt_available()));
	rt_queue_close(&lanes.queue);
}

/* If parts of a lane's mapping remain after others were unmapped, they show the same as before. */
RT_CASE(producer_mapping_in_parts)
{
	const size_t page = 4096;
	struct rt_lanes lanes;
	const u8 *data;
	u32 i;

	rt_lanes_open(&lanes, &(struct rt_cluster){ .lanes = 3, .lane_size = RINGCAP_LANE_SIZE_MIN });
	data = lanes.queue.data[1];
	RT_EQUAL(munmap((void *)(data + 5 * page), 3 * page), 0);
	RT_EQUAL(munmap((void *)data, page), 0);
	RT_EQUAL(data[9 * page], 0);
	RT_EQUAL(data[page], 0);
	/* Another one shows the same pages twice in a row. */
	data = mmap(NULL, 2 * RINGCAP_LANE_SIZE_MIN, PROT_READ, MAP_SHARED, lanes.queue.fd,
		    (off_t)(RINGCAP_MMAP_DATA + (1ULL << RINGCAP_MMAP_LANE_SHIFT)));
	RT_CHECK(data != MAP_FAILED, "%m");
	rt_pin(0);
	for (i = 0; !lanes.queue.kernel[1].producer && i < 10000; i++) {
		rt_send(lanes.fixture.sender, &lanes.traffic, 0, 8);
		usleep(1000);
	}
	RT_CHECK(lanes.queue.kernel[1].producer, "nothing came by the lane");
	RT_CHECK(memcmp(data, data + RINGCAP_LANE_SIZE_MIN, RINGCAP_LANE_SIZE_MIN) == 0, "the two halves differ");
	RT_CHECK(((const struct ringcap_slot *)data)->ts_ns, "no slot is to be seen");
	rt_queue_close(&lanes.queue);
}
