/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nodes: a queue's public face, /dev/ringcap/<cluster>/<index> and /proc/net/ringcap/queue/<cluster>-<index>. A cluster
 * that gets another shape gives its nodes new queues; device numbers are used again as late as possible, so that who
 * was once given one does not find another's queue behind it.
 */
#ifndef RC_NODE_H
#define RC_NODE_H

#include <linux/mutex.h>
#include <linux/ringcap.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct device;
struct proc_dir_entry;
struct rc_cluster;
struct rc_queue;

/**
 * struct rc_node - a queue's public face
 * @queue: under rc_node_lock; NULL while there is none; dead while it was taken back and there is no other
 * @cluster: whose node it is
 * @index: number in the cluster
 * @devt: device number
 * @mode: permissions of the device node
 * @path: its name in /dev, for when there is no memory to make another, as who removes it must; NULL once that was so
 */
struct rc_node {
	struct rc_queue *queue;
	struct rc_cluster *cluster;
	u32 index;
	dev_t devt;
	umode_t mode;
	char *path;
	struct device *device;
	struct proc_dir_entry *proc;
};

/* Who is attached to what. Nests in rc_net.control. */
extern struct mutex rc_node_lock;

int rc_node_module_init(void);
void rc_node_module_exit(void);

struct rc_node *rc_node_create(struct rc_cluster *cluster, u32 index, umode_t mode);

/*
 * Gives the node another device number: who was given the old one finds nothing behind it any more. In two steps: the first,
 * under rc_node_lock, leaves the old number in @old or fails with nothing changed; the second, not under it, is for /dev, and when
 * it fails there is no node there, but the number works; not before rc_node_make_path was successful since the last time.
 */
int rc_node_make_path(struct rc_node *node);
int rc_node_renumber(struct rc_node *node, dev_t *old);
int rc_node_show_number(struct rc_node *node, dev_t old);

/* Makes a queue that is fresh, or was taken back and is held by nobody any more, @node's. Under rc_node_lock. */
void rc_node_hand(struct rc_node *node, struct rc_queue *queue);

/* Sends RINGCAP_EVENT_ATTACHED or _DETACHED. Under rc_node_lock, the queue is not dead. */
void rc_node_tell(const struct rc_queue *queue, enum ringcap_event event);

/* Of a queue's overflow.work, whose reference to the queue it gives back. */
void rc_node_tell_overflow(struct work_struct *work);

/* Not under rc_node_lock. The queue has been taken away. */
void rc_node_destroy(struct rc_node *node);

#endif /* RC_NODE_H */
