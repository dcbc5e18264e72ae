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

void rc_worker_schedule_after(struct delayed_work *work, unsigned long delay)
{
	mod_delayed_work(rc_worker_queue, work, delay);
}
