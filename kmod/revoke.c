// SPDX-License-Identifier: GPL-2.0-only

#include "revoke.h"

#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "chardev.h"
#include "cluster.h"
#include "hold.h"
#include "net.h"
#include "queue.h"

int rc_cluster_reset_queue(struct rc_cluster *cluster, u32 index, struct netlink_ext_ack *extack)
{
	struct rc_queue *queue = rc_cluster_queue(cluster, index);
	bool held;

	if (queue->dead) {
		NL_SET_ERR_MSG(extack, "this queue was taken back, and there was no memory for another in its place: RINGCAP_CMD_QUEUE_REVOKE makes one");
		return -EBUSY;
	}
	mutex_lock(&rc_chardev_lock);
	held = queue->holder != RC_QUEUE_FREE;
	if (!held)
		queue->holder = RC_QUEUE_RESET;
	mutex_unlock(&rc_chardev_lock);
	if (held) {
		NL_SET_ERR_MSG(extack, "a consumer is attached to this queue: it can be emptied once that has closed it");
		return -EBUSY;
	}

	rc_queue_reset(queue);

	mutex_lock(&rc_chardev_lock);
	queue->holder = RC_QUEUE_FREE;
	mutex_unlock(&rc_chardev_lock);
	return 0;
}

/*
 * A consumer's mapped memory cannot be taken from it while it runs. So the consumer keeps that memory, and another
 * queue replaces its queue. The old queue is dead from then on, as when its cluster is deleted (rc_queue_kill), and its
 * file reports that. It lives as long as the file or a mapping, which holds the file. It also lives as long as a
 * publisher has one of its lanes.
 *
 * First, delivery ends, which cannot fail. After a grace period no CPU writes packets to the old queue. Then it is
 * zeroed, so that its holder does not find packets in it that it had not read.
 *
 * Then a new queue is made, if there is memory for it: a process that holds memory must not thereby hold the queue.
 * Without memory, the dead queue stays where producers find it, and they count in it what they drop. This lasts until
 * the next attempt. If the old holder is gone by then, the dead queue serves the next consumer instead. The next
 * consumer finds its queue by a device number that no process was given before.
 */
static int rc_cluster_prepare_successor(const struct rc_cluster *cluster, u32 index, struct rc_cluster_config **config)
{
	const struct rc_cluster_config *old = rc_cluster_config(cluster);
	const struct rc_queue *dead = old->queues[index];
	struct rc_queue *queue;

	*config = rc_cluster_config_alloc(old->nr_queues);
	queue = rc_queue_create(&cluster->shape, index, &rc_chardev_tell_of);
	if (!*config || !queue) {
		kfree(*config);
		if (queue)
			rc_queue_put(queue);
		return -ENOMEM;
	}
	**config = *old;
	memcpy((*config)->queues, old->queues, flex_array_size(old, queues, old->nr_queues));
	(*config)->queues[index] = queue;
	queue->waiter.watermark = READ_ONCE(dead->waiter.watermark);
	queue->waiter.timeout_us = READ_ONCE(dead->waiter.timeout_us);
	if (queue->hold)
		rc_hold_configure(queue->hold, cluster->open, cluster->hung_ms);
	queue->shunt_quota = cluster->shunt_quota;
	queue->holder = RC_QUEUE_RESET;
	return 0;
}

static int rc_cluster_show_number(struct rc_chardev *chardev, dev_t old, struct netlink_ext_ack *extack)
{
	int err = rc_chardev_show_number(chardev, old);

	if (err)
		NL_SET_ERR_MSG(extack, "the queue is free, but its node in /dev/ringcap could not be made again: repeat the command");
	return err;
}

