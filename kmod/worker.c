// SPDX-License-Identifier: GPL-2.0-only

#include "worker.h"

#include <linux/rcupdate.h>

static struct workqueue_struct *rc_worker_queue;

int rc_worker_module_init(void)
{
	rc_worker_queue = alloc_workqueue("ringcap", WQ_UNBOUND, 0);
	return rc_worker_queue ? 0 : -ENOMEM;
}

void rc_worker_module_exit(void)
{
	/* No queue is polled any more, so rc_poll_look starts again at most once. */
	rcu_barrier();
	rcu_barrier();
	destroy_workqueue(rc_worker_queue);
}

bool rc_worker_schedule(struct work_struct *work)
{
	return queue_work(rc_worker_queue, work);
}
