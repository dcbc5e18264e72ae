/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libringcap: read packets from a ringcap queue, whichever engine serves it.
 *
 * A handle belongs to one thread at a time; ringcap_wakeup may be called from any thread and from a signal handler.
 * Functions that return int return 0 or a positive count on success and -errno on failure.
 */
#ifndef RINGCAP_RINGCAP_H
#define RINGCAP_RINGCAP_H

#include <stddef.h>
#include <stdint.h>

#include <linux/ringcap.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RINGCAP_ERRBUF_SIZE 256

struct ringcap;

/* A packet that was received and not yet released: its bytes are valid until ringcap_release passes it. */
struct ringcap_pkt {
	const struct ringcap_slot *slot;
	const uint8_t *data;	/* slot->caplen bytes */
};

/* A queue's account since it was made. */
struct ringcap_stats {
	uint64_t delivered;
	uint64_t delivered_bytes;
	uint64_t dropped[RINGCAP_DROP_REASONS];	/* by enum ringcap_drop */
};

/* What is known of an opened queue. */
struct ringcap_queue {
	char name[RINGCAP_NAME_MAX + 1];
	uint32_t queue;
	uint32_t nr_queues;
	uint32_t snaplen;
	const char *engine;	/* "KernelModule" or "EBPF" */
};

/* One queue that this process could open. */
struct ringcap_device {
	char name[RINGCAP_NAME_MAX + 1];
	uint32_t queue;
};

/*
 * Opens "NAME" (the first queue of NAME that this container was given and that nobody else has attached) or
 * "NAME@QUEUE". On failure returns NULL and sets errno and, when errbuf is not NULL, RINGCAP_ERRBUF_SIZE bytes that
 * say what failed, on what, why, and what to do. flags: 0. RINGCAP_DEV_DIR and RINGCAP_RUN_DIR in the environment
 * replace /dev/ringcap and /run/ringcap unless the process is setuid or has file capabilities.
 */
struct ringcap *ringcap_open(const char *name, unsigned int flags, char *errbuf);

/* Lists up to max queues that this process was given, whether attached or not; returns how many there are. */
int ringcap_list(struct ringcap_device *devices, size_t max);

/* A descriptor for poll and epoll: readable when ringcap_recv has packets, has been woken, or must be called. */
int ringcap_fd(const struct ringcap *h);

/*
 * Receives up to max packets without copying them. Waits up to timeout_ms for the first (0: not at all, -1: for ever).
 * Returns their number, 0 when the time is up, -EINTR after ringcap_wakeup, -ENODEV when the queue was deleted
 * or given to another consumer, -EBADMSG when what is in it makes no sense (it was skipped), -ENOBUFS when 65536 packets
 * are not released yet.
 */
int ringcap_recv(struct ringcap *h, struct ringcap_pkt *pkts, unsigned int max, int timeout_ms);

/* Gives back the n oldest packets that were received and not yet released. */
void ringcap_release(struct ringcap *h, unsigned int n);

/* Makes the current or the next ringcap_recv return -EINTR. */
void ringcap_wakeup(struct ringcap *h);

int ringcap_stats(struct ringcap *h, struct ringcap_stats *stats);

void ringcap_queue(const struct ringcap *h, struct ringcap_queue *queue);

/* Detaches. Packets that were not released stay in the queue for the next consumer. */
void ringcap_close(struct ringcap *h);

#ifdef __cplusplus
}
#endif

#endif /* RINGCAP_RINGCAP_H */
