// SPDX-License-Identifier: GPL-2.0-only
/* Rights to queues, and what a malicious consumer can do: nothing beyond its own queue. */
#define _GNU_SOURCE
#include "fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

RT_CASE(access_exclusive)
{
	struct rt_cluster shape = { .queues = 2 };
	struct rt_fixture fixture;
	struct rt_queue queue;
	char path[64];
	int fd;

	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(rt_queue_try_open(fixture.cluster, 0), -EBUSY);
	fd = rt_queue_try_open(fixture.cluster, 1);
	RT_CHECK(fd >= 0, "the other queue: %s", strerror(-fd));
	close(fd);
	snprintf(path, sizeof(path), "/dev/ringcap/%s/1", fixture.cluster);
	RT_CHECK(open(path, O_RDONLY) < 0 && errno == EPERM, "read-only: %m");
	RT_CHECK(open(path, O_WRONLY) < 0 && errno == EPERM, "write-only: %m");
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, fixture.cluster), -EBUSY);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, fixture.cluster), -EBUSY);
	RT_CHECK(rt_reason[0], "no reason given");
	shape.queues = 3;
	RT_EQUAL(rt_cluster_set(&shape), -EBUSY);
	rt_queue_close(&queue);
	RT_EQUAL(rt_cluster_set(&shape), 0);
	fd = rt_queue_try_open(fixture.cluster, 2);
	RT_CHECK(fd >= 0, "the new queue: %s", strerror(-fd));
	close(fd);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, fixture.cluster), 0);
	RT_EQUAL(rt_queue_try_open(fixture.cluster, 0), -ENOENT);
}

/* ---- mappings ---- */

struct rt_bad_mapping {
	const char *what;
	u64 offset;
	size_t len;
	int protection;
	int flags;
};

/* Mappings that the protocol makes read-only, or forbids, stay so, however a consumer tries to change them. */
RT_CASE(access_mappings)
{
	const size_t page = 4096, data = 2 * RINGCAP_LANE_SIZE_MIN;
	const struct rt_bad_mapping bad[] = {
		{ "info writable", RINGCAP_MMAP_INFO, page, PROT_READ | PROT_WRITE, MAP_SHARED },
		{ "info private", RINGCAP_MMAP_INFO, page, PROT_READ | PROT_WRITE, MAP_PRIVATE },
		{ "info too long", RINGCAP_MMAP_INFO, 2 * page, PROT_READ, MAP_SHARED },
		{ "kernel page writable", RINGCAP_MMAP_KERNEL, page, PROT_READ | PROT_WRITE, MAP_SHARED },
		{ "kernel page too long", RINGCAP_MMAP_KERNEL, 2 * page, PROT_READ, MAP_SHARED },
		{ "behind the kernel page", RINGCAP_MMAP_KERNEL + page, page, PROT_READ, MAP_SHARED },
		{ "consumer page too long", RINGCAP_MMAP_CONSUMER, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED },
		{ "consumer page private", RINGCAP_MMAP_CONSUMER, page, PROT_READ | PROT_WRITE, MAP_PRIVATE },
		{ "data writable", RINGCAP_MMAP_DATA, data, PROT_READ | PROT_WRITE, MAP_SHARED },
		{ "data write-only", RINGCAP_MMAP_DATA, data, PROT_WRITE, MAP_SHARED },
		{ "data too short", RINGCAP_MMAP_DATA, data / 2, PROT_READ, MAP_SHARED },
		{ "data too long", RINGCAP_MMAP_DATA, data + page, PROT_READ, MAP_SHARED },
		{ "in the middle of the data", RINGCAP_MMAP_DATA + page, data, PROT_READ, MAP_SHARED },
		{ "no such lane", RINGCAP_MMAP_DATA + (7ULL << RINGCAP_MMAP_LANE_SHIFT), data, PROT_READ, MAP_SHARED },
		{ "lane 2^20", RINGCAP_MMAP_DATA + (1ULL << 52), data, PROT_READ, MAP_SHARED },
		{ "between areas", 0x030000000ULL, page, PROT_READ, MAP_SHARED },
	};
	struct rt_cluster shape = { .lane_size = RINGCAP_LANE_SIZE_MIN, .lanes = 1 };
	struct rt_fixture fixture;
	struct rt_queue queue;
	size_t i;

	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&queue, fixture.cluster, 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		RT_CHECK(mmap(NULL, bad[i].len, bad[i].protection, bad[i].flags, queue.fd, (off_t)bad[i].offset) ==
			 MAP_FAILED, "%s was allowed", bad[i].what);
	RT_CHECK(mprotect((void *)queue.info, page, PROT_READ | PROT_WRITE), "info made writable");
	RT_CHECK(mprotect((void *)queue.kernel, page, PROT_READ | PROT_WRITE), "kernel page made writable");
	RT_CHECK(mprotect((void *)queue.data[0], data, PROT_WRITE), "data made writable");
	RT_CHECK(mprotect((void *)(queue.data[0] + page), page, PROT_READ | PROT_WRITE), "a data page made writable");
	RT_CHECK(mprotect((void *)queue.data[0], data, PROT_READ | PROT_EXEC), "data made executable");
	RT_CHECK(mremap((void *)queue.kernel, page, 4 * page, MREMAP_MAYMOVE) == MAP_FAILED, "kernel page grown");
	rt_queue_close(&queue);
}

