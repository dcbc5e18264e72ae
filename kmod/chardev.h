/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Character devices: a queue's public face, /dev/ringcap/<cluster>/<index> and
 * /proc/net/ringcap/queue/<cluster>-<index>. A cluster that gets another shape gives its devices new queues; device
 * numbers are used again as late as possible, so that a process with an old number does not get another's queue by it.
 */
#ifndef RC_CHARDEV_H
#define RC_CHARDEV_H

#include <linux/mutex.h>
#include <linux/ringcap.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct device;
struct proc_dir_entry;
struct rc_cluster;
struct rc_queue;

/**
 * struct rc_chardev - a queue's public face
 * @queue: under rc_chardev_lock; NULL while there is none; dead while it was taken back and there is no other
 * @cluster: of the queue
 * @index: number in the cluster
 * @devt: device number
 * @mode: permissions of the device node
 * @path: its name in /dev, for removing the node, which needs it and may find no memory for it; NULL once that was so
 */
struct rc_chardev {
	struct rc_queue *queue;
	struct rc_cluster *cluster;
	u32 index;
	dev_t devt;
	umode_t mode;
	char *path;
	struct device *device;
	struct proc_dir_entry *proc;
};

/* Protects which consumers are attached to which queues. Nests in rc_net.control. */
extern struct mutex rc_chardev_lock;

int rc_chardev_module_init(void);
void rc_chardev_module_exit(void);

struct rc_chardev *rc_chardev_create(struct rc_cluster *cluster, u32 index, umode_t mode);

/*
 * Gives the node another device number: the old one does not lead to the queue any more. In two steps: the
 * first, under rc_chardev_lock, leaves the old number in @old or fails with nothing changed; the second, not under it,
 * is for /dev, and when it fails there is no node there, but the number works; not before rc_chardev_make_path was
 * successful since the last time.
 */
int rc_chardev_make_path(struct rc_chardev *chardev);
int rc_chardev_renumber(struct rc_chardev *chardev, dev_t *old);
int rc_chardev_show_number(struct rc_chardev *chardev, dev_t old);

/* Makes a queue that is fresh, or was taken back and is held by nobody any more, @chardev's. Under rc_chardev_lock. */
void rc_chardev_hand(struct rc_chardev *chardev, struct rc_queue *queue);

/* Sends RINGCAP_EVENT_ATTACHED or _DETACHED. Under rc_chardev_lock, the queue is not dead. */
void rc_chardev_tell(const struct rc_queue *queue, enum ringcap_event event);

/* Of a queue's overflow.work, whose reference to the queue it gives back. */
void rc_chardev_tell_overflow(struct work_struct *work);

/* Not under rc_chardev_lock. The queue has been taken away. */
void rc_chardev_destroy(struct rc_chardev *chardev);

#endif /* RC_CHARDEV_H */
