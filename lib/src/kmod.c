// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi.h"

static size_t whole_pages(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) & ~(page - 1);
}

static size_t kernel_size(const struct kmod *k)
{
	return whole_pages(k->lanes.nr * sizeof(struct ringcap_lane_kernel));
}

static size_t consumer_size(const struct kmod *k)
{
	return whole_pages(k->lanes.nr * sizeof(struct ringcap_lane_consumer));
}

/* Maps size bytes at offset. On failure, returns NULL and sets errno. */
static void *map(const struct kmod *k, size_t size, int prot, uint64_t offset)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED, k->fd, (off_t)offset);

	return p == MAP_FAILED ? NULL : p;
}

static void unmap(const void *p, size_t size)
{
	if (p)
		munmap((void *)(uintptr_t)p, size);
}

static int map_info(struct kmod *k, const char *path, char *errbuf)
{
	const struct ringcap_queue_info *info = map(k, whole_pages(1), PROT_READ, RINGCAP_MMAP_INFO);
	struct abi theirs;

	k->info = info;
	if (!info)
		return fail(errbuf, errno, "%s: mapping the info page: %s", path, strerror(errno));
	if (info->magic != RINGCAP_MAGIC)
		return fail(errbuf, EPROTO, "%s is not a ringcap queue (magic %#x)", path, info->magic);
	theirs = (struct abi){ info->abi_min, info->abi };
	if (!abi_common(abi_ours, theirs))
		return fail(errbuf, EPROTO, "%s: the module speaks versions %u to %u of the interface, this libringcap %u to %u: "
			    "update %s", path, theirs.oldest, theirs.newest, abi_ours.oldest, abi_ours.newest,
			    abi_older(abi_ours, theirs, "the module"));
	if (info->nr_lanes < 1 || info->nr_lanes > RINGCAP_LANES_MAX || info->lane_size < RINGCAP_LANE_SIZE_MIN ||
	    info->lane_size > RINGCAP_LANE_SIZE_MAX || info->lane_size & (info->lane_size - 1) ||
	    !memchr(info->name, '\0', sizeof(info->name)))
		return fail(errbuf, EPROTO, "%s: the info page makes no sense (%u lanes of %u bytes)", path, info->nr_lanes,
			    info->lane_size);
	k->lanes.nr = info->nr_lanes;
	k->lanes.lane_size = info->lane_size;
	return 0;
}

static int map_lanes(struct kmod *k, const char *path, char *errbuf)
{
	k->kernel = map(k, kernel_size(k), PROT_READ, RINGCAP_MMAP_KERNEL);
	k->consumer = k->kernel ? map(k, consumer_size(k), PROT_READ | PROT_WRITE, RINGCAP_MMAP_CONSUMER) : NULL;
	if (!k->consumer)
		return fail(errbuf, errno, "%s: mapping the index pages: %s", path, strerror(errno));
	for (unsigned int i = 0; i < k->lanes.nr; i++) {
		struct lane *lane = &k->lanes.lane[i];

		lane->producer = (const uint64_t *)&k->kernel[i].producer;
		lane->shared = (uint64_t *)&k->consumer[i].released;
		lane->data = map(k, 2 * (size_t)k->lanes.lane_size, PROT_READ,
				 RINGCAP_MMAP_DATA + ((uint64_t)i << RINGCAP_MMAP_LANE_SHIFT));
		if (!lane->data)
			return fail(errbuf, errno, "%s: mapping lane %u, twice %u bytes: %s", path, i, k->lanes.lane_size,
				    strerror(errno));
	}
	k->lanes.stretches = calloc(LANES_OUTSTANDING_MAX, sizeof(*k->lanes.stretches));
	if (!k->lanes.stretches)
		return fail(errbuf, ENOMEM, "%s: out of memory", path);
	lanes_start(&k->lanes);
	return 0;
}

static void kmod_close(struct ringcap *h)
{
	struct kmod *k = &h->kmod;

	inject_close(k);
	for (unsigned int i = 0; i < k->lanes.nr; i++)
		unmap(k->lanes.lane[i].data, 2 * (size_t)k->lanes.lane_size);
	unmap(k->consumer, consumer_size(k));
	unmap(k->kernel, kernel_size(k));
	unmap(k->info, whole_pages(1));
	free(k->lanes.stretches);
	if (k->fd >= 0)
		close(k->fd);
	memset(k, 0, sizeof(*k));
	k->fd = -1;
}

