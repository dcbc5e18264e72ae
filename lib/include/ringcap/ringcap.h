/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libringcap: read packets from a ringcap queue of either engine.
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

/*
 * Some packets in the order of their time: what ringcap_read fills in and ringcap_next walks through. They lie in a row in
 * the queue's memory or, where processors took turns, they are listed. Zeroed before its first use; its fields are
 * libringcap's own.
 */
struct ringcap_run {
	const uint8_t *next;	/* the slot that comes next */
	const uint8_t *stop;	/* no slot of the run begins here or later */
	const struct ringcap_slot *const *listed;	/* without such slots: what comes next */
	const struct ringcap_slot *const *listed_end;
};

/* A queue's account since it was made. */
struct ringcap_stats {
	uint64_t delivered;
	uint64_t delivered_bytes;	/* that can be read: on the wire they were delivered_bytes + truncated_bytes */
	uint64_t dropped[RINGCAP_DROP_REASONS];	/* by enum ringcap_drop */
	uint64_t truncated;		/* packets of those delivered that the ring's snap length has shortened */
	uint64_t truncated_bytes;	/* that these lack */
};

/* Injected packets since the handle was opened. */
struct ringcap_inject_stats {
	uint64_t sent;		/* handed to the device */
	uint64_t failed;	/* refused: interface not granted or down, too short or long, no memory, the device's queue full */
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

/* What a ring that was made ad hoc has seen: seen = filtered + sampled_out + passed. */
struct ringcap_ring_stats {
	uint64_t seen;
	uint64_t seen_bytes;
	uint64_t filtered;
	uint64_t sampled_out;
	uint64_t passed;
};

#define RINGCAP_CAPTURE_PROMISC		(1U << 0)	/* also what is not addressed to the interface */
#define RINGCAP_CAPTURE_IMMEDIATE	(1U << 1)	/* wake for each packet, whatever timeout_us is */
#define RINGCAP_CAPTURE_QUICK		(1U << 2)	/* accepted, without effect: always quick */
#define RINGCAP_CAPTURE_HWTSTAMP	(1U << 3)	/* the device's time stamps, where it takes them */
#define RINGCAP_CAPTURE_INJECT		(1U << 4)	/* the handle may send out of the interface */
#define RINGCAP_CAPTURE_NOTHING		(1U << 5)	/* no packet is captured: for handles that only send */

/* How an interface is captured without anybody's having prepared it. What is 0 is the module's default. */
struct ringcap_capture {
	uint32_t direction;	/* enum ringcap_direction */
	uint32_t snaplen;	/* bytes of a packet */
	uint32_t flags;		/* RINGCAP_CAPTURE_* */
	uint32_t buffer_size;	/* bytes of a queue, rounded up */
	uint32_t watermark;	/* unread bytes at which a waiting reader is woken */
	uint32_t timeout_us;	/* microseconds after which it is woken for less, at most 1000000 */
	uint32_t queues;	/* this many, of which the handle reads number 0; others are opened by name */
	uint32_t balance;	/* enum ringcap_balance, between them */
	uint32_t sample;	/* 1 in so many packets */
	uint32_t filter_len;	/* instructions of filter */
	const void *filter;	/* struct sock_filter[] (or struct bpf_insn[]) */
	const char *cluster;	/* deliver to this cluster, which is there, and read one of its queues */
	__extension__ union {
		uint64_t rx_queues[RINGCAP_RX_QUEUES_MAX / 64];	/* bit N: the device's RX queue N; all 0 = all */
		uint64_t channels[RINGCAP_RX_QUEUES_MAX / 64];	/* former name of rx_queues */
	};
};

#define RINGCAP_OPEN_TAKE	(1U << 0)	/* begin with what earlier consumers of the queue left unread */
#define RINGCAP_OPEN_SKIP	(1U << 1)	/* begin with now: give that back unread, see ringcap_skipped */

/*
 * Opens "NAME" (the first queue of NAME that this container was given and that nobody else has attached) or
 * "NAME@QUEUE". On failure returns NULL and sets errno and, when errbuf is not NULL, RINGCAP_ERRBUF_SIZE bytes that
 * contain what failed, on what, why, and what to do. flags: at most one of RINGCAP_OPEN_*; with 0, RINGCAP_UNREAD in
 * the environment is "take" or "skip", without it RINGCAP_UNREAD_DEFAULT, and without both it is the latter. The node
 * agent sets them to "take" in containers, whose queues are their pod's alone. RINGCAP_DEV_DIR and RINGCAP_RUN_DIR in
 * the environment replace /dev/ringcap and /run/ringcap unless the process is setuid or has file capabilities.
 *
 * Where no queue NAME was given but NAME is a network interface: ringcap_open_interface with defaults.
 */
struct ringcap *ringcap_open(const char *name, unsigned int flags, char *errbuf);

/*
 * Opens an interface ad hoc: has the module make a ring and, unless how names one, a cluster, which go when the handle
 * is closed or the process ends. Needs the module and CAP_NET_ADMIN. how may be NULL. Failure as for ringcap_open.
 */
struct ringcap *ringcap_open_interface(const char *interface, const struct ringcap_capture *how, char *errbuf);

/* 0 if ringcap_open_interface can be used here, else -errno and the reason. */
int ringcap_may_capture(char *errbuf);

/*
 * Gives an ad hoc capture another filter (len instructions, 0 = everything passes). *before, unless NULL, is how many
 * packets the queue had got when it became active: they passed the old filter. -EOPNOTSUPP for other handles.
 */
int ringcap_set_filter(struct ringcap *h, const void *filter, unsigned int len, uint64_t *before);

/* The account of an ad hoc capture's ring. -EOPNOTSUPP for other handles. */
int ringcap_ring_stats(struct ringcap *h, struct ringcap_ring_stats *stats);

/* Lists up to max queues that this process was given, whether attached or not; returns how many there are. */
int ringcap_list(struct ringcap_device *devices, size_t max);

/*
 * A descriptor for poll and epoll: readable when ringcap_recv has packets, has been woken, or must be called. Give back
 * what was read before waiting.
 */
int ringcap_fd(const struct ringcap *h);

/*
 * Receives up to max packets without copying them. Waits up to timeout_ms for the first (0: not at all, -1: for ever).
 * Returns their number, 0 when the time is up, -EINTR after ringcap_wakeup, -ENODEV when the queue was deleted
 * or taken back from this consumer, or a new node agent speaks no version that this library does, -EBADMSG when what is in it makes no sense (it was skipped), -ENOBUFS when 65536
 * packets are not released yet, -EBUSY in a run of ringcap_read.
 */
int ringcap_recv(struct ringcap *h, struct ringcap_pkt *pkts, unsigned int max, int timeout_ms);

/* Gives back the n oldest packets that were received and not yet released. */
void ringcap_release(struct ringcap *h, unsigned int n);

/*
 * The quick way: begins a run with the oldest packet that was not passed yet, after giving back what ringcap_next has
 * passed of the last one. Waits and fails as ringcap_recv does; returns 1 when there is a packet, 0 when the time is
 * up, -EBUSY while packets of ringcap_recv are not released. A run holds some 256 KiB at most.
 *
 * The library has this and ringcap_done under names of their own: what is there under these is for programs that were
 * built when a run had no list.
 */
int ringcap_read(struct ringcap *h, struct ringcap_run *run, int timeout_ms) __asm__("ringcap_read_listed");

/*
 * Gives back what ringcap_next has passed, and ends the run; what is left of it comes again. ringcap_recv may follow.
 */
void ringcap_done(struct ringcap *h, struct ringcap_run *run) __asm__("ringcap_done_listed");

#define RINGCAP_SLOT_REST_MAX (255 - RINGCAP_SLOT_SHORT + RINGCAP_SNAPLEN_MAX + 1)	/* of a slot, behind its short header */

/*
 * The run's next packet, which is valid until ringcap_read or ringcap_done is called; NULL when there is none left.
 * Lengths that cannot be end the run too, and the next ringcap_read returns the error.
 */
static inline const struct ringcap_slot *ringcap_next(struct ringcap_run *run)
{
	const struct ringcap_slot *slot = (const struct ringcap_slot *)(const void *)run->next;
	uint64_t rest;

	if (run->next >= run->stop)
		return run->listed < run->listed_end ? *run->listed++ : NULL;
	rest = ((uint64_t)slot->hdr_len + slot->caplen - RINGCAP_SLOT_SHORT + 7) & ~7ULL;
	if (rest > RINGCAP_SLOT_REST_MAX)
		return NULL;
	run->next += RINGCAP_SLOT_SHORT + rest;
	return slot;
}

/* A packet's slot->caplen bytes. */
static inline const uint8_t *ringcap_data(const struct ringcap_slot *slot)
{
	return (const uint8_t *)slot + slot->hdr_len;
}

/* Makes the current or the next ringcap_recv or ringcap_read return -EINTR. */
void ringcap_wakeup(struct ringcap *h);

/*
 * The queue's account. The library has it under a name of its own: what is there under this one is for programs that
 * were built when the account ended with dropped, and writes nothing behind that.
 */
int ringcap_stats(struct ringcap *h, struct ringcap_stats *stats) __asm__("ringcap_stats_truncated");

/*
 * 0 if the handle can send, else -errno and the reason: -ENOTSUP by the EBPF engine, -EPERM where the queue's cluster
 * granted its consumers no interface when it was opened.
 */
int ringcap_may_inject(struct ringcap *h, char *errbuf);

/*
 * Copies a packet of len bytes, from its Ethernet header on, to be sent out of interface ifindex, which the queue's
 * cluster must grant; 0 = the only one that it grants. What was copied is sent by ringcap_inject_flush, and before when
 * there is no room for more. -EMSGSIZE for more than any device takes, -EAGAIN when too much is under way: try again
 * later; otherwise as ringcap_may_inject and ringcap_inject_flush.
 */
int ringcap_inject(struct ringcap *h, uint32_t ifindex, const void *packet, size_t len);

/*
 * Sends what was injected; how many packets were taken, some of which may have failed: see ringcap_inject_stats.
 * -EAGAIN when none could be because too much is under way, -EPERM when nothing is granted any more, -ENODEV when the
 * queue is gone.
 */
int ringcap_inject_flush(struct ringcap *h);

/* What became of the packets that were flushed. */
int ringcap_inject_stats(const struct ringcap *h, struct ringcap_inject_stats *stats);

void ringcap_queue(const struct ringcap *h, struct ringcap_queue *queue);

/*
 * Packets that earlier consumers left and that opening the handle gave back unread. They are in the account's
 * delivered, as those are that were read.
 */
uint64_t ringcap_skipped(const struct ringcap *h);

/*
 * Detaches. Packets that were not released stay in the queue for a consumer that takes them. A forked child may close its
 * copy of the handle, which changes nothing for its parent, or read with it; then it is the child's.
 */
void ringcap_close(struct ringcap *h);

#ifdef __cplusplus
}
#endif

#endif /* RINGCAP_RINGCAP_H */
