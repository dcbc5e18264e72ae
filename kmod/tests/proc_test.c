// SPDX-License-Identifier: GPL-2.0-only
/* /proc/net/ringcap: what people read, and that reading does not get in the way of what goes. */
#define _GNU_SOURCE
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>

#include "link.h"

#define RT_PROC "/proc/thread-self/net/ringcap/"

static char rt_text[8192];

/* Reads a file into rt_text; false if it is not there. */
static bool rt_proc_read(const char *format, ...)
{
	char path[160] = RT_PROC;
	va_list args;
	ssize_t len;
	int fd;

	va_start(args, format);
	vsnprintf(path + strlen(path), sizeof(path) - strlen(path), format, args);
	va_end(args);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, rt_text, sizeof(rt_text) - 1);
	close(fd);
	rt_text[len > 0 ? len : 0] = 0;
	return true;
}

static bool rt_proc_has(const char *format, ...)
{
	char line[160] = "\n", text[sizeof(rt_text) + 1] = "\n";
	va_list args;

	va_start(args, format);
	vsnprintf(line + 1, sizeof(line) - 2, format, args);
	va_end(args);
	strcat(line, "\n");
	strcat(text, rt_text);
	return strstr(text, line);
}

#define RT_PROC_HAS(...) RT_CHECK(rt_proc_has(__VA_ARGS__), "not in:\n%s", rt_text)

RT_CASE(proc_files)
{
	struct rt_traffic traffic = { .flows = 5 };
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .lanes = 1, .watermark = 5000, .timeout_us = 1000 });
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 100);
	rt_exchange(fixture.sender, &traffic, 0, 100, &queue, 1, &receiver);

	RT_CHECK(rt_proc_read("info"), "no info");
	RT_PROC_HAS("ABI: %u", RINGCAP_ABI);
	RT_PROC_HAS("Rings: 1");
	RT_PROC_HAS("Taps: 1");
	RT_PROC_HAS("Clusters: 1");
	RT_PROC_HAS("Queues: 1");
	RT_PROC_HAS("Default transparent_mode: 0");
	RT_CHECK(rt_proc_read("ring/%s", fixture.ring), "no ring");
	RT_PROC_HAS("Tap: vb rx");
	RT_PROC_HAS("Output: %s", fixture.cluster);
	RT_PROC_HAS("Seen: 100");
	RT_PROC_HAS("Passed: 100");
	RT_CHECK(rt_proc_read("queue/%s-0", fixture.cluster), "no queue");
	RT_PROC_HAS("Attached: yes");
	RT_PROC_HAS("Attached pid: %d", getpid());
	RT_PROC_HAS("Attached name: kmod-tests");
	RT_PROC_HAS("Ring: %s vb", fixture.ring);
	RT_PROC_HAS("Watermark: 5000");
	RT_PROC_HAS("Delivered: 100");
	RT_PROC_HAS("Truncated: 0");
	RT_PROC_HAS("Dropped full: 0");
	rt_queue_close(&queue);
	RT_CHECK(rt_proc_read("queue/%s-0", fixture.cluster), "no queue");
	RT_PROC_HAS("Attached: no");
}

RT_CASE(proc_devices)
{
	struct rt_fixture fixture;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_CHECK(rt_proc_read("dev/vb"), "no device");
	RT_PROC_HAS("Name: vb");
	RT_PROC_HAS("Index: %u", fixture.ifindex);
	RT_PROC_HAS("Promiscuity: 0");
	RT_PROC_HAS("Ring: %s rx mode 0", fixture.ring);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .promiscuous = 1, .rx_queues = 1 }), 0);
	RT_CHECK(rt_proc_read("dev/vb"), "no device");
	RT_PROC_HAS("Promiscuity: 1");
	RT_PROC_HAS("Ring: %s rx rx-queues 0 promiscuous mode 0", fixture.ring);
	RT_EQUAL(rt_link_rename("vb", "other"), 0);
	RT_EVENTUALLY(rt_proc_read("dev/other") && !rt_proc_read("dev/vb"), 5000);
	RT_CHECK(rt_proc_read("dev/other"), "no device");
	RT_PROC_HAS("Name: other");
	/* Another interface takes the old one's name. */
	RT_EQUAL(rt_link_add_veth("vb", "vc"), 0);
	fixture.ifindex = rt_ifindex("vb");
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
	RT_CHECK(rt_proc_read("dev/vb") && !rt_proc_read("dev/other"), "the entries do not follow the ring");
	RT_EQUAL(rt_link_remove("vb"), 0);
	RT_EVENTUALLY(!rt_proc_read("dev/vb"), 5000);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
	RT_CHECK(!rt_proc_read("ring/%s", fixture.ring), "the ring's file is still there");
}

static void rt_read_folder(const char *folder)
{
	char path[96], bytes[4096];
	struct dirent *entry;
	int fd;
	DIR *dir;

	snprintf(path, sizeof(path), RT_PROC "%s", folder);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		while (fd >= 0 && read(fd, bytes, sizeof(bytes)) > 0)
			;
		if (fd >= 0)
			close(fd);
	}
	if (dir)
		closedir(dir);
}

static void *rt_read_on(void *arg)
{
	while (!__atomic_load_n((int *)arg, __ATOMIC_RELAXED)) {
		rt_read_folder(".");
		rt_read_folder("dev");
		rt_read_folder("ring");
		rt_read_folder("queue");
	}
	return NULL;
}

RT_CASE(proc_read_while_it_goes)
{
	struct rt_cluster shape = { .queues = 2, .lanes = 1, .lane_size = RINGCAP_LANE_SIZE_MIN };
	const u32 rounds = rt_scaled(60);
	struct rt_fixture fixture;
	pthread_t threads[2];
	int stop = 0;
	u32 i;

	rt_fixture_open_devices(&fixture);
	shape.name = fixture.cluster;
	for (i = 0; i < 2; i++)
		RT_CHECK(!pthread_create(&threads[i], NULL, rt_read_on, &stop), "no thread");
	for (i = 0; i < rounds; i++) {
		RT_EQUAL(rt_link_add_veth("vc", "vd"), 0);
		RT_EQUAL(rt_cluster_set(&shape), 0);
		fixture.ifindex = rt_ifindex("vd");
		RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
		if (i % 2)
			RT_EQUAL(rt_link_remove("vc"), 0);
		RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
		RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, fixture.cluster), 0);
		if (i % 2 == 0)
			RT_EQUAL(rt_link_remove("vc"), 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}
