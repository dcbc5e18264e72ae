/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues: the memory that one consumer maps, and that consumer.
 *
 * The cluster, the consumer's open file, and publishers that have one of its lanes on their list hold references. So
 * the memory outlives the cluster while a consumer has it mapped. The last reference may be dropped in a softirq; a
 * worker frees the memory.
 */
#ifndef RC_QUEUE_H
#define RC_QUEUE_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "lane.h"
#include "overflow.h"
#include "producer.h"
#include "region.h"
#include "waiter.h"

struct mem_cgroup;
struct rc_chardev;
struct rc_grants;
struct rc_hold;
struct rc_packet;
struct rc_shunts;
struct rc_transmit;

/* What holds a queue exclusively. */
enum rc_queue_holder {
	RC_QUEUE_FREE,
	RC_QUEUE_CONSUMER,
	RC_QUEUE_RESET,
};

/* Packets that were not delivered because their flow is shunted, and their bytes on the wire. */
struct rc_queue_shunted {
	u64 packets;
	u64 bytes;
};

/* What all queues of a cluster have in common. @in_line: 1 = packets wait in them for verdicts, see hold.h. */
struct rc_queue_shape {
	u32 nr_queues;
	u32 nr_lanes;
	u32 lane_size;
	u32 in_line;
};

/**
 * struct rc_queue - a queue
 * @producers: per CPU
 * @attended: a consumer is attached; written under rc_chardev_lock, read by producers
 * @nr_lanes: maximum number of @lanes, which each have the queue's snap length while a consumer is attached. Lanes that
 *	were never wanted have no memory
 * @snaplen: what the attached consumer was told: the greatest since the queue was last known to be empty
 * @waiter: when a sleeping consumer is woken
 * @producers_work: gives lanes to producers that ask for one; holds a reference while it is pending
 * @grow_again: jiffies before which @producers_work does not try to give a lane memory; only that work uses it
 * @dead: in no cluster any more, or taken back from its consumer; under rc_chardev_lock
 * @holder: under rc_chardev_lock
 * @pid: the consumer's process; under rc_chardev_lock
 * @attachment: number of the last attachment, counted over all queues; under rc_chardev_lock
 * @chardev: its character device, while not @dead
 * @index: number in its cluster
 * @nr_queues: number of queues in its cluster
 * @grow: taken to give a lane memory; innermost, except for the locks that allocating takes
 * @memcg: of the process that made the queue; lane memory is charged to it; held. NULL = the kernel has no memory
 *	cgroups
 * @info, @kernel, @consumer: the mapped pages
 * @grants: interfaces that its consumer may send out of; the cluster's. NULL = none
 * @transmit: the area that the consumer sends from. It exists while a consumer is attached for which something was
 *	granted
 * @tx_sent, @tx_failed: packets that consumers have sent; updated by one thread at a time
 * @hold: packets that wait for its consumer's verdicts; NULL = it is not in line
 * @shunts: flows that its consumer has shunted; NULL = it has not asked. Written under rc_chardev_lock
 * @shunt_quota: how many flows it may shunt; written without a lock
 * @shunts_lost: see rc_shunts_lost; under rc_chardev_lock
 * @before, @shared_before, @shunted_before: counts of the queues that this one has replaced; under rc_chardev_lock
 */
struct rc_queue {
	struct rc_producer __percpu *producers;
	bool attended;
	u32 nr_lanes;
	u32 snaplen;
	struct rc_waiter waiter;

	/* Publishers write to it, once a batch. */
	struct kref ref ____cacheline_aligned_in_smp;
	struct work_struct free_work;
	struct work_struct producers_work;
	unsigned long grow_again;
	struct rc_overflow overflow;
	bool dead;
	enum rc_queue_holder holder;
	struct pid *pid;
	u64 attachment;
	struct rc_chardev *chardev;
	u32 index;
	u32 nr_queues;
	struct mutex grow;
	struct mem_cgroup *memcg;
	struct rc_region info;
	struct rc_region kernel;
	struct rc_region consumer;
	struct rc_grants __rcu *grants;
	struct rc_transmit *transmit;
	u64 tx_sent;
	u64 tx_failed;
	struct rc_hold *hold;
	struct rc_shunts __rcu *shunts;
	u32 shunt_quota;
	u64 shunts_lost;
	struct ringcap_lane_stats before;
	u64 shared_before;
	struct rc_queue_shunted shunted_before;
	struct rc_lane lanes[];
};

/* What the worker runs to tell listeners of a queue: @overflow (overflow.h), @past (hold.h). */
struct rc_queue_tell {
	work_func_t overflow;
	work_func_t past;
};

/* Returns NULL without memory. */
struct rc_queue *rc_queue_create(const struct rc_queue_shape *shape, u32 index, const struct rc_queue_tell *tell);

