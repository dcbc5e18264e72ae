/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A pair of interfaces with a ring in line, and an end at each side:
 *
 *	a0 ===== a1 -> ring, cluster -> b1 ===== b0
 *	            <-               <-
 *
 * Rings on a0 and b0 receive what came through. What b0 and a0 receive is steered to processor 0, so that its order can
 * be seen.
 */
#ifndef RT_INLINE_H
#define RT_INLINE_H

#include "end.h"
#include "fixture.h"

#define RT_OPEN_ALL (RINGCAP_OPEN_UNATTENDED | RINGCAP_OPEN_FULL | RINGCAP_OPEN_HUNG)

/**
 * struct rt_line - the pair
 * @open: RINGCAP_A_INLINE
 * @hung_ms, @lane_size, @snaplen: 0 = default
 * @tx_queues: of b1, 0 = 1
 * @sender_queues: transmit queues of a0, which a1 shows as receive queues; 0 = 1
 * @filter: of the ring, may be NULL
 * @shunt_quota: of the cluster
 * @at_once: each packet wakes its consumer, as an agent has it
 */
struct rt_line {
	u32 open;
	u32 hung_ms;
	u32 lane_size;
	u32 queues;
	u32 shunt_quota;
	u32 snaplen;
	u32 tx_queues;
	u32 sender_queues;
	const struct sock_filter *filter;
	u32 filter_len;
	bool at_once;
	char ring[32], cluster[32];
	u32 a1, b1;
	struct rt_end a, b;
};

/* Makes everything; the settings are filled in already. */
void rt_line_open(struct rt_line *line);
void rt_line_close(struct rt_line *line);

/* CLUSTER_SET and RING_SET of @line alone. */
int rt_line_set_cluster(const struct rt_line *line);
int rt_line_set_ring(const struct rt_line *line);

/* Of the ring, or summed over the cluster's queues. */
void rt_line_stats(const struct rt_line *line, u64 *ring, u64 *cluster);

/* Of @stats, packets that were to leave and did not. */
u64 rt_line_lost(const u64 *stats);

/* Waits until nothing is under way, then checks that the accounts add up; returns the cluster's part in @stats. */
void rt_line_check(const struct rt_line *line, u64 sent, u64 *stats);

/* The verdict on a packet: RINGCAP_VERDICT_*, 0 = none; it may set data and len. */
typedef u8 (*rt_judge_fn)(const struct ringcap_slot *slot, const u8 *packet, struct ringcap_verdict *verdict, void *arg);

/* Reads what @queue has, gives verdicts, then releases it. @judge NULL: all pass. Returns how many it read. */
u32 rt_line_judge(struct rt_queue *queue, rt_judge_fn judge, void *arg);

/* The ioctl: the number taken, or -errno. @missed may be NULL. */
int rt_verdicts(int fd, const struct ringcap_verdict *verdicts, u32 nr, u32 *missed);

#endif /* RT_INLINE_H */