static void rt_write_to(void *arg)
{
	/* A core file would be useless here. */
	signal(SIGSEGV, SIG_DFL);
	*(volatile u8 *)arg = 1;
}

RT_CASE(access_read_only)
{
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(rt_child(rt_write_to, (void *)queue.info), 256 + SIGSEGV);
	RT_EQUAL(rt_child(rt_write_to, (void *)queue.kernel), 256 + SIGSEGV);
	RT_EQUAL(rt_child(rt_write_to, (void *)queue.data[0]), 256 + SIGSEGV);
	rt_queue_close(&queue);
}

/* ---- hostile consumers ---- */

/* Writes garbage wherever it may, for as long as it lives, and tries to change what it may not. */
static void *rt_scribble(void *arg)
{
	struct rt_queue *queue = arg;
	volatile u64 *words = (void *)queue->consumer;
	u64 seed = 42;
	u32 i;

	for (;;) {
		for (i = 0; i < queue->consumer_len / 8; i++) {
			u64 value = (u64)rt_random(&seed) << 32 | rt_random(&seed);

			/* Also values that are nearly right. */
			words[i] = rt_random(&seed) % 3 ? value : queue->kernel[0].producer + value % 4096 - 2048;
		}
		mprotect((void *)queue->data[0], queue->lane_size, PROT_READ | PROT_WRITE);
		mprotect((void *)queue->kernel, queue->kernel_len, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

struct rt_hostile {
	const char *cluster;
	int ready;
};

static void rt_be_hostile(void *arg)
{
	struct rt_hostile *hostile = arg;
	struct rt_queue queue;

	rt_queue_open(&queue, hostile->cluster, 0);
	if (write(hostile->ready, "x", 1) == 1)
		rt_scribble(&queue);
}

static pid_t rt_fork_hostile(const char *cluster)
{
	struct rt_hostile hostile = { .cluster = cluster };
	int ready[2];
	char byte;
	pid_t pid;

	RT_CHECK(!pipe(ready), "%m");
	hostile.ready = ready[1];
	pid = fork();
	RT_CHECK(pid >= 0, "%m");
	if (!pid) {
		rt_be_hostile(&hostile);
		_exit(1);
	}
	close(ready[1]);
	RT_CHECK(read(ready[0], &byte, 1) == 1, "the hostile consumer did not begin");
	close(ready[0]);
	return pid;
}

static void rt_kill(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	RT_CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		 "the process had ended by itself");
}

/*
 * One queue of a cluster has a hostile consumer. The accounts of both queues add up, and the other one loses nothing.
 */
RT_CASE(hostile_consumer)
{
	struct rt_cluster shape = { .queues = 1, .lane_size = RINGCAP_LANE_SIZE_MIN };
	struct rt_traffic traffic = { .flows = 30, .min_len = 60, .max_len = 1500 };
	struct rt_cluster good = { .queues = 1, .lane_size = RT_LANE_SIZE };
	const u32 count = rt_scaled(6000);
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue_counts counts;
	struct rt_queue queue;
	char name[40];
	pid_t pid;

	rt_fixture_open(&fixture, &shape);
	snprintf(name, sizeof(name), "%s-good", fixture.cluster);
	good.name = name;
	RT_EQUAL(rt_cluster_set(&good), 0);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .outputs = { fixture.cluster, name } }), 0);
	pid = rt_fork_hostile(fixture.cluster);
	rt_queue_open(&queue, name, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, count);
	rt_exchange(fixture.sender, &traffic, 0, count, &queue, 1, &receiver);
	rt_kill(pid);
	RT_EQUAL(receiver.count, count);
	rt_cluster_counts(fixture.cluster, &counts);
	RT_EQUAL(counts.delivered + counts.dropped[RINGCAP_DROP_FULL], count);
	RT_CHECK(counts.unread <= 4ULL * RINGCAP_LANE_SIZE_MIN, "%llu bytes unread", (unsigned long long)counts.unread);
	rt_queue_close(&queue);
	/* The queue works for an honest successor. */
	RT_EQUAL(rt_queue_reset(fixture.cluster, 0), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, count);
	rt_exchange(fixture.sender, &traffic, 0, 500, &queue, 1, &receiver);
	rt_queue_close(&queue);
}

