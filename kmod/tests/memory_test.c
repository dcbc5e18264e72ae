// SPDX-License-Identifier: GPL-2.0-only
/*
 * No memory: each allocation of a request fails, one after the other, until the request succeeds. A request that fails
 * changes nothing, and existing objects keep working. On the debug kernel only: others cannot inject faults.
 */
#define _GNU_SOURCE
#include "faults.h"
#include "fixture.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of each case its own: those of the last case go in their own time. */
static const char *rt_new_name(const struct rt_fixture *fixture)
{
	static char name[40];

	snprintf(name, sizeof(name), "%s-new", fixture->cluster);
	return name;
}

static int rt_make_cluster(const struct rt_fixture *fixture)
{
	struct rt_cluster shape = { .name = rt_new_name(fixture), .queues = 2, .lanes = 1, .lane_size = RINGCAP_LANE_SIZE_MIN };

	return rt_cluster_set(&shape);
}

static int rt_reshape_cluster(const struct rt_fixture *fixture)
{
	struct rt_cluster shape = { .name = fixture->cluster, .queues = 3, .lanes = 1, .lane_size = 2 * RINGCAP_LANE_SIZE_MIN };

	return rt_cluster_set(&shape);
}

static u32 rt_other_end;

static int rt_change_ring(const struct rt_fixture *fixture)
{
	static const struct sock_filter all[] = { BPF_STMT(BPF_RET | BPF_K, 0xffff) };
	const struct rt_ring change = { .filter = all, .filter_len = 1, .snaplen = 500,
					.taps = { { fixture->ifindex, RINGCAP_DIRECTION_BOTH }, { rt_other_end, RINGCAP_DIRECTION_RX } } };

	return rt_fixture_change(fixture, &change);
}

RT_CASE(allocation_failures)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queues[3];
	u32 i;

	rt_faults_open();
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_other_end = rt_ifindex("va");
	rt_try_failures("making a cluster", rt_make_cluster, &fixture, 5);
	rt_try_failures("reshaping a cluster", rt_reshape_cluster, &fixture, 5);
	rt_try_failures("changing a ring", rt_change_ring, &fixture, 5);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
	for (i = 0; i < 3; i++)
		rt_queue_open(&queues[i], fixture.cluster, i);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 100);
	rt_exchange(fixture.sender, &traffic, 0, 100, queues, 3, &receiver);
	for (i = 0; i < 3; i++)
		rt_queue_close(&queues[i]);
}

/* ---- consumers ---- */

/* Opens queue 0, maps all of it, has it send, and closes it again. */
static int rt_attach_fully(const struct rt_fixture *fixture)
{
	static const u64 areas[] = { RINGCAP_MMAP_INFO, RINGCAP_MMAP_KERNEL, RINGCAP_MMAP_CONSUMER, RINGCAP_MMAP_TX_INDEX,
				     RINGCAP_MMAP_TX_DATA, RINGCAP_MMAP_DATA };
	int fd = rt_queue_try_open(fixture->cluster, 0), err = 0;
	size_t i, len;
	void *at;

	if (fd < 0)
		return fd;
	for (i = 0; i < sizeof(areas) / sizeof(areas[0]) && !err; i++) {
		len = areas[i] == RINGCAP_MMAP_DATA ? 2 * RT_LANE_SIZE : areas[i] == RINGCAP_MMAP_TX_DATA ? RINGCAP_TX_SIZE : 4096;
		at = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, (off_t)areas[i]);
		if (at == MAP_FAILED)
			err = errno == EINVAL ? 0 : -errno;	/* nothing is granted here: no transmit area */
		else
			while (munmap(at, len))
				err = -errno;	/* it may be what had no memory */
	}
	close(fd);
	return err;
}

static int rt_look(const struct rt_fixture *fixture)
{
	static const u8 dumps[] = { RINGCAP_CMD_CLUSTER_GET, RINGCAP_CMD_RING_GET, RINGCAP_CMD_QUEUE_GET };
	static struct rt_message message;
	size_t i;
	int err = 0;

	(void)fixture;
	for (i = 0; i < sizeof(dumps) && !err; i++) {
		rt_message_init(&message, dumps[i], NLM_F_DUMP);
		err = rt_call(&message, NULL, NULL);
	}
	return err;
}

static int rt_read_proc(const struct rt_fixture *fixture)
{
	char path[96], bytes[4096];
	int fd;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/thread-self/net/ringcap/ring/%s", fixture->ring);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, bytes, sizeof(bytes));
	len = len < 0 ? -errno : 0;
	close(fd);
	return (int)len;
}

static int rt_empty_queue(const struct rt_fixture *fixture)
{
	return rt_queue_reset(fixture->cluster, 0);
}

static int rt_delete_new(const struct rt_fixture *fixture)
{
	int err = rt_delete(RINGCAP_CMD_CLUSTER_DEL, rt_new_name(fixture));

	/* The request needs memory before it reaches us, and after; without memory it was not made. */
	return err == -ENOENT ? 0 : err;
}

RT_CASE(allocation_failures_of_consumers)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_faults_open();
	rt_fixture_open(&fixture, &(struct rt_cluster){ .lanes = 1 });
	rt_try_failures("attaching", rt_attach_fully, &fixture, 5);
	rt_try_failures("looking", rt_look, &fixture, 3);
	rt_try_failures("reading in /proc", rt_read_proc, &fixture, 3);
	rt_try_failures("emptying a queue", rt_empty_queue, &fixture, 1);
	RT_EQUAL(rt_make_cluster(&fixture), 0);
	rt_try_failures("deleting a cluster", rt_delete_new, &fixture, 1);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 100);
	rt_exchange(fixture.sender, &traffic, 0, 100, &queue, 1, &receiver);
	rt_queue_close(&queue);
}

