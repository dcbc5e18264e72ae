/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libringcap: read packets from a ringcap queue of either engine.
 *
 * Only one thread at a time may use a handle. Any thread and any signal handler may call ringcap_wakeup.
 * Functions that return int return 0 or a positive count on success, and -errno on failure.
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

/* A packet that was received and not yet released. Its bytes are valid until ringcap_release releases it. */
struct ringcap_pkt {
	const struct ringcap_slot *slot;
	const uint8_t *data;	/* slot->caplen bytes */
};

/*
 * A run: some packets in time order. ringcap_read fills it in, and ringcap_next walks through it. The packets are
 * contiguous in the queue's memory. Where packets of several CPUs alternate, the run lists them instead.
 * Zero the structure before its first use. Its fields are private to libringcap.
 */
struct ringcap_run {
	const uint8_t *next;	/* the next slot */
	const uint8_t *stop;	/* no slot of the run starts here or later */
	const struct ringcap_slot *const *listed;	/* when there are no contiguous slots: the next slot */
	const struct ringcap_slot *const *listed_end;
};

/* A queue's counters since the queue was created. */
struct ringcap_stats {
	uint64_t delivered;
	uint64_t delivered_bytes;	/* captured bytes; on the wire: delivered_bytes + truncated_bytes */
	uint64_t dropped[RINGCAP_DROP_REASONS];	/* by enum ringcap_drop */
	uint64_t truncated;		/* delivered packets that the ring's snap length shortened */
	uint64_t truncated_bytes;	/* bytes that these packets lost */
};

/* Packets injected since the handle was opened. */
struct ringcap_inject_stats {
	uint64_t sent;		/* handed to the device */
	uint64_t failed;	/* refused: interface not granted or down, bad length, no memory, device queue full */
};

/* Properties of an open queue. */
struct ringcap_queue {
	char name[RINGCAP_NAME_MAX + 1];
	uint32_t queue;
	uint32_t nr_queues;
	uint32_t snaplen;
	const char *engine;	/* "KernelModule" or "EBPF" */
};

/* A queue that this process could open. */
struct ringcap_device {
	char name[RINGCAP_NAME_MAX + 1];
	uint32_t queue;
};

/* The counters of an ad hoc ring: seen = filtered + sampled_out + passed. */
struct ringcap_ring_stats {
	uint64_t seen;
	uint64_t seen_bytes;
	uint64_t filtered;
	uint64_t sampled_out;
	uint64_t passed;
};

#define RINGCAP_CAPTURE_PROMISC		(1U << 0)	/* also packets that are not addressed to the interface */
#define RINGCAP_CAPTURE_IMMEDIATE	(1U << 1)	/* wake for each packet, whatever the value of timeout_us */
#define RINGCAP_CAPTURE_QUICK		(1U << 2)	/* accepted, but has no effect: capture is always quick */
#define RINGCAP_CAPTURE_HWTSTAMP	(1U << 3)	/* use the device's time stamps where it takes them */
#define RINGCAP_CAPTURE_INJECT		(1U << 4)	/* the handle may send from the interface */
#define RINGCAP_CAPTURE_NOTHING		(1U << 5)	/* capture no packets: for handles that only send */

/* Settings of an ad hoc capture, which needs no prepared ring. A field that is 0 has the module's default. */
struct ringcap_capture {
	uint32_t direction;	/* enum ringcap_direction */
	uint32_t snaplen;	/* most bytes captured of a packet */
	uint32_t flags;		/* RINGCAP_CAPTURE_* */
	uint32_t buffer_size;	/* size of a queue in bytes, rounded up */
	uint32_t watermark;	/* unread bytes that wake a waiting reader */
	uint32_t timeout_us;	/* microseconds until fewer bytes wake it, at most 1000000 */
	uint32_t queues;	/* number of queues; the handle reads queue 0, others are opened by name */
	uint32_t balance;	/* enum ringcap_balance, between these queues */
	uint32_t sample;	/* capture 1 in so many packets */
	uint32_t filter_len;	/* number of instructions in filter */
	const void *filter;	/* struct sock_filter[] (or struct bpf_insn[]) */
	const char *cluster;	/* deliver to this existing cluster, and read one of its queues */
	__extension__ union {
		uint64_t rx_queues[RINGCAP_RX_QUEUES_MAX / 64];	/* bit N: the device's RX queue N; all 0 = all */
		uint64_t channels[RINGCAP_RX_QUEUES_MAX / 64];	/* former name of rx_queues */
	};
};

