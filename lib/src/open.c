// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "find.h"
#include "name.h"

#define READER_BYTES 4096

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18	/* Linux 4.14 */
#endif

int fail(char *errbuf, int err, const char *format, ...)
{
	va_list args;

	if (errbuf) {
		va_start(args, format);
		vsnprintf(errbuf, RINGCAP_ERRBUF_SIZE, format, args);
		va_end(args);
	}
	return -err;
}

int watch(struct ringcap *h, int fd, enum event tag)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = tag };

	return epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/*
 * Returns memory that tells in which process it is, or NULL if there is no memory. On a kernel that does not support
 * this, a forked child is not detected.
 */
static unsigned char *new_reader(void)
{
	unsigned char *p = mmap(NULL, READER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, READER_BYTES, MADV_WIPEONFORK);
	*p = 1;
	return p;
}

static void free_handle(struct ringcap *h)
{
	if (h->adhoc)
		adhoc_close(h->adhoc);
	if (h->reader)
		munmap(h->reader, READER_BYTES);
	if (h->wake_fd >= 0)
		close(h->wake_fd);
	if (h->epoll_fd >= 0)
		close(h->epoll_fd);
	free(h);
}

static struct ringcap *new_handle(char *errbuf)
{
	struct ringcap *h = calloc(1, sizeof(*h));
	int err;

	if (h)
		h->reader = new_reader();
	if (!h || !h->reader) {
		free(h);
		errno = -fail(errbuf, ENOMEM, "out of memory");
		return NULL;
	}
	h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = h->epoll_fd < 0 || h->wake_fd < 0 ? -errno : watch(h, h->wake_fd, EVENT_WAKE);
	if (err) {
		fail(errbuf, -err, "making an epoll set: %s", strerror(-err));
		free_handle(h);
		errno = -err;
		return NULL;
	}
	return h;
}

static int attach(struct ringcap *h, const struct found *found, char *errbuf)
{
	char path[PATH_MAX];

	if (find_path(found, path, sizeof(path)))
		return fail(errbuf, ENAMETOOLONG, "%s: the path of its queues is too long", find_base(found->origin));
	return found->origin == ORIGIN_DEV ? kmod_open(h, path, errbuf) : ebpf_open(h, path, errbuf);
}

static int none_given(const struct queue_name *want, char *errbuf)
{
	char at[16] = "";

	if (want->queue != QUEUE_ANY)
		snprintf(at, sizeof(at), "@%d", want->queue);
	return fail(errbuf, ENOENT, "no queue %s%s here (looked in %s and %s): a pod gets one by the resource limit "
		    "ringcap.io/%s: 1%s", want->name, at, find_base(ORIGIN_DEV), find_base(ORIGIN_RUN), want->name,
		    want->queue == QUEUE_ANY ? "; and no network interface has this name" : "");
}

/* Attaches to the first free queue of the n queues. */
static int attach_first(struct ringcap *h, const struct queue_name *want, const struct found *found, int n, char *errbuf)
{
	int tried = 0, busy = 0, err = 0;

	for (int i = 0; i < n; i++) {
		if (want->queue != QUEUE_ANY && found[i].queue != want->queue)
			continue;
		tried++;
		err = attach(h, &found[i], errbuf);
		if (!err)
			return 0;
		busy += err == -EBUSY;
	}
	if (!tried)
		return none_given(want, errbuf);
	if (busy == tried && tried > 1)
		return fail(errbuf, EBUSY, "all %d queues of %s that are here have a consumer attached", tried, want->name);
	return err;
}

static int attach_named(struct ringcap *h, const struct queue_name *want, char *errbuf)
{
	struct found *found = NULL;
	int n = find_queues(want->name, &found), err;

	err = n < 0 ? fail(errbuf, -n, "out of memory") : attach_first(h, want, found, n, errbuf);
	free(found);
	if (err)
		return err;
	h->queue.engine = h->engine->name;
	h->announced = !h->engine->sleep;
	return 0;
}

