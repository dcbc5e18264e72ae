/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Publishing in batches. What a CPU has written into lanes in a burst becomes visible to consumers when its receive or
 * transmit work is done: the lanes that it wrote to are on a list of that CPU, which a tasklet works off. A tasklet
 * because what NET_RX_SOFTIRQ raises is run in the next round of softirqs, behind it, or by ksoftirqd, and at the next
 * local_bh_enable() when the packet was sent from a process: so one store serves a whole NAPI poll, or a few when the
 * device polls on, of which a lane publishes early what is an eighth of it.
 */
#ifndef RC_PUBLISH_H
#define RC_PUBLISH_H

struct rc_lane;

int rc_publish_init(void);

/* When no tap is left. All that was marked is published afterwards. */
void rc_publish_exit(void);

/* Puts @lane on this CPU's list. Bottom halves are off; the lane is on no list. */
void rc_publish_mark(struct rc_lane *lane);

#endif /* RC_PUBLISH_H */
