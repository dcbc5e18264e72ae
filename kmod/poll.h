/* SPDX-License-Identifier: GPL-2.0-only */
/* Polling: what a consumer learns when it asks whether to sleep. */
#ifndef RC_POLL_H
#define RC_POLL_H

#include <linux/hrtimer.h>
#include <linux/poll.h>

struct rc_queue;

__poll_t rc_poll_queue(struct rc_queue *queue);

/* The function of a waiter's timer. */
enum hrtimer_restart rc_poll_look(struct hrtimer *timer);

#endif /* RC_POLL_H */