#define RINGCAP_OPEN_TAKE	(1U << 0)	/* start with the packets that earlier consumers left unread */
#define RINGCAP_OPEN_SKIP	(1U << 1)	/* give older packets back unread; see ringcap_skipped */

/*
 * Opens "NAME@QUEUE", or "NAME": the first queue of NAME that this container was given and that nobody else has
 * attached. On failure, returns NULL and sets errno. errbuf may be NULL. Otherwise it has RINGCAP_ERRBUF_SIZE bytes,
 * which a failure fills with a message: what failed, on what object, why, and what to do.
 *
 * flags is 0 or one of RINGCAP_OPEN_*. With 0, the environment decides: RINGCAP_UNREAD is "take" or "skip". If it is
 * not set, RINGCAP_UNREAD_DEFAULT applies. If neither is set, unread packets are skipped. The node agent sets the
 * variables to "take" in containers, because only their pod uses their queues.
 *
 * RINGCAP_DEV_DIR and RINGCAP_RUN_DIR in the environment replace /dev/ringcap and /run/ringcap. They have no effect
 * when the process is setuid or has file capabilities.
 *
 * If no queue NAME was given but NAME is a network interface, this calls ringcap_open_interface with defaults.
 */
struct ringcap *ringcap_open(const char *name, unsigned int flags, char *errbuf);

/*
 * Opens an interface ad hoc. The module creates a ring and, unless how names a cluster, a cluster. It deletes them when
 * the handle is closed or the process ends. Needs the module and CAP_NET_ADMIN. how may be NULL.
 * Reports failure as ringcap_open does.
 */
struct ringcap *ringcap_open_interface(const char *interface, const struct ringcap_capture *how, char *errbuf);

/* Returns 0 if ringcap_open_interface can be used here, else -errno with the reason in errbuf. */
int ringcap_may_capture(char *errbuf);

/*
 * Replaces the filter of an ad hoc capture. len is the number of instructions; with 0, everything passes. If before is
 * not NULL, *before is the number of packets that the queue had got when the new filter became active. Those packets
 * passed the old filter. Returns -EOPNOTSUPP for other handles.
 */
int ringcap_set_filter(struct ringcap *h, const void *filter, unsigned int len, uint64_t *before);

/* Gets the counters of an ad hoc capture's ring. Returns -EOPNOTSUPP for other handles. */
int ringcap_ring_stats(struct ringcap *h, struct ringcap_ring_stats *stats);

/* Lists up to max queues that this process was given, attached or not. Returns how many queues there are. */
int ringcap_list(struct ringcap_device *devices, size_t max);

/*
 * Returns a descriptor for poll and epoll. It is readable when ringcap_recv has packets, was woken, or must be called.
 * Before waiting for it, give back the packets that were read.
 */
int ringcap_fd(const struct ringcap *h);

/*
 * Sets how long this reader accepts to sleep while fewer unread packets than the watermark are there: 1000 to 10000000
 * microseconds, in place of the queue's own timeout. 0, the default, is the queue's own. It has no effect on a queue
 * whose own timeout is 0, and on a queue of a module or node agent that does not know this function. A sleep that has
 * begun keeps its timeout. Returns -EINVAL for other values.
 */
int ringcap_set_timeout(struct ringcap *h, uint32_t timeout_us);