RINGCAP_API struct ringcap *ringcap_open_interface(const char *interface, const struct ringcap_capture *how, char *errbuf)
{
	static const struct ringcap_capture defaults;
	struct queue_name want = { .queue = how && how->cluster ? QUEUE_ANY : 0 };
	struct ringcap *h;
	int err;

	h = new_handle(errbuf);
	if (!h)
		return NULL;
	h->adhoc = adhoc_open(interface, how ? how : &defaults, errbuf);
	err = h->adhoc ? 0 : -errno;
	if (!err) {
		memcpy(want.name, h->adhoc->cluster, sizeof(want.name));
		err = attach_named(h, &want, errbuf);
	}
	if (!err)
		return h;
	free_handle(h);
	errno = -err;
	return NULL;
}

/* Returns true if name is an interface's name. Such a name may contain characters that are not valid in a queue's. */
static bool names_interface(const char *name)
{
	return name && strlen(name) < IF_NAMESIZE && if_nametoindex(name);
}

/*
 * Decides whether to read what earlier consumers left: returns 1, 0, or -EINVAL. The environment may set this for any
 * program, because it gives access to nothing that the program could not open anyway.
 */
static int takes_unread(unsigned int flags, char *errbuf)
{
	const char *said = getenv("RINGCAP_UNREAD");

	/* CDI variables override the container's own environment. So the agent's variable has another name. */
	if (!said)
		said = getenv("RINGCAP_UNREAD_DEFAULT");
	if (flags & ~(RINGCAP_OPEN_TAKE | RINGCAP_OPEN_SKIP) || flags == (RINGCAP_OPEN_TAKE | RINGCAP_OPEN_SKIP))
		return fail(errbuf, EINVAL, "flags %#x: at most one of RINGCAP_OPEN_TAKE (%#x) and RINGCAP_OPEN_SKIP (%#x)", flags,
			    RINGCAP_OPEN_TAKE, RINGCAP_OPEN_SKIP);
	if (flags || !said || !*said || !strcmp(said, "skip"))
		return flags == RINGCAP_OPEN_TAKE;
	if (!strcmp(said, "take"))
		return 1;
	return fail(errbuf, EINVAL, "RINGCAP_UNREAD is '%.80s' in the environment: set it to 'take', to read what earlier consumers left "
		    "in the queue, or to 'skip'", said);
}

RINGCAP_API struct ringcap *ringcap_open(const char *name, unsigned int flags, char *errbuf)
{
	struct queue_name want;
	struct ringcap *h;
	const char *why = "no name was given";
	int err, take = takes_unread(flags, errbuf);

	if (take < 0) {
		errno = -take;
		return NULL;
	}
	if (!name || name_parse(name, &want, &why)) {
		if (names_interface(name))
			return ringcap_open_interface(name, NULL, errbuf);
		errno = -fail(errbuf, EINVAL, "'%.80s' does not name a queue (NAME or NAME@QUEUE): %s", name ? name : "", why);
		return NULL;
	}
	h = new_handle(errbuf);
	if (!h)
		return NULL;
	h->take_unread = take;
	err = attach_named(h, &want, errbuf);
	if (!err)
		return h;
	free_handle(h);
	if (err == -ENOENT && want.queue == QUEUE_ANY && names_interface(name))
		return ringcap_open_interface(name, NULL, errbuf);
	errno = -err;
	return NULL;
}

RINGCAP_API void ringcap_close(struct ringcap *h)
{
	if (!h)
		return;
	h->engine->close(h);
	free_handle(h);
}

RINGCAP_API int ringcap_list(struct ringcap_device *devices, size_t max)
{
	struct found *found = NULL;
	int n = find_queues(NULL, &found);

	for (int i = 0; i < n && (size_t)i < max; i++) {
		memcpy(devices[i].name, found[i].name, sizeof(devices[i].name));
		devices[i].queue = (uint32_t)found[i].queue;
	}
	free(found);
	return n;
}

RINGCAP_API uint64_t ringcap_skipped(const struct ringcap *h)
{
	return h->skipped;
}

RINGCAP_API void ringcap_queue(const struct ringcap *h, struct ringcap_queue *queue)
{
	*queue = h->queue;
}
