/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's worker: what softirqs and notifiers leave to a process. */
#ifndef RC_WORKER_H
#define RC_WORKER_H

#include <linux/workqueue.h>

int rc_worker_module_init(void);

/* No queue is polled any more. What is waiting is done first. */
void rc_worker_module_exit(void);

/* Has the worker do @work; false if it is waiting to already. */
bool rc_worker_schedule(struct work_struct *work);

#endif /* RC_WORKER_H */
