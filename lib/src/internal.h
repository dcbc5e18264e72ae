/* SPDX-License-Identifier: BSD-2-Clause */
/* What libringcap's files share. */
#ifndef RINGCAP_INTERNAL_H
#define RINGCAP_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include <ringcap/ringcap.h>

#include "adhoc.h"
#include "ebpf.h"
#include "kmod.h"

#define RINGCAP_API __attribute__((visibility("default")))

/* What an epoll event of a handle's set is about. Bits, so that a wait can report several. */
enum event {
	EVENT_WAKE = 1 << 0,	/* ringcap_wakeup was called */
	EVENT_QUEUE = 1 << 1,	/* packets are there, or the queue was deleted */
	EVENT_LINK = 1 << 2,	/* eBPF: the connection to the agent is readable, or has ended */
	EVENT_TIMER = 1 << 3,	/* eBPF: time to try that connection again */
	EVENT_QUEUE_GONE = 1 << 4,
};

/*
 * An engine's part of a handle's work. None of these waits. Without sleep, the queue's descriptor is readable while
 * anything is outstanding, and otherwise when packets are there.
 */
struct engine {
	const char *name;
	/* Has the next packet make the epoll set readable; false = one is there already. */
	bool (*sleep)(struct ringcap *h);
	/* With sleep: packets were received, the first ones since then; */
	void (*stir)(struct ringcap *h);
	/* packets are there: makes the epoll set readable, unless the engine will; */
	void (*show)(struct ringcap *h);
	/* and after a fork, when the child begins to read. */
	void (*forked)(struct ringcap *h);
	/* Handles enum event bits; -ENODEV = the queue is gone and will not come back. */
	int (*service)(struct ringcap *h, unsigned int events);
	void (*stats)(struct ringcap *h, struct ringcap_stats *stats);
	void (*close)(struct ringcap *h);
};

struct ringcap {
	const struct engine *engine;
	struct lanes *lanes;		/* in the engine's part */
	const uint32_t *revoked;	/* not 0 once the queue was taken back: then what was fetched may be zeroes */
	unsigned char *reader;		/* a page of its own: 1 in the process that reads, 0 in what it forks */
	unsigned int outstanding;	/* packets received and not released */
	unsigned int owed;		/* that a forked child has released before it began to read */
	unsigned int turns;		/* calls of ringcap_recv that found packets, since events were looked at */
	bool running;			/* ringcap_read has begun a run */
	bool may_list;			/* the program's run has a list */
	bool take_unread;		/* what earlier consumers left is read, */
	uint64_t skipped;		/* else it was skipped: packets */
	bool asleep;			/* engine->sleep said so, and nothing was received since */
	bool announced;			/* the epoll set is readable, or will be when packets are or get there */
	bool found;			/* packets, since events were looked at */
	bool fd_given;			/* somebody may wait without ringcap_recv */
	int gone;			/* -ENODEV once the queue is gone */
	atomic_uint woken;		/* set by any thread, taken by the reader */
	int wake_fd;			/* its eventfd */
	int epoll_fd;
	struct ringcap_queue queue;
	struct adhoc *adhoc;		/* NULL when the queue was made by somebody else */
	union {
		struct kmod kmod;
		struct ebpf ebpf;
	};
};

/* For engines that detect otherwise that a queue was taken back. */
extern const uint32_t never_revoked;

extern const struct engine engine_kmod;
extern const struct engine engine_ebpf;

/* Adds a descriptor to the handle's epoll set; 0 or -errno. */
int watch(struct ringcap *h, int fd, enum event tag);

/* Adds a lane's counters, which may be counting on, to a queue's. */
void stats_add(struct ringcap_stats *sum, const struct ringcap_lane_stats *lane);

/* Formats into errbuf (which may be NULL, else has RINGCAP_ERRBUF_SIZE bytes) and returns -err. */
int fail(char *errbuf, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
