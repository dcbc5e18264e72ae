// SPDX-License-Identifier: GPL-2.0-only

#include "node.h"

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "cluster.h"
#include "compat/compat.h"
#include "event.h"
#include "mapping.h"
#include "net.h"
#include "poll.h"
#include "proc.h"
#include "queue.h"
#include "send.h"

#define RC_NODE_MINORS (1U << MINORBITS)

DEFINE_MUTEX(rc_node_lock);
static DEFINE_IDR(rc_nodes);	/* by minor number; under rc_node_lock */
static struct class *rc_node_class;
static struct cdev rc_node_cdev;
static dev_t rc_node_first;

void rc_node_tell(const struct rc_queue *queue, enum ringcap_event event)
{
	const struct rc_cluster *cluster = queue->node->cluster;

	lockdep_assert_held(&rc_node_lock);
	rc_event_queue(cluster->rc_net->net, cluster->name, queue->index, queue->pid, event);
}

void rc_node_tell_overflow(struct work_struct *work)
{
	struct rc_queue *queue = container_of(work, struct rc_queue, overflow.work);
	struct ringcap_lane_stats sum;

	mutex_lock(&rc_node_lock);
	if (!queue->dead) {
		const struct rc_cluster *cluster = queue->node->cluster;

		rc_queue_stats(queue, &sum);
		rc_event_overflow(cluster->rc_net->net, cluster->name, queue->index, sum.dropped);
	}
	mutex_unlock(&rc_node_lock);
	rc_queue_put(queue);
}

void rc_node_hand(struct rc_node *node, struct rc_queue *queue)
{
	rcu_assign_pointer(queue->grants, node->cluster->grants);
	queue->dead = false;
	queue->node = node;
	node->queue = queue;
}

static int rc_node_attach(const struct rc_node *node, struct rc_queue *queue)
{
	return rc_queue_attach(queue, node->cluster->name, READ_ONCE(node->cluster->snaplen));
}

static int rc_node_open(struct inode *inode, struct file *file)
{
	struct rc_queue *queue = NULL;
	struct rc_node *node;
	int err;

	/* The consumer's page has to be writable. */
	if ((file->f_mode & (FMODE_READ | FMODE_WRITE)) != (FMODE_READ | FMODE_WRITE))
		return -EPERM;

	mutex_lock(&rc_node_lock);
	node = idr_find(&rc_nodes, iminor(inode));
	if (node)
		queue = node->queue;
	err = queue && !queue->dead ? rc_node_attach(node, queue) : -ENXIO;
	if (!err) {
		rc_queue_get(queue);
		file->private_data = queue;
		rc_node_tell(queue, RINGCAP_EVENT_ATTACHED);
	}
	mutex_unlock(&rc_node_lock);
	return err ?: nonseekable_open(inode, file);
}

static int rc_node_release(struct inode *inode, struct file *file)
{
	struct rc_queue *queue = file->private_data;

	mutex_lock(&rc_node_lock);
	rc_queue_detach(queue);
	if (!queue->dead)
		rc_node_tell(queue, RINGCAP_EVENT_DETACHED);
	mutex_unlock(&rc_node_lock);
	rc_queue_put(queue);
	return 0;
}

static __poll_t rc_node_poll(struct file *file, poll_table *table)
{
	struct rc_queue *queue = file->private_data;

	poll_wait(file, &queue->waiter.wait, table);
	return rc_poll_queue(queue);
}

static int rc_node_mmap(struct file *file, struct vm_area_struct *vma)
{
	return rc_mapping_map(file->private_data, vma);
}

static long rc_node_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	if (cmd != RINGCAP_IOC_TX)
		return -ENOTTY;
	return rc_send_run(file->private_data, arg, file->f_flags & O_NONBLOCK);
}

static const struct file_operations rc_node_fops = {
	.owner = THIS_MODULE,
	.open = rc_node_open,
	.release = rc_node_release,
	.poll = rc_node_poll,
	.mmap = rc_node_mmap,
	.unlocked_ioctl = rc_node_ioctl,
	.compat_ioctl = rc_node_ioctl,
};

static char *rc_node_devnode(RC_COMPAT_DEVNODE_CONST struct device *device, umode_t *mode)
{
	struct rc_node *node = dev_get_drvdata(device);
	char *path;

	if (!node)
		return NULL;
	if (mode)
		*mode = node->mode;
	/* The caller frees it. */
	path = kasprintf(GFP_KERNEL, "ringcap/%s/%u", node->cluster->name, node->index);
	return path ?: xchg(&node->path, NULL);
}

