// SPDX-License-Identifier: GPL-2.0-only
/* Queues that are taken back: the old consumer keeps only dead memory, and the next one gets the queues at once. */
#define _GNU_SOURCE
#include "fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

/*
 * Sends @count packets in bursts, in a process of its own. It sends the last quarter only after a byte from @go,
 * however slow others are; -1 = all at once.
 */
static pid_t rt_fork_sender(const struct rt_fixture *fixture, const struct rt_traffic *traffic, u32 count, int go)
{
	pid_t pid = fork();
	char byte;
	u32 from;

	RT_CHECK(pid >= 0, "%m");
	if (pid)
		return pid;
	for (from = 0; from < count; from += 50) {
		if (go >= 0 && from >= count - count / 4) {
			RT_CHECK(read(go, &byte, 1) == 1, "%m");
			go = -1;
		}
		rt_send(fixture->sender, traffic, from, count - from < 50 ? count - from : 50);
		usleep(500);
	}
	_exit(0);
}

static void rt_wait_for(pid_t pid)
{
	int status;

	RT_CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the child ended with %#x", status);
}

static bool rt_is_zero(const struct rt_queue *queue)
{
	u32 lane, i;

	for (lane = 0; lane < queue->nr_lanes; lane++)
		for (i = 0; i < 2 * queue->lane_size; i++)
			if (queue->data[lane][i])
				return false;
	return true;
}

static u64 rt_delivered_to(const struct rt_queue *queue)
{
	u64 delivered = 0;
	u32 lane;

	for (lane = 0; lane < queue->nr_lanes; lane++)
		delivered += queue->kernel[lane].stats.delivered;
	return delivered;
}

/* What is left to the former consumer: descriptors of a dead file, and zeroes. */
static void rt_check_dead(const struct rt_queue *queue)
{
	RT_EQUAL(rt_queue_poll(queue, 0), POLLHUP | POLLERR);
	RT_CHECK(ioctl(queue->fd, RINGCAP_IOC_TX, 0) == -1 && errno == ENODEV, "sending: %m");
	RT_CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, queue->fd, RINGCAP_MMAP_INFO) == MAP_FAILED && errno == ENODEV,
		 "mapping: %m");
	RT_EQUAL(queue->info->revoked, 1);
	RT_CHECK(rt_is_zero(queue), "the old memory has something in it");
}

/* Keeps what the queue's consumer had, in another process, until it is told, and looks once more. */
static pid_t rt_fork_holder(const struct rt_queue *queue, int *go)
{
	int ends[2];
	char byte;
	pid_t pid;

	RT_CHECK(!pipe(ends), "%m");
	pid = fork();
	RT_CHECK(pid >= 0, "%m");
	if (!pid) {
		u64 delivered;

		close(ends[1]);
		RT_CHECK(dup(queue->fd) >= 0, "%m");
		RT_EVENTUALLY(rt_queue_poll(queue, 1000) & POLLHUP, 60000);
		RT_CHECK(read(ends[0], &byte, 1) == 1, "%m");
		delivered = rt_delivered_to(queue);
		RT_CHECK(read(ends[0], &byte, 1) == 1, "%m");
		RT_EQUAL(rt_delivered_to(queue), delivered);
		rt_check_dead(queue);
		_exit(0);
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

static void rt_take_back_under_traffic(struct rt_cluster *shape)
{
	struct rt_traffic traffic = { .flows = 40, .min_len = 60, .max_len = 900 };
	const u32 count = rt_scaled(20000);
	struct rt_queue_counts counts;
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue old, new;
	pid_t sender, holder;
	int go, there[2];
	u64 before;

	shape->watermark = 1 << 16;
	rt_fixture_open(&fixture, shape);
	rt_events_open();
	rt_queue_open(&old, fixture.cluster, 0);
	holder = rt_fork_holder(&old, &go);
	RT_CHECK(!pipe(there), "%m");
	sender = rt_fork_sender(&fixture, &traffic, count, there[0]);
	RT_EVENTUALLY(rt_ring_seen(fixture.ring) >= count / 8, 20000);
	rt_queue_read(&old, NULL, NULL);
	RT_EQUAL(rt_queue_revoke(fixture.cluster, 0, (u32)getpid()), 0);
	rt_queue_open(&new, fixture.cluster, 0);
	RT_CHECK(write(there[1], "1", 1) == 1, "%m");
	RT_CHECK(rt_events_wait(RINGCAP_EVENT_DETACHED, fixture.cluster, RT_PATIENCE_MS), "no event");
	rt_check_dead(&old);
	before = rt_delivered_to(&old);
	RT_CHECK(before, "the old consumer got nothing");
	RT_CHECK(write(go, "1", 1) == 1, "%m");

	rt_receiver_init(&receiver, &traffic, fixture.ifindex, count);
	while (rt_ring_seen(fixture.ring) < count)
		rt_queue_read(&new, rt_receive, &receiver);
	rt_wait_for(sender);
	rt_settle();
	rt_queue_read(&new, rt_receive, &receiver);

	RT_CHECK(write(go, "2", 1) == 1, "%m");
	rt_wait_for(holder);
	rt_check_dead(&old);
	RT_EQUAL(rt_delivered_to(&old), before);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.delivered, before + receiver.count);
	RT_CHECK(receiver.count, "the new consumer got nothing");
	RT_EQUAL(counts.dropped[RINGCAP_DROP_NOMEM], 0);
	rt_fixture_check(&fixture, count, 0, counts.delivered, counts.dropped[RINGCAP_DROP_FULL],
			 counts.dropped[RINGCAP_DROP_UNATTENDED]);

	/* The end of the old one does not affect the new one. */
	rt_queue_close(&old);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.attached, 1);
	RT_EQUAL(rt_queue_try_open(fixture.cluster, 0), -EBUSY);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, count + 100);
	rt_exchange(fixture.sender, &traffic, count, 100, &new, 1, &receiver);
	rt_queue_close(&new);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, fixture.cluster), 0);
}

