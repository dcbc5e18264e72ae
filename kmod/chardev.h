/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Character devices: the interface of a queue to user space, /dev/ringcap/<cluster>/<index> and
 * /proc/net/ringcap/queue/<cluster>-<index>. A cluster that gets another shape gives its devices new queues. Device
 * numbers are reused as late as possible: a process with an old number must not get another device's queue by it.
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
 * struct rc_chardev - the character device of a queue
 * @queue: under rc_chardev_lock; NULL = none; dead after it was taken back, until there is another
 * @cluster: of the queue
 * @index: number in the cluster
 * @devt: device number
 * @mode: permissions of the device node
 * @path: spare copy of its name in /dev: removing the node needs the name, and may find no memory for it; NULL after
 *	this copy was used
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

/* Protects the attachment of consumers to queues. Nests in rc_net.control. */
extern struct mutex rc_chardev_lock;

int rc_chardev_module_init(void);
void rc_chardev_module_exit(void);

struct rc_chardev *rc_chardev_create(struct rc_cluster *cluster, u32 index, umode_t mode);

/*
 * Give the node another device number. The old number no longer leads to the queue. Each time, rc_chardev_make_path
 * must be successful first. Then there are two steps:
 *
 * rc_chardev_renumber, under rc_chardev_lock, stores the old number in @old. If it fails, nothing has changed.
 *
 * rc_chardev_show_number, not under rc_chardev_lock, updates /dev. If it fails, there is no node, but the number works.
 */
int rc_chardev_make_path(struct rc_chardev *chardev);
int rc_chardev_renumber(struct rc_chardev *chardev, dev_t *old);
int rc_chardev_show_number(struct rc_chardev *chardev, dev_t old);

/* Gives @queue to @chardev. It is new, or was taken back and has no holder any more. Under rc_chardev_lock. */
void rc_chardev_hand(struct rc_chardev *chardev, struct rc_queue *queue);

/* Sends RINGCAP_EVENT_ATTACHED or _DETACHED. The queue is not dead. Under rc_chardev_lock. */
void rc_chardev_tell(const struct rc_queue *queue, enum ringcap_event event);

/* Tells listeners of a queue. The functions put the work's reference to it. */
extern const struct rc_queue_tell rc_chardev_tell_of;

/* The queue has been taken away. Not under rc_chardev_lock. */
void rc_chardev_destroy(struct rc_chardev *chardev);

#endif /* RC_CHARDEV_H */