/* Returns true if this process is in a user namespace other than the initial one. */
static bool in_user_namespace(void)
{
	unsigned int inside = 1, outside = 1, count = 0;
	FILE *f = fopen("/proc/self/uid_map", "re");

	if (!f)
		return false;
	if (fscanf(f, "%u %u %u", &inside, &outside, &count) != 3)
		count = 0;
	fclose(f);
	return inside || outside || count != UINT32_MAX;
}

static int open_failed(const char *path, int err, char *errbuf)
{
	switch (err) {
	case EBUSY:
		return fail(errbuf, err, "%s: another consumer is attached", path);
	case EACCES:
	case EPERM:
		/*
		 * In a user namespace, runtimes do not create a device file. They mount the node's own file at this
		 * path, and that file belongs to the module and root.
		 */
		if (in_user_namespace())
			return fail(errbuf, err, "%s: permission denied: a container with a user namespace of its own (hostUsers: false) cannot "
				    "open the module's queues: set hostUsers: true in the pod, or engine: EBPF in the CaptureRing", path);
		return fail(errbuf, err, "%s: permission denied: the device node belongs to another user, or the device cgroup "
			    "refuses it: was this queue given to this container?", path);
	case ENXIO:
	case ENODEV:
		return fail(errbuf, ENODEV, "%s: the queue was deleted, or the ringcap module is not loaded", path);
	}
	return fail(errbuf, err, "%s: %s", path, strerror(err));
}

int kmod_open(struct ringcap *h, const char *path, char *errbuf)
{
	struct kmod *k = &h->kmod;
	int err;

	memset(k, 0, sizeof(*k));
	k->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (k->fd < 0)
		return open_failed(path, errno, errbuf);
	err = map_info(k, path, errbuf);
	if (!err)
		err = map_lanes(k, path, errbuf);
	if (!err) {
		err = watch(h, k->fd, EVENT_QUEUE);
		if (err)
			fail(errbuf, -err, "%s: epoll: %s", path, strerror(-err));
	}
	if (err) {
		kmod_close(h);
		return err;
	}
	for (unsigned int i = 0; i < k->lanes.nr && !h->take_unread; i++)
		h->skipped += lanes_skip(&k->lanes, i, __atomic_load_n(&k->consumer[i].left, __ATOMIC_RELAXED));
	h->lanes = &k->lanes;
	h->own_timeout = (uint64_t *)&k->consumer[0].timeout_us;
	h->revoked = &k->info->revoked;	/* the kernel sets that before it zeroes anything */
	h->engine = &engine_kmod;
	snprintf(h->queue.name, sizeof(h->queue.name), "%s", k->info->name);
	h->queue.queue = k->info->queue;
	h->queue.nr_queues = k->info->nr_queues;
	h->queue.snaplen = k->info->snaplen;
	return 0;
}

static int kmod_service(struct ringcap *h, unsigned int events)
{
	(void)h;
	return events & EVENT_QUEUE_GONE ? -ENODEV : 0;
}

/*
 * The module may have a timer running for the old timeout, for packets that came while the reader was at work. When an
 * entry is modified, epoll asks the module again, which then starts the timer for the new timeout.
 */
static void kmod_retime(struct ringcap *h)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = EVENT_QUEUE };

	epoll_ctl(h->epoll_fd, EPOLL_CTL_MOD, h->kmod.fd, &event);
}

static void kmod_stats(struct ringcap *h, struct ringcap_stats *stats)
{
	for (unsigned int i = 0; i < h->kmod.lanes.nr; i++)
		stats_add(stats, &h->kmod.kernel[i].stats);
}

/* A signal before the first element is no error for the caller. */
static int kmod_shunt(struct ringcap *h, unsigned int verb, struct ringcap_shunts *argument)
{
	static const unsigned long requests[] = {
		[RINGCAP_SHUNT_ADD] = RINGCAP_IOC_SHUNT,
		[RINGCAP_SHUNT_REMOVE] = RINGCAP_IOC_UNSHUNT,
		[RINGCAP_SHUNT_READ] = RINGCAP_IOC_SHUNT_READ,
		[RINGCAP_SHUNT_ENDED] = RINGCAP_IOC_SHUNT_ENDED,
	};
	int done;

	do
		done = ioctl(h->kmod.fd, requests[verb], argument);
	while (done < 0 && errno == EINTR);
	if (done >= 0)
		return done;
	return errno == ENOTTY ? -ENOTSUP : -errno;
}

const struct engine engine_kmod = {
	.name = "KernelModule",
	.retime = kmod_retime,
	.service = kmod_service,
	.stats = kmod_stats,
	.shunt = kmod_shunt,
	.close = kmod_close,
};