RT_CASE(revoke_under_traffic)
{
	rt_take_back_under_traffic(&(struct rt_cluster){});
}

/* One lane: several processors produce into it, under its lock. */
RT_CASE(revoke_shared_lane)
{
	rt_take_back_under_traffic(&(struct rt_cluster){ .lanes = 1 });
}

static dev_t rt_number_of(const char *cluster)
{
	struct stat stat_buf;
	char path[64];

	snprintf(path, sizeof(path), "/dev/ringcap/%s/0", cluster);
	RT_CHECK(!stat(path, &stat_buf), "%s: %m", path);
	return stat_buf.st_rdev;
}

/* A container with the old device number can no longer use it to get the queue; the other queue is not affected. */
RT_CASE(revoke_number)
{
	struct rt_cluster shape = { .queues = 2 };
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	struct rt_queue queue, other;
	char copy[64];
	dev_t number;
	int round, fd;

	rt_fixture_open(&fixture, &shape);
	rt_queue_open(&other, fixture.cluster, 1);
	snprintf(copy, sizeof(copy), "/dev/copy-%d", getpid());
	for (round = 0; round < 2; round++) {
		number = rt_number_of(fixture.cluster);
		RT_CHECK(!mknod(copy, S_IFCHR | 0600, number), "%m");
		if (round)
			rt_queue_open(&queue, fixture.cluster, 0);
		RT_EQUAL(rt_queue_revoke(fixture.cluster, 0, 0), 0);
		RT_CHECK(rt_number_of(fixture.cluster) != number, "the device has its old number");
		fd = open(copy, O_RDWR);
		RT_CHECK(fd < 0 && errno == ENXIO, "the old number opens: %m");
		unlink(copy);
	}
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.attached, 0);
	RT_EQUAL(rt_queue_revoke(fixture.cluster, 0, (u32)getpid()), -ESRCH);
	RT_EQUAL(rt_queue_revoke(fixture.cluster, 1, 1), -ESRCH);
	RT_CHECK(rt_reason[0], "no reason given");
	RT_EQUAL(rt_queue_revoke(fixture.cluster, 2, 0), -ENOENT);
	rt_queue_counts(fixture.cluster, 1, &counts);
	RT_EQUAL(counts.attached, 1);
	RT_EQUAL(rt_queue_poll(&other, 0), 0);
	rt_queue_close(&queue);
	rt_queue_close(&other);
}

