/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A ring's configuration: read-only data, constant for a loaded program. node-agent/engine/ebpf/object.go writes it. */
#ifndef RC_CONFIG_H
#define RC_CONFIG_H

#include <linux/ringcap.h>

#include "classify.h"

#define QUEUES_MAX	16384	/* queues of the node */
#define TARGETS_MAX	16	/* targets that a ring's rules name */
#define TABLES_MAX	(RINGCAP_OUTPUTS_MAX + TARGETS_MAX)
#define SHAPES_MAX	64	/* mask shapes of a ring's wildcard rules */

#define CONFIG_VLANS	(1U << 0)	/* only the VLANs in config.vlans pass */
#define CONFIG_RX_QUEUES (1U << 1)	/* only the receive queues in ring_channels are captured */
#define CONFIG_EXACT	(1U << 2)	/* there are exact rules */
#define CONFIG_LEARN	(1U << 3)	/* a rule learns */
#define CONFIG_WILD	(1U << 4)	/* there are wildcard rules */
#define CONFIG_INNER_KEY (1U << 5)	/* a rule asks for packets in tunnels */
#define CONFIG_PATTERNS	(1U << 6)	/* the payload is searched */
#define CONFIG_IDLE	(1U << 7)	/* a rule, or one that it learns, expires when it is idle */
#define CONFIG_PLAIN	(1U << 8)	/* one output; its queue depends at most on the packet's flow: see plain.h */

#define CONFIG_FILTER	(1U << 9)	/* there is a filter */
#define CONFIG_RULED	(1U << 10)	/* as CONFIG_PLAIN, but with rules that ruled.h can apply */
#define CONFIG_SHUNTS	(1U << 11)	/* consumers of a cluster may shunt flows: see shunt.h */

/**
 * struct output - a cluster that the ring feeds, or the target of a rule
 * @base: place of the cluster's queue 0 in the node's tables of queues; for a target to reflect to, the interface
 * @queues: number of queues, 0 = there are none to put packets into
 * @balance: enum ringcap_balance
 * @queue: for a target, the queue
 * @lanes, @lane_size: for each queue, as in struct ringcap_handover_reply; 1 .. RINGCAP_LANES_MAX, and a power of two
 * @head_size: bytes before the first lane
 * @watermark: unread bytes of a lane at which a sleeping consumer is woken
 * @timeout_ns: nanoseconds after which it is woken for fewer bytes, 0 = at each packet; a consumer can have its own
 * @hashed: RINGCAP_SLOT_HASHED if slots have the flow's hash, else 0
 * @hdr_len: header length of slots: sizeof(struct ringcap_slot) or RINGCAP_SLOT_SHORT
 * @shunts: its consumers may shunt flows
 */
struct output {
	__u32 base;
	__u32 queues;
	__u32 balance;
	__u32 queue;
	__u8 inner;
	__u8 fragments;		/* enum ringcap_fragments */
	__u8 when_full;		/* enum ringcap_policy */
	__u8 when_unattended;
	__u8 hashed;
	__u8 hdr_len;
	__u8 shunts;
	__u8 resv;
	__u64 key[2];
	__u32 lanes;
	__u32 lane_size;
	__u32 head_size;
	__u32 watermark;
	__u64 timeout_ns;
};

struct config {
	__u32 snaplen;
	__u32 parsed;		/* bytes of a packet that the parser is given: RC_PARSE_MAX or RC_INNER_MAX */
	__u32 flags;		/* CONFIG_* */
	__u32 xdp_verdict;	/* XDP_PASS or XDP_DROP */
	__u32 nr_outputs;
	__u32 resv;
	__u32 default_action;
	__u32 default_target;
	__u32 sample_n;		/* one in N, 0 and 1 = all */
	__u32 sample_by;	/* enum ringcap_sample */
	__u64 sample_key[2];
	__u32 pattern_drop;	/* drop packets that contain a pattern, else those that contain none */
	__u32 pattern_mask;	/* mask of places in ring_pattern_rows, in bytes */
	__u32 pattern_first;	/* least position in the payload where a pattern may begin */
	__u32 pattern_limit;	/* position where the last pattern must have ended */
	__u32 pattern_start[2];	/* initial states of the machines, 0 = there is no machine */
	__u32 cpus;		/* possible CPUs */
	__u32 cpu_mask;		/* the next power of two, less one */
	struct output outputs[RINGCAP_OUTPUTS_MAX];
	struct output targets[TARGETS_MAX];
	__u64 vlans[4096 / 64];
	__u16 pattern_classes[2][256];	/* of bytes, by machine */
};

#define UNATTENDED_CPUS	16	/* a power of two; see queue.h */

/* A word that others write at the same time. */
#define read_now(word) (*(volatile __u64 *)&(word))

extern const volatile struct config config;

#endif /* RC_CONFIG_H */