static inline void rc_queue_get(struct rc_queue *queue)
{
	kref_get(&queue->ref);
}

void rc_queue_put(struct rc_queue *queue);

/* Gives @lane memory, if it has none. -ENOMEM; -ENODEV if the queue is dead. Sleeps. */
int rc_queue_grow(struct rc_queue *queue, struct rc_lane *lane);

/*
 * Attaches current as the consumer. The consumer is told the cluster's @name, and that packets have up to @snaplen
 * bytes; 0 if no ring feeds the cluster. -EBUSY while the queue is held, -ENOMEM. Under rc_chardev_lock; the queue is
 * not dead.
 */
int rc_queue_attach(struct rc_queue *queue, const char *name, u32 snaplen);
void rc_queue_detach(struct rc_queue *queue);

/* False for a consumer that the queue was taken back from. Under rc_chardev_lock. */
static inline bool rc_queue_has_consumer(const struct rc_queue *queue)
{
	return queue->holder == RC_QUEUE_CONSUMER && !queue->dead;
}

/* Empties and zeroes a queue. The caller has made it RC_QUEUE_RESET, or has taken it back. Sleeps. */
void rc_queue_reset(struct rc_queue *queue);

/* Tells the consumer that the queue has ended. No producer knows the queue any more. Under rc_chardev_lock. */
void rc_queue_kill(struct rc_queue *queue);

/*
 * The same while producers know the queue: they drop packets from now on. The consumer is told why. Under
 * rc_chardev_lock. Cannot fail.
 */
void rc_queue_take_back(struct rc_queue *queue);

/* Takes over the counts of @old. A second call adds what was counted since the first. Under rc_chardev_lock. */
void rc_queue_inherit(struct rc_queue *queue, const struct rc_queue *old);

void rc_queue_stats(const struct rc_queue *queue, struct ringcap_lane_stats *sum);

/* Packets of shunted flows. */
void rc_queue_shunted(const struct rc_queue *queue, struct rc_queue_shunted *sum);

/* Number of lanes that have memory. */
u32 rc_queue_lanes(const struct rc_queue *queue);

/* Number of delivered packets that took the shared lane, which CPUs without a lane of their own use. */
u64 rc_queue_shared(const struct rc_queue *queue);
u64 rc_queue_unread_bytes(struct rc_queue *queue);

/* Unread bytes of the lane that has the most. */
u64 rc_queue_fullest_lane(const struct rc_queue *queue);
u64 rc_queue_memory(const struct rc_queue *queue);

/* Whose @lane it is. */
static inline struct rc_queue *rc_queue_of(const struct rc_lane *lane)
{
	return container_of(lane->waiter, struct rc_queue, waiter);
}

/* Counts a packet that arrives while no consumer is attached. This touches no lane and takes no lane's lock. */
static __always_inline void rc_queue_drop_unattended(const struct rc_queue *queue)
{
	__this_cpu_inc(queue->producers->unattended);
}

/* The lane that only this CPU produces into; NULL = none. */
static __always_inline struct rc_lane *rc_queue_own_lane(const struct rc_queue *queue)
{
	return __this_cpu_read(queue->producers->own);
}

/* The packet that rc_queue_deliver_shared delivers. The CPU uses its own one with bottom halves off. */
DECLARE_PER_CPU(struct rc_packet, rc_queue_packet);

/* rc_queue_deliver for a CPU that has no lane of its own; delivers rc_queue_packet. Returns the packet's time. */
u64 rc_queue_deliver_shared(struct rc_queue *queue);

/*
 * Delivers or drops @pkt, on the CPU that got it, with bottom halves off, under RCU. From here on the address of @pkt
 * is passed to no function. If the caller has not passed it on either, the compiler keeps the needed fields in
 * registers and drops the rest.
 */
static __always_inline void rc_queue_deliver(struct rc_queue *queue, struct rc_packet *pkt)
{
	struct rc_lane *lane = rc_queue_own_lane(queue);

	if (likely(lane)) {
		rc_lane_put(lane, pkt);
		return;
	}
	/* Not on the stack: there the compiler would add a stack guard for every packet. */
	rc_packet_copy_known(this_cpu_ptr(&rc_queue_packet), pkt);
	pkt->ts_ns = rc_queue_deliver_shared(queue);
}

/*
 * Delivers @pkt as rc_queue_deliver does if a consumer is attached and has room. Otherwise does nothing and counts
 * nothing.
 */
bool rc_queue_offer(struct rc_queue *queue, struct rc_packet *pkt);

/* Whether @pkt seems to have no room on this CPU: a guess, without the lock. */
bool rc_queue_seems_full(const struct rc_queue *queue, const struct rc_packet *pkt);

#endif /* RC_QUEUE_H */