/* Unread packets of a queue without a consumer are gone after a revoke. */
RT_CASE(revoke_free)
{
	struct rt_traffic traffic = { .flows = 3 };
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_send(fixture.sender, &traffic, 0, 100);
	rt_ring_wait(fixture.ring, 100);
	rt_queue_close(&queue);
	RT_EQUAL(rt_queue_revoke(fixture.cluster, 0, 0), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 0);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.unread, 0);
	rt_fixture_check(&fixture, 100, 0, 100, 0, 0);
	rt_queue_close(&queue);
}

/*
 * A consumer that has attached again, or after another one, keeps the queue: it is not the one to take the queue from.
 */
RT_CASE(revoke_attachment)
{
	struct rt_queue_counts first, second;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_queue_counts(fixture.cluster, 0, &first);
	RT_CHECK(first.attachment, "no number");
	rt_queue_close(&queue);
	RT_EQUAL(rt_queue_revoke_attachment(fixture.cluster, 0, first.attachment), -ESRCH);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_queue_counts(fixture.cluster, 0, &second);
	RT_EQUAL(second.pid, first.pid);
	RT_CHECK(second.attachment != first.attachment, "the same number");
	RT_EQUAL(rt_queue_revoke_attachment(fixture.cluster, 0, first.attachment), -ESRCH);
	RT_CHECK(strstr(rt_reason, "ATTACHMENT"), "%s", rt_reason);
	RT_EQUAL(rt_queue_poll(&queue, 0), 0);
	RT_EQUAL(rt_queue_revoke_attachment(fixture.cluster, 0, second.attachment), 0);
	rt_check_dead(&queue);
	rt_queue_close(&queue);
}

/* Cluster "rest-N" of @shape, or its end. */
static int rt_rest(struct rt_cluster shape, u32 n, bool there)
{
	char name[16];

	snprintf(name, sizeof(name), "rest-%u", n);
	shape.name = name;
	return there ? rt_cluster_set(&shape) : rt_delete(RINGCAP_CMD_CLUSTER_DEL, name);
}

/*
 * Takes half of the largest queue that the machine can spare, and then more until it can by far not spare another one.
 * Returns how many. It is half because KASAN's shadow of mapped memory comes out of the machine's reserve. There must
 * be room when the others are gone.
 */
static u32 rt_take_all_memory(struct rt_fixture *fixture, struct rt_cluster *shape)
{
	u64 spare = 1024 * (rt_available() - rt_proc_number("/proc/meminfo", "MemTotal:") / 16);
	struct rt_cluster rest;
	u32 n = 0;
	int err;

	rt_fixture_open_devices(fixture);
	*shape = (struct rt_cluster){ .name = fixture->cluster, .lanes = 1, .lane_size = RINGCAP_LANE_SIZE_MIN };
	/* Not by trying: memory of deleted objects is freed a little later, and then there would be some to spare. */
	while (4ULL * shape->lane_size <= spare && shape->lane_size < RINGCAP_LANE_SIZE_MAX)
		shape->lane_size *= 2;
	err = rt_cluster_set(shape);
	RT_CHECK(!err, "%u bytes: %s (%s)", shape->lane_size, strerror(-err), rt_reason);
	RT_EQUAL(rt_fixture_change(fixture, &(struct rt_ring){}), 0);
	for (rest = *shape; rest.lane_size >= shape->lane_size / 8; rest.lane_size /= 2)
		while (n < 16 && !rt_rest(rest, n, true))
			n++;
	return n;
}

