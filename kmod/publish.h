/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Publishing in batches. A CPU writes packets into lanes in a burst, and they become visible to consumers when its
 * receive or transmit work is done. The lanes that it wrote to are on a list of that CPU, which a tasklet processes.
 *
 * NET_RX_SOFTIRQ raises the tasklet. So it runs behind that softirq in the next round of softirqs, or in ksoftirqd. For
 * a packet that a process sends, it runs at the next local_bh_enable(). So one store serves a whole NAPI poll, or a few
 * polls if the device polls on. A lane publishes early when an eighth of it is unpublished.
 */
#ifndef RC_PUBLISH_H
#define RC_PUBLISH_H

struct rc_lane;

int rc_publish_init(void);

/* Called when no tap is left. After it returns, all marked lanes are published. */
void rc_publish_exit(void);

/* Puts @lane on this CPU's list. Bottom halves are off; the lane is not on a list. */
void rc_publish_mark(struct rc_lane *lane);

#endif /* RC_PUBLISH_H */