/* Replaces a queue that was taken back but that its consumer still holds. */
static int rc_cluster_replace_queue(struct rc_cluster *cluster, u32 index, struct netlink_ext_ack *extack)
{
	struct rc_queue *queue, *old = rc_cluster_queue(cluster, index);
	struct rc_chardev *chardev = cluster->chardevs[index];
	struct rc_cluster_config *config, *old_config;
	dev_t devt;
	int err;

	err = rc_chardev_make_path(chardev) ?: rc_cluster_prepare_successor(cluster, index, &config);
	if (err) {
		NL_SET_ERR_MSG(extack,
			       "the queue was taken back, but there is no memory for another in its place: its packets are dropped until this is repeated, without RINGCAP_A_ATTACHED_PID and RINGCAP_A_ATTACHMENT");
		return err;
	}
	queue = config->queues[index];

	mutex_lock(&rc_chardev_lock);
	err = rc_chardev_renumber(chardev, &devt);
	if (!err) {
		rc_queue_inherit(queue, old);
		rc_chardev_hand(chardev, queue);
		old_config = rc_cluster_replace_config(cluster, config);
	}
	mutex_unlock(&rc_chardev_lock);
	if (err) {
		rc_queue_put(queue);
		kfree(config);
		return err;
	}

	/* After this, no producer counts in the old queue. */
	synchronize_net();
	mutex_lock(&rc_chardev_lock);
	rc_queue_inherit(queue, old);
	queue->holder = RC_QUEUE_FREE;
	mutex_unlock(&rc_chardev_lock);
	rc_queue_put(old);
	rc_cluster_config_free(old_config, config);
	return rc_cluster_show_number(chardev, devt, extack);
}

/*
 * For a queue that no process has mapped: its memory serves the next consumer. The caller has made it RC_QUEUE_RESET.
 */
static void rc_cluster_renew_queue(struct rc_queue *queue, struct rc_chardev *chardev)
{
	rc_queue_reset(queue);
	mutex_lock(&rc_chardev_lock);
	rc_chardev_hand(chardev, queue);
	queue->holder = RC_QUEUE_FREE;
	mutex_unlock(&rc_chardev_lock);
}

static int rc_cluster_check_holder(const struct rc_queue *queue, const struct rc_holder *holder,
				   struct netlink_ext_ack *extack)
{
	bool attached = rc_queue_has_consumer(queue);

	lockdep_assert_held(&rc_chardev_lock);
	if (holder->pid && (!attached || pid_vnr(queue->pid) != holder->pid)) {
		NL_SET_ERR_MSG(extack, "RINGCAP_A_ATTACHED_PID: this process is not the queue's consumer (any more)");
		return -ESRCH;
	}
	if (holder->attachment && (!attached || queue->attachment != holder->attachment)) {
		NL_SET_ERR_MSG(extack, "RINGCAP_A_ATTACHMENT: this consumer has gone; another may be attached");
		return -ESRCH;
	}
	return 0;
}

int rc_cluster_revoke_queue(struct rc_cluster *cluster, u32 index, const struct rc_holder *holder,
			    struct netlink_ext_ack *extack)
{
	struct rc_queue *queue = rc_cluster_queue(cluster, index);
	struct rc_chardev *chardev = cluster->chardevs[index];
	bool held;
	dev_t devt;
	int err;

	mutex_lock(&rc_chardev_lock);
	err = rc_cluster_check_holder(queue, holder, extack);
	held = queue->holder == RC_QUEUE_CONSUMER;
	if (!err && rc_queue_has_consumer(queue)) {
		rc_chardev_tell(queue, RINGCAP_EVENT_DETACHED);
		rc_queue_take_back(queue);
		rc_cluster_note_shunts(cluster);
	} else if (!err && !held) {
		err = rc_chardev_make_path(chardev) ?: rc_chardev_renumber(chardev, &devt);
		if (!err)
			queue->holder = RC_QUEUE_RESET;
	}
	mutex_unlock(&rc_chardev_lock);
	if (err)
		return err;
	if (held) {
		rc_queue_reset(queue);
		return rc_cluster_replace_queue(cluster, index, extack);
	}
	rc_cluster_renew_queue(queue, chardev);
	return rc_cluster_show_number(chardev, devt, extack);
}