/* The same without a reset: the successor's indices are correct again, whatever was written there. */
RT_CASE(hostile_then_honest)
{
	struct rt_traffic traffic = { .flows = 30, .max_len = 1500 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	memset(queue.consumer, 0xff, queue.consumer_len);
	rt_send(fixture.sender, &traffic, 0, 100);
	rt_ring_wait(fixture.ring, 100);
	memset(queue.consumer, 0, queue.consumer_len);
	rt_queue_close(&queue);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_queue_read(&queue, NULL, NULL);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 300);
	rt_exchange(fixture.sender, &traffic, 100, 200, &queue, 1, &receiver);
	rt_fixture_check(&fixture, 300, 0, 300, 0, 0);
	rt_queue_close(&queue);
}

/* ---- consumers that die, and their children ---- */

struct rt_reader {
	const char *cluster;
	const struct rt_fixture *fixture;
	const struct rt_traffic *traffic;
	u32 keep;
};

/* Reads everything but the last packets, releases that, looks at some more, and is killed. */
static void rt_die_reading(void *arg)
{
	struct rt_reader *reader = arg;
	struct rt_queue queue;
	u32 i;

	rt_queue_open(&queue, reader->cluster, 0);
	RT_EQUAL(queue.nr_lanes, 1);
	rt_send(reader->fixture->sender, reader->traffic, 0, 300);
	RT_EVENTUALLY(queue.kernel[0].stats.delivered == 300, 10000);
	rt_settle();
	RT_EQUAL(rt_queue_peek(&queue, NULL, NULL, 300 - reader->keep), 300 - reader->keep);
	__atomic_store_n(&queue.consumer[0].released, queue.position[0], __ATOMIC_RELEASE);
	for (i = 0; i < 10; i++)
		rt_queue_peek(&queue, NULL, NULL, 1);
	kill(getpid(), SIGKILL);
}