int rc_node_make_path(struct rc_node *node)
{
	char *path;

	if (READ_ONCE(node->path))
		return 0;
	path = kasprintf(GFP_KERNEL_ACCOUNT, "ringcap/%s/%u", node->cluster->name, node->index);
	if (!path)
		return -ENOMEM;
	kfree(xchg(&node->path, path));
	return 0;
}

static int rc_node_add_minor(struct rc_node *node)
{
	int minor;

	mutex_lock(&rc_node_lock);
	minor = idr_alloc_cyclic(&rc_nodes, node, 0, RC_NODE_MINORS, GFP_KERNEL);
	mutex_unlock(&rc_node_lock);
	if (minor < 0)
		return minor;
	node->devt = MKDEV(MAJOR(rc_node_first), minor);
	return 0;
}

static void rc_node_remove_minor(struct rc_node *node)
{
	mutex_lock(&rc_node_lock);
	idr_remove(&rc_nodes, MINOR(node->devt));
	mutex_unlock(&rc_node_lock);
}

int rc_node_renumber(struct rc_node *node, dev_t *old)
{
	int minor;

	lockdep_assert_held(&rc_node_lock);
	minor = idr_alloc_cyclic(&rc_nodes, node, 0, RC_NODE_MINORS, GFP_KERNEL);
	if (minor < 0)
		return minor;
	*old = node->devt;
	idr_remove(&rc_nodes, MINOR(*old));
	node->devt = MKDEV(MAJOR(rc_node_first), minor);
	return 0;
}

static struct device *rc_node_create_device(struct rc_node *node)
{
	return device_create(rc_node_class, NULL, node->devt, node, "ringcap!%s!%u", node->cluster->name, node->index);
}

int rc_node_show_number(struct rc_node *node, dev_t old)
{
	/* There is one device of a name. */
	device_destroy(rc_node_class, old);
	node->device = rc_node_create_device(node);
	return PTR_ERR_OR_ZERO(node->device);
}

struct rc_node *rc_node_create(struct rc_cluster *cluster, u32 index, umode_t mode)
{
	struct rc_node *node = kzalloc(sizeof(*node), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!node)
		return ERR_PTR(err);
	node->cluster = cluster;
	node->index = index;
	node->mode = mode;
	err = rc_node_make_path(node) ?: rc_node_add_minor(node);
	if (err)
		goto fail;
	node->proc = rc_proc_add_queue(node);
	if (!node->proc) {
		err = -ENOMEM;
		goto fail_minor;
	}
	node->device = rc_node_create_device(node);
	if (!IS_ERR(node->device))
		return node;
	err = PTR_ERR(node->device);
	rc_proc_remove(node->proc);
fail_minor:
	rc_node_remove_minor(node);
fail:
	kfree(node->path);
	kfree(node);
	return ERR_PTR(err);
}

void rc_node_destroy(struct rc_node *node)
{
	device_destroy(rc_node_class, node->devt);
	rc_proc_remove(node->proc);
	rc_node_remove_minor(node);
	kfree(node->path);
	kfree(node);
}

int rc_node_module_init(void)
{
	int err;

	rc_node_class = rc_compat_class_create("ringcap");
	if (IS_ERR(rc_node_class))
		return PTR_ERR(rc_node_class);
	rc_node_class->devnode = rc_node_devnode;

	err = alloc_chrdev_region(&rc_node_first, 0, RC_NODE_MINORS, "ringcap");
	if (err)
		goto fail_class;
	cdev_init(&rc_node_cdev, &rc_node_fops);
	rc_node_cdev.owner = THIS_MODULE;
	err = cdev_add(&rc_node_cdev, rc_node_first, RC_NODE_MINORS);
	if (err)
		goto fail_region;
	return 0;

fail_region:
	unregister_chrdev_region(rc_node_first, RC_NODE_MINORS);
fail_class:
	class_destroy(rc_node_class);
	return err;
}

void rc_node_module_exit(void)
{
	cdev_del(&rc_node_cdev);
	unregister_chrdev_region(rc_node_first, RC_NODE_MINORS);
	class_destroy(rc_node_class);
	idr_destroy(&rc_nodes);
}
