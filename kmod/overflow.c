// SPDX-License-Identifier: GPL-2.0-only

#include "overflow.h"

#include <linux/jiffies.h>

#include "netlink.h"
#include "node.h"
#include "queue.h"

static void rc_overflow_send(struct work_struct *work)
{
	struct rc_queue *queue = container_of(work, struct rc_queue, overflow.work);

	mutex_lock(&rc_node_lock);
	if (!queue->dead)
		rc_netlink_notify_overflow(queue);
	mutex_unlock(&rc_node_lock);
	rc_queue_put(queue);
}

void rc_overflow_init(struct rc_overflow *overflow)
{
	overflow->next = jiffies;
	INIT_WORK(&overflow->work, rc_overflow_send);
}

void rc_overflow_note(struct rc_queue *queue)
{
	unsigned long next = READ_ONCE(queue->overflow.next);

	if (time_before(jiffies, next) || cmpxchg(&queue->overflow.next, next, jiffies + HZ) != next)
		return;
	rc_queue_get(queue);
	if (!rc_queue_schedule(&queue->overflow.work))
		rc_queue_put(queue);
}