/* There is no memory for another queue: the holder loses this one all the same, and the other is made later. */
RT_CASE(revoke_without_memory)
{
	struct rt_traffic traffic = { .flows = 3 };
	struct rt_cluster shape;
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	struct rt_queue queue;
	u64 available = rt_available();
	u32 rest;
	int err;

	rest = rt_take_all_memory(&fixture, &shape);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_send(fixture.sender, &traffic, 0, 100);
	rt_ring_wait(fixture.ring, 100);
	RT_EQUAL(rt_queue_revoke(fixture.cluster, 0, (u32)getpid()), -ENOMEM);
	RT_CHECK(strstr(rt_reason, "was taken back"), "%s", rt_reason);
	rt_check_dead(&queue);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.attached, 0);
	RT_EQUAL(rt_queue_try_open(fixture.cluster, 0), -ENXIO);
	RT_EQUAL(rt_queue_revoke(fixture.cluster, 0, (u32)getpid()), -ESRCH);
	RT_EQUAL(rt_queue_revoke(fixture.cluster, 0, 0), -ENOMEM);
	RT_EQUAL(rt_queue_reset(fixture.cluster, 0), -EBUSY);
	rt_send(fixture.sender, &traffic, 100, 100);
	rt_fixture_check(&fixture, 200, 0, 100, 0, 100);
	rt_check_dead(&queue);

	/* The cluster can be changed, and be given another shape or deleted. */
	err = rt_cluster_set(&shape);
	RT_CHECK(!err, "%s (%s)", strerror(-err), rt_reason);
	rt_queue_close(&queue);
	RT_EQUAL(rt_queue_try_open(fixture.cluster, 0), -ENXIO);
	RT_EQUAL(rt_queue_revoke(fixture.cluster, 0, 0), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(queue.info->revoked, 0);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 0);
	rt_send(fixture.sender, &traffic, 200, 10);
	RT_EVENTUALLY(rt_queue_read(&queue, NULL, NULL), 10000);
	RT_EQUAL(rt_queue_revoke(fixture.cluster, 0, 0), -ENOMEM);
	while (rest)
		RT_EQUAL(rt_rest(shape, --rest, false), 0);
	shape.lane_size = RINGCAP_LANE_SIZE_MIN;
	/* Their memory is freed a little later. */
	RT_EVENTUALLY((usleep(10000), !rt_cluster_set(&shape)), 10000);
	rt_check_dead(&queue);
	rt_queue_close(&queue);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_queue_close(&queue);
	/* The next case needs some too. */
	RT_EVENTUALLY((usleep(10000), rt_available() >= available / 2), 20000);
}

static bool rt_churning = true;

/* Attaches, maps all, reads what it can of it without trusting it, and goes. */
static void *rt_come_and_go(void *arg)
{
	const char *cluster = arg;
	volatile u8 sum = 0;
	void *at;
	int fd;

	while (__atomic_load_n(&rt_churning, __ATOMIC_RELAXED)) {
		fd = rt_queue_try_open(cluster, 0);
		if (fd < 0) {
			RT_CHECK(fd == -EBUSY || fd == -ENXIO || fd == -ENOENT, "%s", strerror(-fd));
			continue;
		}
		at = mmap(NULL, 2 * RINGCAP_LANE_SIZE_MIN, PROT_READ, MAP_SHARED, fd, RINGCAP_MMAP_DATA);
		if (at != MAP_FAILED) {
			struct pollfd pfd = { .fd = fd, .events = POLLIN };

			poll(&pfd, 1, 1);
			sum = (u8)(sum + *(volatile u8 *)at);
			munmap(at, 2 * RINGCAP_LANE_SIZE_MIN);
		}
		close(fd);
	}
	return NULL;
}

/* Taken back and opened, read and reset at the same time, under traffic: the account still adds up. */
RT_CASE(revoke_churn)
{
	struct rt_cluster shape = { .lane_size = RINGCAP_LANE_SIZE_MIN };
	struct rt_traffic traffic = { .flows = 20, .max_len = 700 };
	const u32 count = rt_scaled(20000);
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	pthread_t consumers[3];
	u64 delivered = 0;
	u32 i, taken = 0;
	pid_t sender;
	int err;

	rt_fixture_open(&fixture, &shape);
	sender = rt_fork_sender(&fixture, &traffic, count, -1);
	for (i = 0; i < 3; i++)
		RT_CHECK(!pthread_create(&consumers[i], NULL, rt_come_and_go, fixture.cluster), "%m");
	while (rt_ring_seen(fixture.ring) < count) {
		err = taken % 3 ? rt_queue_revoke(fixture.cluster, 0, 0) : rt_queue_reset(fixture.cluster, 0);
		RT_CHECK(!err || (err == -EBUSY && taken % 3 == 0), "%s: %s", strerror(-err), rt_reason);
		rt_queue_counts(fixture.cluster, 0, &counts);
		RT_CHECK(counts.delivered >= delivered, "the account goes back");
		delivered = counts.delivered;
		taken++;
	}
	__atomic_store_n(&rt_churning, false, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++)
		pthread_join(consumers[i], NULL);
	rt_wait_for(sender);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_EQUAL(counts.attached, 0);
	rt_fixture_check(&fixture, count, 0, counts.delivered, counts.dropped[RINGCAP_DROP_FULL],
			 counts.dropped[RINGCAP_DROP_UNATTENDED]);
	printf("# taken back %u times\n", taken);
}
