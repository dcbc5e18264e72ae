/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that libringcap's files share. */
#ifndef RINGCAP_INTERNAL_H
#define RINGCAP_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include <ringcap/ringcap.h>

#include "adhoc.h"
#include "ebpf.h"
#include "kmod.h"

#define RINGCAP_API __attribute__((visibility("default")))

/* The source of an epoll event in a handle's set. These are bits, so that one wait can report several sources. */
enum event {
	EVENT_WAKE = 1 << 0,	/* ringcap_wakeup was called */
	EVENT_QUEUE = 1 << 1,	/* there are packets, or the queue was deleted */
	EVENT_LINK = 1 << 2,	/* eBPF: the connection to the agent is readable or has ended */
	EVENT_TIMER = 1 << 3,	/* eBPF: time to try that connection again */
	EVENT_QUEUE_GONE = 1 << 4,
};

/*
 * The functions that an engine provides for a handle. Only shunt waits. In an engine without sleep, the queue's
 * descriptor is readable while packets are outstanding or unread.
 */
struct engine {
	const char *name;
	/* Makes the next packet turn the epoll set readable. Returns false if a packet is already there. */
	bool (*sleep)(struct ringcap *h);
	/* Called after sleep, when the first packets since then were received. */
	void (*stir)(struct ringcap *h);
	/* Called when there are packets: makes the epoll set readable, unless the engine will. */
	void (*show)(struct ringcap *h);
	/* Called after a fork, when the child starts to read. */
	void (*forked)(struct ringcap *h);
	/* Called after the reader's own timeout has changed. NULL = nothing to do. */
	void (*retime)(struct ringcap *h);
	/* Handles enum event bits. Returns -ENODEV when the queue is gone and will not come back. */
	int (*service)(struct ringcap *h, unsigned int events);
	void (*stats)(struct ringcap *h, struct ringcap_stats *stats);
	/* Does what the ioctl does; may wait for the node agent. Returns a negative errno for an error. */
	int (*shunt)(struct ringcap *h, unsigned int verb, struct ringcap_shunts *argument);
	void (*close)(struct ringcap *h);
};

struct ringcap {
	const struct engine *engine;
	struct lanes *lanes;		/* in the engine's part */
	const uint32_t *revoked;	/* not 0 once the queue was taken back: fetched data may then be zeroes */
	uint64_t *own_timeout;		/* in the memory that the engine reads, see A CONSUMER'S OWN TIMEOUT */
	unsigned char *reader;		/* a separate page: 1 in the process that reads, 0 in its forked children */
	unsigned int outstanding;	/* packets received and not released */
	unsigned int owed;		/* packets that a forked child released before it started to read */
	unsigned int turns;		/* calls of ringcap_recv that found packets since the last check for events */
	bool running;			/* ringcap_read has started a run */
	bool may_list;			/* the program's run has a list */
	bool take_unread;		/* read the packets that earlier consumers left */
	uint64_t skipped;		/* without take_unread: packets that were skipped */
	bool asleep;			/* engine->sleep returned true, and nothing was received since */
	bool announced;			/* the epoll set is readable, or will be when there are packets */
	bool found;			/* packets were found since the last check for events */
	bool fd_given;			/* a program may wait without ringcap_recv */
	int gone;			/* -ENODEV once the queue is gone */
	atomic_uint woken;		/* set by any thread, taken by the reader */
	int wake_fd;			/* its eventfd */
	int epoll_fd;
	struct ringcap_queue queue;
	struct adhoc *adhoc;		/* NULL unless this handle created the queue */
	union {
		struct kmod kmod;
		struct ebpf ebpf;
	};
};

/* For engines that detect in another way that a queue was taken back. */
extern const uint32_t never_revoked;

extern const struct engine engine_kmod;
extern const struct engine engine_ebpf;

/* Adds a descriptor to the handle's epoll set. Returns 0 or -errno. */
int watch(struct ringcap *h, int fd, enum event tag);

/* Adds a lane's counters to a queue's. The producer may be changing the lane's counters meanwhile. */
void stats_add(struct ringcap_stats *sum, const struct ringcap_lane_stats *lane);

/* Formats a message into errbuf, which is NULL or has RINGCAP_ERRBUF_SIZE bytes. Returns -err. */
int fail(char *errbuf, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