/*
 * Receives up to max packets without copying them. Waits up to timeout_ms for the first one (0: not at all, -1: without
 * limit). Returns the number of packets, 0 when the time is up, or
 *
 *   -EINTR    after ringcap_wakeup
 *   -ENODEV   the queue was deleted or taken back from this consumer, or a new node agent and this library have no
 *             version in common
 *   -EBADMSG  the queue's content was invalid and has been skipped
 *   -ENOBUFS  65536 packets are not released yet
 *   -EBUSY    a run of ringcap_read has not ended
 */
int ringcap_recv(struct ringcap *h, struct ringcap_pkt *pkts, unsigned int max, int timeout_ms);

/* Releases the n oldest packets that were received and not yet released. */
void ringcap_release(struct ringcap *h, unsigned int n);

/*
 * The quick way to read. Releases the packets of the last run that ringcap_next passed. Then starts a run with the
 * oldest packet that was not passed yet. Waits and fails as ringcap_recv does. Returns 1 when there is a packet, 0 when
 * the time is up, and -EBUSY while packets of ringcap_recv are not released. A run holds about 256 KiB at most.
 *
 * In the library, this function and ringcap_done have other symbol names. The symbols with the plain names are for
 * programs that were built when a run had no list.
 */
int ringcap_read(struct ringcap *h, struct ringcap_run *run, int timeout_ms) __asm__("ringcap_read_listed");

/*
 * Releases the packets that ringcap_next passed, and ends the run. The remaining packets are received again later.
 * After this, ringcap_recv may be called.
 */
void ringcap_done(struct ringcap *h, struct ringcap_run *run) __asm__("ringcap_done_listed");

#define RINGCAP_SLOT_REST_MAX (255 - RINGCAP_SLOT_SHORT + RINGCAP_SNAPLEN_MAX + 1)	/* after its short header */

/*
 * Returns the run's next packet, or NULL when none is left. The packet is valid until ringcap_read or ringcap_done is
 * called. Invalid lengths also end the run; the next ringcap_read returns the error.
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

/* Returns the slot->caplen bytes of a packet. */
static inline const uint8_t *ringcap_data(const struct ringcap_slot *slot)
{
	return (const uint8_t *)slot + slot->hdr_len;
}

/* Makes the current or the next ringcap_recv or ringcap_read return -EINTR. */
void ringcap_wakeup(struct ringcap *h);

/*
 * Gets the queue's counters. In the library, this function has another symbol name. The symbol with the plain name is
 * for programs that were built when the structure ended with dropped. It writes nothing after that field.
 */
int ringcap_stats(struct ringcap *h, struct ringcap_stats *stats) __asm__("ringcap_stats_truncated");

/*
 * Returns 0 if the handle can send, else -errno with the reason in errbuf. -ENOTSUP: the EBPF engine cannot send.
 * -EPERM: the queue's cluster granted its consumers no interface when the queue was opened.
 */
int ringcap_may_inject(struct ringcap *h, char *errbuf);

/*
 * Copies a packet to be sent from interface ifindex. Its len bytes start with the Ethernet header. The queue's cluster
 * must grant the interface; ifindex 0 means the only interface that it grants. ringcap_inject_flush sends the copied
 * packets. They are sent earlier when there is no room for more. Returns -EMSGSIZE when the packet is larger than any
 * device takes, and -EAGAIN when too many packets are being sent: try again later.
 * Other errors are those of ringcap_may_inject and ringcap_inject_flush.
 */
int ringcap_inject(struct ringcap *h, uint32_t ifindex, const void *packet, size_t len);

/*
 * Sends the injected packets. Returns how many were taken. Some of these may have failed: see ringcap_inject_stats.
 * Returns -EAGAIN when none was taken because too many packets are being sent, -EPERM when no interface is granted any
 * more, and -ENODEV when the queue is gone.
 */
int ringcap_inject_flush(struct ringcap *h);