/* Killed while reading: the next consumer gets the packets that were not released, and nothing is lost. */
RT_CASE(killed_consumer)
{
	struct rt_cluster shape = { .lanes = 1 };
	struct rt_traffic traffic = { .flows = 5, .max_len = 800 };
	struct rt_reader reader = { .traffic = &traffic, .keep = 120 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue_counts counts;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &shape);
	reader.cluster = fixture.cluster;
	reader.fixture = &fixture;
	RT_EQUAL(rt_child(rt_die_reading, &reader), 256 + SIGKILL);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.attached, 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 500);
	RT_EQUAL(rt_queue_read(&queue, rt_receive, &receiver), reader.keep);
	rt_exchange(fixture.sender, &traffic, 300, 200, &queue, 1, &receiver);
	rt_fixture_check(&fixture, 500, 0, 500, 0, 0);
	rt_queue_close(&queue);
}

static void rt_read_in_child(void *arg)
{
	struct rt_queue *queue = arg;

	RT_EQUAL(rt_queue_read(queue, NULL, NULL), 50);
}

/* A consumer that forks: the child may go on with the mapping, and the queue is free when both have exited. */
RT_CASE(forked_consumer)
{
	struct rt_cluster shape = { .lanes = 1 };
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_fixture fixture;
	struct rt_queue queue;
	pid_t pid;
	int fd, status;

	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_send(fixture.sender, &traffic, 0, 50);
	rt_fixture_check(&fixture, 50, 0, 50, 0, 0);
	RT_EQUAL(rt_child(rt_read_in_child, &queue), 0);
	pid = fork();
	RT_CHECK(pid >= 0, "%m");
	if (!pid) {
		pause();
		_exit(0);
	}
	rt_queue_close(&queue);
	RT_EQUAL(rt_queue_try_open(fixture.cluster, 0), -EBUSY);
	kill(pid, SIGKILL);
	RT_CHECK(waitpid(pid, &status, 0) == pid, "%m");
	fd = rt_queue_try_open(fixture.cluster, 0);
	RT_CHECK(fd >= 0, "%s", strerror(-fd));
	close(fd);
	rt_send(fixture.sender, &traffic, 50, 10);
	rt_fixture_check(&fixture, 60, 0, 50, 0, 10);
}

/* The consumer may close the descriptor or the mappings first. */
RT_CASE(mapping_without_descriptor)
{
	struct rt_cluster shape = { .lanes = 1 };
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	int fd;

	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&queue, fixture.cluster, 0);
	close(queue.fd);
	RT_EQUAL(rt_queue_try_open(fixture.cluster, 0), -EBUSY);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 100);
	rt_exchange(fixture.sender, &traffic, 0, 100, &queue, 1, &receiver);
	queue.fd = -1;
	rt_queue_close(&queue);
	fd = rt_queue_try_open(fixture.cluster, 0);
	RT_CHECK(fd >= 0, "%s", strerror(-fd));
	close(fd);
}

/* ---- sleeping while the queue goes ---- */

static void *rt_open_and_close(void *arg)
{
	const char *cluster = arg;
	u32 i;
	int fd;

	for (i = 0; i < rt_scaled(200); i++) {
		fd = rt_queue_try_open(cluster, 0);
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

/* Two threads compete for a queue while packets arrive: at most one has it, and the account adds up. */
RT_CASE(attach_churn)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_queue_counts counts;
	struct rt_ring_counts ring;
	struct rt_fixture fixture;
	pthread_t threads[2];
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .lane_size = RINGCAP_LANE_SIZE_MIN });
	for (i = 0; i < 2; i++)
		RT_CHECK(!pthread_create(&threads[i], NULL, rt_open_and_close, fixture.cluster), "no thread");
	rt_send(fixture.sender, &traffic, 0, 2000);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	rt_ring_wait(fixture.ring, 2000);
	rt_ring_counts(fixture.ring, &ring);
	rt_cluster_counts(fixture.cluster, &counts);
	RT_EQUAL(counts.attached, 0);
	RT_EQUAL(counts.delivered + counts.dropped[RINGCAP_DROP_FULL] + counts.dropped[RINGCAP_DROP_UNATTENDED], 2000);
	RT_EQUAL(ring.passed, 2000);
}
