// SPDX-License-Identifier: GPL-2.0-only

#include "overflow.h"

#include <linux/jiffies.h>

#include "queue.h"
#include "worker.h"

void rc_overflow_init(struct rc_overflow *overflow, work_func_t tell)
{
	overflow->next = jiffies;
	INIT_WORK(&overflow->work, tell);
}

void rc_overflow_note(const struct rc_lane *lane)
{
	struct rc_queue *queue = rc_queue_of(lane);
	unsigned long next = READ_ONCE(queue->overflow.next);

	if (time_before(jiffies, next) || cmpxchg(&queue->overflow.next, next, jiffies + HZ) != next)
		return;
	rc_queue_get(queue);
	if (!rc_worker_schedule(&queue->overflow.work))
		rc_queue_put(queue);
}
