// SPDX-License-Identifier: GPL-2.0-only

#include "worker.h"

static struct workqueue_struct *rc_worker_queue;

int rc_worker_module_init(void)
{
	rc_worker_queue = alloc_workqueue("ringcap", WQ_UNBOUND, 0);
	return rc_worker_queue ? 0 : -ENOMEM;
}

void rc_worker_module_exit(void)
{
	destroy_workqueue(rc_worker_queue);
}

bool rc_worker_schedule(struct work_struct *work)
{
	return queue_work(rc_worker_queue, work);
}
