/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues: the memory that one consumer maps, and that consumer.
 *
 * References are held by the cluster, by the consumer's open file and by publishers that have one of its lanes on
 * their list; so the memory outlives the cluster while someone has it mapped. The last reference may go in a softirq,
 * the memory goes in a worker.
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
struct rc_packet;
struct rc_transmit;

/* Who has a queue for itself. */
enum rc_queue_holder {
	RC_QUEUE_FREE,
	RC_QUEUE_CONSUMER,
	RC_QUEUE_RESET,
};

/* What all queues of a cluster have in common. */
struct rc_queue_shape {
	u32 nr_queues;
	u32 nr_lanes;
	u32 lane_size;
};

/**
 * struct rc_queue - a queue
 * @producers: per CPU
 * @attended: a consumer is attached; written under rc_chardev_lock, read by producers
 * @nr_lanes: of @lanes, which each have its snap length while one is; the most that there may be, of which those that
 *	were never wanted have no memory
 * @snaplen: what the attached consumer was told: the greatest since the queue was last empty for sure
 * @waiter: when a sleeping consumer is woken
 * @producers_work: gives lanes to producers that ask for one; holds a reference while it is pending
 * @grow_again: jiffies before which that does not try to give a lane memory; its own
 * @looks, @look: see poll.c
 * @dead: no cluster's any more, or taken back from its consumer; under rc_chardev_lock
 * @holder: under rc_chardev_lock
 * @pid: the consumer's process; under rc_chardev_lock
 * @attachment: number of the last time that one attached, of all queues; under rc_chardev_lock
 * @chardev: its public face, while not @dead
 * @index: number in its cluster
 * @nr_queues: how many that has
 * @grow: taken to give a lane memory, innermost but for what allocating takes
 * @memcg: of the process that made it: charged for that memory; held. NULL = there are none
 * @info, @kernel, @consumer: the mapped pages
 * @grants: what its consumer may send out of, the cluster's; NULL = nothing
 * @transmit: from which it does; there while a consumer is attached that found something granted
 * @tx_sent, @tx_failed: packets that consumers have sent; by one thread at a time
 * @before, @shared_before: account of the queues that were in this one's place; under rc_chardev_lock
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
	atomic_t looks;
	struct rcu_head look;
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
	struct ringcap_lane_stats before;
	u64 shared_before;
	struct rc_lane lanes[];
};

/* @overflow is done by the worker when the queue overflows, see overflow.h. NULL without memory. */
struct rc_queue *rc_queue_create(const struct rc_queue_shape *shape, u32 index, work_func_t overflow);

static inline void rc_queue_get(struct rc_queue *queue)
{
	kref_get(&queue->ref);
}

void rc_queue_put(struct rc_queue *queue);

/* Gives @lane memory, if it has none. -ENOMEM; -ENODEV where the queue is dead. Sleeps. */
int rc_queue_grow(struct rc_queue *queue, struct rc_lane *lane);

/*
 * Attaches current as the consumer, which is told that the queue is of a cluster of this @name and, where rings feed it, has
 * packets of up to @snaplen bytes, else 0. -EBUSY while the queue is held, -ENOMEM. Under rc_chardev_lock, the queue is not dead.
 */
int rc_queue_attach(struct rc_queue *queue, const char *name, u32 snaplen);
void rc_queue_detach(struct rc_queue *queue);

/* Not one that it was taken back from. Under rc_chardev_lock. */
static inline bool rc_queue_has_consumer(const struct rc_queue *queue)
{
	return queue->holder == RC_QUEUE_CONSUMER && !queue->dead;
}

/* Empties and zeroes a queue that the caller has made RC_QUEUE_RESET, or has taken back. Sleeps. */
void rc_queue_reset(struct rc_queue *queue);

/* No producer knows the queue any more: tells the consumer. Under rc_chardev_lock. */
void rc_queue_kill(struct rc_queue *queue);

/* The same where producers know it, who drop from now on; and the consumer is told why. Under rc_chardev_lock. Cannot fail. */
void rc_queue_take_back(struct rc_queue *queue);

/* Takes over what @old has counted until now; of what came between two calls the second makes up. Under rc_chardev_lock. */
void rc_queue_inherit(struct rc_queue *queue, const struct rc_queue *old);

void rc_queue_stats(const struct rc_queue *queue, struct ringcap_lane_stats *sum);

/* Lanes that have memory. */
u32 rc_queue_lanes(const struct rc_queue *queue);

/* Packets of those delivered that took the lane that CPUs without one of their own share. */
u64 rc_queue_shared(const struct rc_queue *queue);
u64 rc_queue_unread_bytes(struct rc_queue *queue);
u64 rc_queue_memory(const struct rc_queue *queue);

/* Whose @lane it is. */
static inline struct rc_queue *rc_queue_of(const struct rc_lane *lane)
{
	return container_of(lane->waiter, struct rc_queue, waiter);
}

/* Counts a packet that comes while no consumer is attached. Lanes need not be touched for that, nor their locks taken. */
static __always_inline void rc_queue_drop_unattended(const struct rc_queue *queue)
{
	__this_cpu_inc(queue->producers->unattended);
}

/* The lane that only this CPU produces into; NULL = none. */
static __always_inline struct rc_lane *rc_queue_own_lane(const struct rc_queue *queue)
{
	return __this_cpu_read(queue->producers->own);
}

/* What rc_queue_deliver_shared delivers: this CPU's, with bottom halves off. */
DECLARE_PER_CPU(struct rc_packet, rc_queue_packet);

/* rc_queue_deliver of a CPU that has no lane of its own, of rc_queue_packet. Returns the packet's time. */
u64 rc_queue_deliver_shared(struct rc_queue *queue);

/*
 * Delivers or drops @pkt, on the CPU that got it, with bottom halves off, under RCU. The address of @pkt is passed to nobody from
 * here on: where the caller has not passed it on either, the compiler keeps in registers what is needed of it, and forgets the
 * rest.
 */
static __always_inline void rc_queue_deliver(struct rc_queue *queue, struct rc_packet *pkt)
{
	struct rc_lane *lane = rc_queue_own_lane(queue);

	if (likely(lane)) {
		rc_lane_put(lane, pkt);
		return;
	}
	/* Not on the stack: the compiler would guard that for every packet. */
	rc_packet_copy_known(this_cpu_ptr(&rc_queue_packet), pkt);
	pkt->ts_ns = rc_queue_deliver_shared(queue);
}

/* Delivers @pkt as rc_queue_deliver does if a consumer is attached and has room; else does and counts nothing. */
bool rc_queue_offer(struct rc_queue *queue, struct rc_packet *pkt);

/* A guess, without its lock: @pkt has no room on this CPU. */
bool rc_queue_seems_full(const struct rc_queue *queue, const struct rc_packet *pkt);

#endif /* RC_QUEUE_H */
