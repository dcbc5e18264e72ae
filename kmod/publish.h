/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Publishing in batches. What a CPU has written into lanes in a burst becomes visible to consumers when its receive or
 * transmit work is done: the lanes that it wrote to are on a list of that CPU, which a tasklet works off. A tasklet
 * because TASKLET_SOFTIRQ comes after NET_RX_SOFTIRQ in the same round of softirqs, or at the next local_bh_enable()
 * when the packet was sent from a process: so a packet is visible at the latest when the CPU would leave its network
 * work, and one store serves a whole NAPI poll.
 */
#ifndef RC_PUBLISH_H
#define RC_PUBLISH_H

#include <linux/types.h>

struct rc_lane;

int rc_publish_init(void);

/* When no tap is left. All that was marked is published afterwards. */
void rc_publish_exit(void);

/* Puts @lane on this CPU's list. Bottom halves are off; the lane is on no list. */
void rc_publish_mark(struct rc_lane *lane);

/* RC_PARSE_MAX bytes for the packet that this CPU has at hand. Bottom halves are off. */
u8 *rc_publish_scratch(void);

#endif /* RC_PUBLISH_H */
