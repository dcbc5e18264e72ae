/* SPDX-License-Identifier: GPL-2.0-only */
/* Sends packets that a consumer has put into its transmit area. */
#ifndef RC_SEND_H
#define RC_SEND_H

#include <linux/types.h>

struct rc_queue;

/*
 * RINGCAP_IOC_TX: takes at most @max slots, or all if @max is 0. Returns how many it took, or -errno when it took none.
 */
long rc_send_run(struct rc_queue *queue, u32 max, bool nonblock);

#endif /* RC_SEND_H */
