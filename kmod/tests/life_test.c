// SPDX-License-Identifier: GPL-2.0-only
/* The module, its interfaces and its namespaces come and go, under traffic and with consumers attached. */
#define _GNU_SOURCE
#include "fixture.h"
#include "link.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define RT_MODULE	"/ringcap.ko"
#define RT_WRONG_MODULE	"/wrong.ko"

static int rt_module_load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		rt_skip("%s: %m", path);
	err = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return err;
}

static int rt_module_unload(void)
{
	return syscall(SYS_delete_module, "ringcap", O_NONBLOCK) ? -errno : 0;
}

RT_CASE(unload_refused)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_EQUAL(rt_module_unload(), -EWOULDBLOCK);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 100);
	rt_exchange(fixture.sender, &traffic, 0, 100, &queue, 1, &receiver);
	rt_queue_close(&queue);
}

static void *rt_send_on(void *arg)
{
	struct rt_traffic traffic = { .flows = 5, .max_len = 1000 };
	int *stop = arg;

	while (!__atomic_load_n(&stop[0], __ATOMIC_RELAXED))
		rt_send(stop[1], &traffic, 0, 50);
	return NULL;
}

/* Unloaded while packets come, with rings there, and loaded again. */
RT_CASE(unload_under_traffic)
{
	struct rt_fixture fixture;
	int stop[2] = { 0 };
	pthread_t thread;
	u32 round;

	rt_fixture_open_devices(&fixture);
	stop[1] = fixture.sender;
	RT_CHECK(!pthread_create(&thread, NULL, rt_send_on, stop), "no thread");
	for (round = 0; round < rt_scaled(5); round++) {
		struct rt_cluster shape = { .name = fixture.cluster, .queues = 2 };

		rt_control_open();
		RT_EQUAL(rt_cluster_set(&shape), 0);
		RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
		RT_EVENTUALLY(rt_ring_seen(fixture.ring) > 100, 10000);
		/* The netlink socket is no reference, a dump under way would be. */
		RT_EVENTUALLY(rt_module_unload() == 0, 5000);
		RT_EQUAL(rt_module_load(RT_MODULE), 0);
	}
	__atomic_store_n(&stop[0], 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* A tap that followed its device goes too, and what comes by the device then meets nothing. */
RT_CASE(unload_while_away)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), there;
	struct rt_ring_counts counts;
	struct rt_fixture fixture;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .follows = 1 }), 0);
	RT_CHECK(here >= 0 && !unshare(CLONE_NEWNET), "%m");
	there = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	RT_CHECK(there >= 0 && !setns(here, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_move("vb", there), 0);
	rt_ring_counts(fixture.ring, &counts);
	RT_EQUAL(counts.follows, 2);
	RT_EVENTUALLY(rt_module_unload() == 0, 5000);
	RT_CHECK(!setns(there, CLONE_NEWNET), "%m");
	RT_EQUAL(rt_link_set_up("vb", true), 0);
	RT_EVENTUALLY(rt_link_is_ready("vb"), 30000);
	rt_send(fixture.sender, &(struct rt_traffic){ .flows = 3 }, 0, 50);
	RT_EQUAL(rt_module_load(RT_MODULE), 0);
}

RT_CASE(load_twice)
{
	RT_EQUAL(rt_module_load(RT_MODULE), -EEXIST);
}

/* Not by an alias: any user could then load it by looking up its netlink family or a device node. */
RT_CASE(load_by_name_only)
{
	int fd = open("/ringcap.ko", O_RDONLY | O_CLOEXEC);
	struct stat stat;
	const char *file;

	RT_CHECK(fd >= 0 && !fstat(fd, &stat), "%m");
	file = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	RT_CHECK(file != MAP_FAILED, "%m");
	RT_CHECK(memmem(file, (size_t)stat.st_size, "license=", 8), "no module");
	RT_CHECK(!memmem(file, (size_t)stat.st_size, "alias=", 6), "it has one");
}

RT_CASE(load_wrong_kernel)
{
	RT_EQUAL(rt_module_load(RT_WRONG_MODULE), -ENOEXEC);
}

/* ---- interfaces ---- */

