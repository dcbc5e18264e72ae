/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's worker: work that softirqs and notifiers leave to a process. */
#ifndef RC_WORKER_H
#define RC_WORKER_H

#include <linux/workqueue.h>

int rc_worker_module_init(void);

/* No queue is polled any more. Pending work is done first. */
void rc_worker_module_exit(void);

/* Schedules @work; false if it is already pending. */
bool rc_worker_schedule(struct work_struct *work);

/* Schedules @work for @delay jiffies from now, also if it is pending. */
void rc_worker_schedule_after(struct delayed_work *work, unsigned long delay);

#endif /* RC_WORKER_H */
