/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Holding: a queue of an in-line cluster keeps each packet until its consumer gives a verdict, or an event takes it
 * (IN LINE in linux/ringcap.h).
 *
 * Everything happens under one lock of the queue: putting a packet into the lane, which is the queue's only one,
 * sending by a verdict, and taking all packets at an event. So packets leave in the order in which that was decided,
 * and each leaves once. Packets that wait form a list in the order of their positions: its first is the oldest.
 *
 *	holding --- event: all that wait leave or are dropped, in order ---> past
 *	past ------ consumer attached, and it has released everything ----> holding
 *
 * In the state "past", nothing waits. So a packet that is held after it overtakes nothing. A packet that comes while
 * the state is "past" is sent under the same lock, after those that waited.
 *
 * A packet of a shunted flow (shunt.h) that is to pass leaves at once, under the same lock, unless a packet waits that
 * came before the flow was shunted, or that came after it and is of the flow. Then it waits, too: so it overtakes no
 * packet of its flow.
 *
 * A slot has at least 64 bytes: its header has 48, and rings with pairs capture at least 14 of a packet. So each slot has
 * an entry of its own in the index, which has one for each 64 bytes of the lane.
 *
 * The devices that a packet came by and leaves by are not held. When one goes, rc_hold_forget_device drops the packets
 * that were to leave by it, and nothing is injected there any more.
 */
#ifndef RC_HOLD_H
#define RC_HOLD_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/ringcap.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct net_device;
struct rc_packet;
struct rc_queue;

#define RC_HOLD_LANE_MAX	(4U << 20)	/* bytes: at an event, all that fits is sent with bottom halves off */
#define RC_HOLD_MEMORY		64	/* bytes that may wait for each byte of the lane: a page for the shortest slot */
#define RC_HOLD_SNAPLEN_MIN	64		/* bytes, of rings with pairs */
#define RC_HOLD_MS_DEFAULT	250
#define RC_HOLD_MS_MAX		60000

/**
 * struct rc_hold_episode - a time at which packets went past the consumer
 * @event: the last that kept it from deciding
 * @packets: that it did not get, or that its verdict came too late for
 * @ms: milliseconds, when it has ended
 */
struct rc_hold_episode {
	enum ringcap_past event;
	u64 packets;
	u64 ms;
};

/**
 * struct rc_hold - the packets of a queue that wait
 * @lock: for all of it, the lane's head, and sending. Taken with bottom halves off, before the lane's lock
 * @queue: whose it is
 * @waiting: packets, oldest first; its own lock is not used
 * @memory: bytes that they take, which are charged to nobody
 * @index: the packet whose slot begins in 64 bytes of the lane, or NULL
 * @open: RINGCAP_OPEN_*; written without the lock
 * @hung_ms: written without the lock
 * @past: packets go past the consumer
 * @armed: @timer is running, or will look at @armed
 * @taken: position up to which an event has taken all packets
 * @since: nanoseconds of the monotonic clock, when @now began
 * @now: the current episode, while @past
 * @last: episodes that have ended and that listeners were not told of, while @ended
 * @told: listeners were told that packets go past the consumer
 * @stats: by enum ringcap_inline_stat, without what @waiting counts
 * @before: those of queues that this one has replaced
 * @work: tells listeners; holds a reference to the queue while it is pending
 * @list: in the list of all
 */
struct rc_hold {
	spinlock_t lock;
	struct rc_queue *queue;
	struct sk_buff_head waiting;
	u64 memory;
	struct sk_buff **index;
	u8 open;
	u32 hung_ms;
	bool past;
	bool armed;
	u64 taken;
	u64 since;
	struct rc_hold_episode now;
	struct rc_hold_episode last;
	bool ended;
	bool told;
	u64 stats[RINGCAP_INLINE_STATS];
	u64 before[RINGCAP_INLINE_STATS];
	struct hrtimer timer;
	struct work_struct work;
	struct list_head list;
};

/* For a new queue, whose lane has @lane_size bytes. @tell tells listeners and drops the queue. NULL without memory. */
struct rc_hold *rc_hold_create(struct rc_queue *queue, u32 lane_size, work_func_t tell);

/* The queue is being freed. May sleep. @hold may be NULL. */
void rc_hold_destroy(struct rc_hold *hold);

void rc_hold_configure(struct rc_hold *hold, u8 open, u32 hung_ms);

/*
 * Takes @pkt, whose skb is only ours: it waits, leaves by @out, or is dropped, and is counted. Its data begin at the MAC
 * header. Bottom halves off, under RCU.
 */
void rc_hold_receive(struct rc_hold *hold, struct rc_packet *pkt, struct net_device *out);

/*
 * Obeys a consumer's @verdict, which is valid. @other: the packet of the verdict's data, or NULL; it is consumed. False if no packet waits there. Under @hold->lock.
 */
bool rc_hold_obey(struct rc_hold *hold, const struct ringcap_verdict *verdict, struct sk_buff *other);

/* A consumer is about to be attached: what is left in the lane has gone its way, so it begins with an empty one. */
void rc_hold_begin(struct rc_hold *hold);

/* Returns to holding, if a consumer is attached and has released everything. */
void rc_hold_look(struct rc_hold *hold);

/* No consumer is attached any more: what waits is taken by RINGCAP_PAST_UNATTENDED. */
void rc_hold_end(struct rc_hold *hold);

/*
 * @dev goes, and no packet comes by it, or is to leave by it, any more. Those that wait to leave by it are dropped.
 * Under RTNL.
 */
void rc_hold_forget_device(const struct net_device *dev);

/* Takes over the counts of @old. A second call adds what was counted since the first. */
void rc_hold_inherit(struct rc_hold *hold, struct rc_hold *old);

/* Fills in RINGCAP_INLINE_STATS counters. */
void rc_hold_stats(struct rc_hold *hold, u64 *stats);
u64 rc_hold_memory(const struct rc_hold *hold);

/* Whether packets go past the consumer now. If so, fills in @episode, with the milliseconds up to now. */
bool rc_hold_is_past(struct rc_hold *hold, struct rc_hold_episode *episode);

/* The next thing to tell listeners: RINGCAP_EVENT_PAST or _BACK with its episode, or 0. */
u32 rc_hold_news(struct rc_hold *hold, struct rc_hold_episode *episode);

#endif /* RC_HOLD_H */
