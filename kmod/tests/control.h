/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sends the module's generic netlink messages without a library, so that malformed ones can be sent too. A struct
 * rt_message is built attribute by attribute. rt_call sends it and returns 0 or a negative errno. In rt_reason it
 * leaves the text of the kernel's extended acknowledgement.
 */
#ifndef RT_CONTROL_H
#define RT_CONTROL_H

#include <linux/filter.h>
#include <linux/ringcap.h>

#include "test.h"

#define RT_MESSAGE_MAX 65536

/* rt_call returns this if the kernel had no memory for the answer; the request may have been carried out. */
#define RT_NO_ANSWER 1

struct rt_message {
	u32 len;
	u8 bytes[RT_MESSAGE_MAX] __attribute__((aligned(8)));
};

/* Attributes of an answer, by type. If a type occurs several times: the last one, and how many there are. */
struct rt_answer {
	const void *attr[RINGCAP_A_MAX + 1];
	u16 len[RINGCAP_A_MAX + 1];
	u16 times[RINGCAP_A_MAX + 1];
	u8 cmd;
};

typedef void (*rt_answer_fn)(const struct rt_answer *answer, void *arg);

extern char rt_reason[256];

/* The last rt_call was a dump that a change interrupted. */
extern bool rt_interrupted;

/* A socket in the current network namespace; every process of a case opens its own. */
void rt_control_open(void);
int rt_control_fd(void);
u16 rt_control_family(void);

void rt_message_init(struct rt_message *message, u8 cmd, u16 flags);
void rt_message_put(struct rt_message *message, u16 type, const void *value, u32 len);
void rt_message_put_u32(struct rt_message *message, u16 type, u32 value);
void rt_message_put_u64(struct rt_message *message, u16 type, u64 value);
void rt_message_put_name(struct rt_message *message, u16 type, const char *name);
u32 rt_message_nest(struct rt_message *message, u16 type);
void rt_message_nest_end(struct rt_message *message, u32 nest);
int rt_call(struct rt_message *message, rt_answer_fn fn, void *arg);

u32 rt_answer_u32(const struct rt_answer *answer, int type);
u64 rt_answer_u64(const struct rt_answer *answer, int type);

/* Waits for an event of kind @event about @name; subscribe before the action that causes it. */
void rt_events_open(void);
bool rt_events_wait(enum ringcap_event event, const char *name, int milliseconds);

/* Zeroes mean the module's defaults. */
struct rt_cluster {
	const char *name;
	u32 queues;
	u32 lanes;
	u32 lane_size;
	u32 balance;
	u32 watermark;
	u32 timeout_us;
	bool at_once;	/* a timeout of 0 */
	u32 metadata;
	u32 inner;
	u32 fragments;
	u32 when_full;
	u32 when_unattended;
	const u8 *key;
	u32 owned;
	u32 shunt_quota;
	u32 inject[RINGCAP_INJECT_MAX];	/* up to the first 0 */
};

struct rt_tap {
	u32 ifindex;
	u32 direction;
};

struct rt_ring {
	const char *name;
	struct rt_tap taps[8];		/* up to the first with ifindex 0 */
	const char *outputs[RINGCAP_OUTPUTS_MAX];
	u32 snaplen;
	u32 defrag;
	const struct sock_filter *filter;
	u32 filter_len;
	u64 rx_queues;			/* receive queues of each tap, 0 = all */
	u32 promiscuous;
	u32 transparent;
	u32 owned;
	void (*more)(struct rt_message *message, const void *arg);	/* puts other attributes */
	const void *arg;
	u32 quick;
	u32 follows;			/* RINGCAP_A_TAP_FOLLOWS of each tap */
};

struct rt_ring_counts {
	u64 seen, seen_bytes, filtered, sampled_out, passed, absorbed, directed, reflected, reflect_failed;
	u32 taps;
	u32 ifindex, follows;		/* of the last of them */
};

struct rt_queue_counts {
	u64 delivered, delivered_bytes, truncated, truncated_bytes, dropped[RINGCAP_DROP_REASONS], unread, memory;
	u64 tx_sent, tx_failed, shared, fullest_lane;
	u64 shunted, shunted_bytes, shunts_lost;
	u32 lanes, shunts;
	u32 attached, pid;
	u64 attachment;
	u32 devt;
};

int rt_cluster_set(const struct rt_cluster *cluster);
int rt_ring_set(const struct rt_ring *ring);
int rt_delete(u8 cmd, const char *name);
int rt_queue_reset(const char *name, u32 queue);
/* @pid: 0 = from any holder. */
int rt_queue_revoke(const char *name, u32 queue, u32 pid);
int rt_queue_revoke_attachment(const char *name, u32 queue, u64 attachment);

/* These fail the case if the object does not exist. */
void rt_ring_counts(const char *name, struct rt_ring_counts *counts);
void rt_queue_counts(const char *name, u32 queue, struct rt_queue_counts *counts);
void rt_cluster_counts(const char *name, struct rt_queue_counts *sum);
u64 rt_ring_seen(const char *name);
/* A number from the object's answer to command cmd, which is a GET. */
u32 rt_get_attr(u8 cmd, const char *name, int type);

/* Counts of the cluster itself. */
void rt_cluster_balance(const char *name, u64 *duplicated, u64 *spread);

/* A number that changes when any ring or cluster of this namespace changes. */
u64 rt_control_digest(void);

#endif /* RT_CONTROL_H */