/*
 * Takes queue 0 back while the n'th allocation fails; returns true if one has failed. Afterwards /dev shows the actual
 * state.
 */
static bool rt_revoke_failing(const struct rt_fixture *fixture, u32 n, int *err)
{
	struct rt_queue_counts counts;
	struct stat stat_buf;
	char path[64];
	bool failed;

	rt_fail_nth(n);
	*err = rt_queue_revoke(fixture->cluster, 0, 0);
	failed = rt_has_failed();
	rt_fail_nth(0);
	rt_queue_counts(fixture->cluster, 0, &counts);
	snprintf(path, sizeof(path), "/dev/ringcap/%s/0", fixture->cluster);
	if (stat(path, &stat_buf))
		RT_CHECK(*err, "allocation %u: %s: %m", n, path);
	else
		RT_CHECK(stat_buf.st_rdev == makedev(counts.devt >> 20, counts.devt & 0xfffff), "allocation %u: %s is old", n, path);
	RT_CHECK(n < 2000, "it never succeeds");
	return failed;
}

/* A queue is taken back whatever fails: either the holder reads nothing more, or the request changed nothing. */
RT_CASE(allocation_failures_of_revoking)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_queue_counts counts;
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	bool failed = true;
	u32 n, taken = 0;
	int err;

	rt_faults_open();
	rt_fixture_open(&fixture, &(struct rt_cluster){ .lanes = 1, .lane_size = RINGCAP_LANE_SIZE_MIN });
	for (n = 1; failed; n++)
		failed = rt_revoke_failing(&fixture, n, &err);
	RT_EQUAL(err, 0);
	RT_CHECK(n > 5, "only %u allocations", n);
	for (failed = true, n = 1; failed; n++) {
		RT_EQUAL(rt_queue_revoke(fixture.cluster, 0, 0), 0);
		rt_queue_open(&queue, fixture.cluster, 0);
		failed = rt_revoke_failing(&fixture, n, &err);
		rt_queue_counts(fixture.cluster, 0, &counts);
		RT_EQUAL(counts.attached, !queue.info->revoked);
		taken += err && queue.info->revoked;
		RT_EQUAL(rt_queue_poll(&queue, 0), queue.info->revoked ? POLLHUP | POLLERR : 0);
		rt_queue_close(&queue);
	}
	RT_EQUAL(err, 0);
	RT_CHECK(taken > 5, "only %u times it was taken without memory for another", taken);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 100);
	rt_exchange(fixture.sender, &traffic, 0, 100, &queue, 1, &receiver);
	rt_queue_close(&queue);
}

/* ---- more than the machine has ---- */

/* Shared with a process that watches it until @end: the least memory that was left. */
struct rt_watch {
	u64 least;
	bool ready, end;
};

static void rt_watch_memory(struct rt_watch *watch)
{
	while (!__atomic_load_n(&watch->end, __ATOMIC_ACQUIRE)) {
		u64 now = rt_available();

		if (now < watch->least)
			watch->least = now;
		__atomic_store_n(&watch->ready, true, __ATOMIC_RELEASE);
	}
	_exit(0);
}

/*
 * Queues that exceed the machine's memory are rejected at once. No process is killed for them, a sixteenth of the
 * memory is never touched, and existing objects keep working. The same applies to a cluster that is to grow so much.
 */
RT_CASE(queues_beyond_the_memory)
{
	u64 total = rt_proc_number("/proc/meminfo", "MemTotal:"), killed = rt_proc_number("/proc/vmstat", "oom_kill ");
	u64 available = rt_available();
	struct rt_cluster large = { .name = "large", .queues = 64, .lanes = 1, .lane_size = 16 << 20 };
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_receiver receiver;
	struct rt_watch *watch;
	struct rt_fixture fixture;
	struct rt_queue queue;
	int status;
	pid_t pid;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .lanes = 1 });
	watch = mmap(NULL, sizeof(*watch), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	RT_CHECK(watch != MAP_FAILED);
	watch->least = UINT64_MAX;
	pid = fork();
	RT_CHECK(pid >= 0);
	if (!pid)
		rt_watch_memory(watch);
	while (!__atomic_load_n(&watch->ready, __ATOMIC_ACQUIRE))
		usleep(1000);

	/* In pieces that fit one by one, and in one that does not. */
	large.queues = (u32)(2 * total / (16 << 10)) + 1;
	if (large.queues > 256)
		large.queues = 256;
	RT_EQUAL(rt_cluster_set(&large), -ENOMEM);
	large.queues = 1;
	large.lane_size = RINGCAP_LANE_SIZE_MAX;
	RT_EQUAL(rt_cluster_set(&large), -ENOMEM);
	large.name = fixture.cluster;
	RT_EQUAL(rt_cluster_set(&large), -ENOMEM);

	__atomic_store_n(&watch->end, true, __ATOMIC_RELEASE);
	RT_EQUAL(waitpid(pid, &status, 0), pid);
	RT_CHECK(WIFEXITED(status), "the watcher was killed");
	RT_EQUAL(rt_proc_number("/proc/vmstat", "oom_kill "), killed);
	RT_CHECK(watch->least >= total / 20, "%llu of %llu KiB were left", (unsigned long long)watch->least, (unsigned long long)total);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 100);
	rt_exchange(fixture.sender, &traffic, 0, 100, &queue, 1, &receiver);
	rt_queue_close(&queue);
	/* Memory that was used meanwhile is freed a little later; the next case needs some. */
	RT_EVENTUALLY((usleep(10000), rt_available() >= available / 2), 20000);
}