/* Tells how many of the flushed packets were sent and how many failed. */
int ringcap_inject_stats(const struct ringcap *h, struct ringcap_inject_stats *stats);

/*
 * Returns 1 if the queue is one of an in-line cluster: its packets wait for this consumer's verdicts. Otherwise 0, also
 * when the queue was deleted or taken back.
 */
int ringcap_is_inline(const struct ringcap *h);

/*
 * In a queue of an in-line cluster: the number by which a verdict names the packet of a slot that is received and not
 * released.
 */
uint64_t ringcap_position(const struct ringcap *h, const struct ringcap_slot *slot);

/*
 * Gives n verdicts on packets of an in-line queue, in order, and injects packets of the consumer's own. Returns how many
 * were taken. If a verdict is invalid, those before it are taken; if it is the first, this returns an error as
 * RINGCAP_IOC_VERDICT does, or -ENOTSUP with the eBPF engine. *missed is the number of those taken that found no packet:
 * they came too late, or were not the first. missed may be NULL.
 */
int ringcap_verdicts(struct ringcap *h, const struct ringcap_verdict *verdicts, unsigned int n, unsigned int *missed);

/*
 * Shunted flows: packets of a flow that this consumer needs no more of do not come to its queue any longer, in both
 * directions. A flow has addresses, ports, protocol and VLAN as in an exact rule, the action RINGCAP_ACTION_DROP or, in
 * line, RINGCAP_ACTION_PASS, and idle_s, the seconds without a packet after which it ends by itself; 0 = never.
 *
 * These return the number of flows that they handled. If a flow is invalid, those before it are handled; if it is the
 * first, they return an error as RINGCAP_IOC_SHUNT does: -EPERM where the cluster does not allow it, -EDQUOT when there
 * are as many flows as it allows, -EINVAL, -ENOMEM, -ENODEV. -ENOTSUP: an older module or agent. With the eBPF engine
 * they wait for the agent, some 0.1 ms; -EAGAIN: it is being restarted, or has not answered within half a second.
 */
int ringcap_shunt(struct ringcap *h, const struct ringcap_exact *flows, unsigned int n);

/* Ends n flows. Their packets come again. */
int ringcap_unshunt(struct ringcap *h, const struct ringcap_exact *flows, unsigned int n);

/* Fills in states of flows that they name. Where a flow is not shunted, counts.flags is 0. */
int ringcap_shunt_read(const struct ringcap *h, struct ringcap_exact_state *states, unsigned int n);

/*
 * Fills in up to n flows that have ended, each once, with their final counters. Returns their number, 0 = none. lost,
 * which may be NULL, gets the number of flows so far that ended while too many ends were not read.
 */
int ringcap_shunt_ended(struct ringcap *h, struct ringcap_exact_state *states, unsigned int n, uint64_t *lost);

/* Packets of shunted flows and their bytes on the wire, since the queue was made. */
struct ringcap_shunt_stats {
	uint64_t shunted;
	uint64_t shunted_bytes;
};

/* Gets the queue's counters of shunted packets. Returns 0, -ENOTSUP, -EAGAIN or -ENODEV. */
int ringcap_shunt_stats(const struct ringcap *h, struct ringcap_shunt_stats *stats);

void ringcap_queue(const struct ringcap *h, struct ringcap_queue *queue);

/*
 * Returns the number of packets that earlier consumers left and that opening the handle gave back unread. The counter
 * delivered includes them, like packets that were read.
 */
uint64_t ringcap_skipped(const struct ringcap *h);

/*
 * Detaches. Packets that were not released stay in the queue for a consumer that takes them.
 * A forked child may close its copy of the handle. This changes nothing for its parent. If the child reads with its
 * copy instead, the handle belongs to the child.
 */
void ringcap_close(struct ringcap *h);

#ifdef __cplusplus
}
#endif

#endif /* RINGCAP_RINGCAP_H */