RT_CASE(device_gone)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_ring_counts counts;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 200);
	rt_exchange(fixture.sender, &traffic, 0, 200, &queue, 1, &receiver);
	rt_link_delete("va");
	rt_ring_counts(fixture.ring, &counts);
	RT_EQUAL(counts.taps, 0);
	RT_EQUAL(counts.seen, 200);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), -ENODEV);
	/* The ring goes on with the interface's successor. */
	rt_veth_create("va", "vb");
	fixture.ifindex = rt_ifindex("vb");
	fixture.sender = rt_sender_open("va");
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 400);
	rt_exchange(fixture.sender, &traffic, 200, 200, &queue, 1, &receiver);
	rt_fixture_check(&fixture, 400, 0, 400, 0, 0);
	rt_queue_close(&queue);
}

/* Interfaces come and go while another one's packets are counted. */
RT_CASE(device_churn)
{
	struct rt_traffic traffic = { .flows = 5, .max_len = 1000 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	const u32 rounds = rt_scaled(5);
	struct rt_queue queue;
	u32 round;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 500);
	for (round = 0; round < rounds; round++) {
		struct rt_ring change = { .taps = { { fixture.ifindex, RINGCAP_DIRECTION_RX } } };

		rt_veth_create("vc", "vd");
		change.taps[1] = (struct rt_tap){ rt_ifindex("vd"), RINGCAP_DIRECTION_BOTH };
		RT_EQUAL(rt_fixture_change(&fixture, &change), 0);
		rt_exchange(fixture.sender, &traffic, round * 100, 50, &queue, 1, &receiver);
		rt_link_delete("vc");
		rt_exchange(fixture.sender, &traffic, round * 100 + 50, 50, &queue, 1, &receiver);
	}
	rt_fixture_check(&fixture, rounds * 100, 0, rounds * 100, 0, 0);
	rt_queue_close(&queue);
}

/* ---- namespaces ---- */

struct rt_tenant {
	int ready, stop;
	char cluster[32];
};

/* Makes objects in a namespace of its own, reports that, and ends when it is told. */
static void rt_be_tenant(struct rt_tenant *tenant)
{
	struct rt_cluster shape = { .lane_size = RINGCAP_LANE_SIZE_MIN };
	struct rt_fixture fixture;
	char byte;

	RT_CHECK(!unshare(CLONE_NEWNET), "%m");
	rt_write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	rt_fixture_open(&fixture, &shape);
	RT_CHECK(write(tenant->ready, fixture.cluster, sizeof(tenant->cluster)) == sizeof(tenant->cluster), "%m");
	RT_CHECK(read(tenant->stop, &byte, 1) == 0, "told to go on");
}

/* A namespace ends with a ring in it and a consumer, from outside, asleep on its queue. */
RT_CASE(namespace_ends)
{
	int ready[2], stop[2], status, revents;
	struct rt_tenant tenant = {};
	struct rt_queue queue;
	u64 total = 0;
	pid_t pid;
	u32 i;

	RT_CHECK(!pipe2(ready, O_CLOEXEC) && !pipe2(stop, O_CLOEXEC), "%m");
	tenant.ready = ready[1];
	tenant.stop = stop[0];
	pid = fork();
	RT_CHECK(pid >= 0, "%m");
	if (!pid) {
		close(stop[1]);
		rt_be_tenant(&tenant);
		_exit(0);
	}
	RT_CHECK(read(ready[0], tenant.cluster, sizeof(tenant.cluster)) == sizeof(tenant.cluster), "%m");
	rt_queue_open(&queue, tenant.cluster, 0);
	close(stop[1]);
	RT_CHECK(waitpid(pid, &status, 0) == pid && !status, "the other process failed");
	revents = rt_queue_poll(&queue, RT_PATIENCE_MS);
	RT_CHECK(revents & POLLHUP && revents & POLLERR, "poll returns %#x for a queue that is gone", (u32)revents);
	/* What is mapped stays mapped. */
	for (i = 0; i < queue.lane_size; i += 64)
		total += queue.data[0][i];
	RT_EQUAL(total, 0);
	rt_queue_close(&queue);
	RT_EVENTUALLY(rt_queue_try_open(tenant.cluster, 0) == -ENOENT, 10000);
}

/* The device nodes are common to all namespaces, and so a name can be taken from outside. */
RT_CASE(namespace_name_taken)
{
	struct rt_cluster shape = {};
	struct rt_fixture fixture;

	rt_fixture_open(&fixture, &shape);
	RT_CHECK(!unshare(CLONE_NEWNET), "%m");
	rt_control_open();
	RT_EQUAL(rt_cluster_set(&shape), -EEXIST);
	RT_CHECK(rt_reason[0], "no reason given");
}
