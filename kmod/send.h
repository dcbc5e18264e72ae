/* SPDX-License-Identifier: GPL-2.0-only */
/* Sending what a consumer has put into its transmit area. */
#ifndef RC_SEND_H
#define RC_SEND_H

#include <linux/types.h>

struct rc_queue;

/* RINGCAP_IOC_TX: how many slots were taken, at most @max if that is not 0, or -errno when it is none. */
long rc_send_run(struct rc_queue *queue, u32 max, bool nonblock);

#endif /* RC_SEND_H */
