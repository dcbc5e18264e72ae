// SPDX-License-Identifier: GPL-2.0-only

#include "chardev.h"

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
#include "hold.h"
#include "hold_verdict.h"
#include "mapping.h"
#include "net.h"
#include "poll.h"
#include "proc.h"
#include "queue.h"
#include "send.h"
#include "shunt_request.h"

#define RC_CHARDEV_MINORS (1U << MINORBITS)

DEFINE_MUTEX(rc_chardev_lock);
static DEFINE_IDR(rc_chardevs);	/* by minor number; under rc_chardev_lock */
static struct class *rc_chardev_class;
static struct cdev rc_chardev_cdev;
static dev_t rc_chardev_first;

void rc_chardev_tell(const struct rc_queue *queue, enum ringcap_event event)
{
	const struct rc_cluster *cluster = queue->chardev->cluster;

	lockdep_assert_held(&rc_chardev_lock);
	rc_event_queue(cluster->rc_net->net, cluster->name, queue->index, queue->pid, event);
}

static void rc_chardev_tell_overflow(struct work_struct *work)
{
	struct rc_queue *queue = container_of(work, struct rc_queue, overflow.work);
	struct ringcap_lane_stats sum;

	mutex_lock(&rc_chardev_lock);
	if (!queue->dead) {
		const struct rc_cluster *cluster = queue->chardev->cluster;

		rc_queue_stats(queue, &sum);
		rc_event_overflow(cluster->rc_net->net, cluster->name, queue->index, sum.dropped);
	}
	mutex_unlock(&rc_chardev_lock);
	rc_queue_put(queue);
}

static void rc_chardev_tell_past(struct work_struct *work)
{
	struct rc_hold *hold = container_of(work, struct rc_hold, work);
	struct rc_queue *queue = hold->queue;
	struct rc_hold_episode episode;
	u32 event;

	mutex_lock(&rc_chardev_lock);
	while (!queue->dead && (event = rc_hold_news(hold, &episode))) {
		const struct rc_cluster *cluster = queue->chardev->cluster;

		rc_event_past(cluster->rc_net->net, cluster->name, queue->index, event, &episode);
	}
	mutex_unlock(&rc_chardev_lock);
	rc_queue_put(queue);
}

const struct rc_queue_tell rc_chardev_tell_of = {
	.overflow = rc_chardev_tell_overflow,
	.past = rc_chardev_tell_past,
};

void rc_chardev_hand(struct rc_chardev *chardev, struct rc_queue *queue)
{
	rcu_assign_pointer(queue->grants, chardev->cluster->grants);
	queue->dead = false;
	queue->chardev = chardev;
	chardev->queue = queue;
}

static int rc_chardev_attach(const struct rc_chardev *chardev, struct rc_queue *queue)
{
	return rc_queue_attach(queue, chardev->cluster->name, READ_ONCE(chardev->cluster->snaplen));
}

static int rc_chardev_open(struct inode *inode, struct file *file)
{
	struct rc_queue *queue = NULL;
	struct rc_chardev *chardev;
	int err;

	/* The consumer's page has to be writable. */
	if ((file->f_mode & (FMODE_READ | FMODE_WRITE)) != (FMODE_READ | FMODE_WRITE))
		return -EPERM;

	mutex_lock(&rc_chardev_lock);
	chardev = idr_find(&rc_chardevs, iminor(inode));
	if (chardev)
		queue = chardev->queue;
	err = queue && !queue->dead ? rc_chardev_attach(chardev, queue) : -ENXIO;
	if (!err) {
		rc_queue_get(queue);
		file->private_data = queue;
		rc_chardev_tell(queue, RINGCAP_EVENT_ATTACHED);
	}
	mutex_unlock(&rc_chardev_lock);
	return err ?: nonseekable_open(inode, file);
}

static int rc_chardev_release(struct inode *inode, struct file *file)
{
	struct rc_queue *queue = file->private_data;

	mutex_lock(&rc_chardev_lock);
	rc_queue_detach(queue);
	if (!queue->dead) {
		rc_cluster_note_shunts(queue->chardev->cluster);
		rc_chardev_tell(queue, RINGCAP_EVENT_DETACHED);
	}
	mutex_unlock(&rc_chardev_lock);
	rc_queue_put(queue);
	return 0;
}

static __poll_t rc_chardev_poll(struct file *file, poll_table *table)
{
	struct rc_queue *queue = file->private_data;

	poll_wait(file, &queue->waiter.wait, table);
	return rc_poll_queue(queue);
}

static int rc_chardev_mmap(struct file *file, struct vm_area_struct *vma)
{
	return rc_mapping_map(file->private_data, vma);
}

static long rc_chardev_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	switch (cmd) {
	case RINGCAP_IOC_TX:
		return rc_send_run(file->private_data, arg, file->f_flags & O_NONBLOCK);
	case RINGCAP_IOC_VERDICT:
		return rc_hold_verdict_run(file->private_data, (struct ringcap_verdicts __user *)arg);
	case RINGCAP_IOC_SHUNT:
	case RINGCAP_IOC_UNSHUNT:
	case RINGCAP_IOC_SHUNT_READ:
	case RINGCAP_IOC_SHUNT_ENDED:
		return rc_shunt_request_run(file->private_data, cmd, (struct ringcap_shunts __user *)arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations rc_chardev_fops = {
	.owner = THIS_MODULE,
	.open = rc_chardev_open,
	.release = rc_chardev_release,
	.poll = rc_chardev_poll,
	.mmap = rc_chardev_mmap,
	.unlocked_ioctl = rc_chardev_ioctl,
	.compat_ioctl = rc_chardev_ioctl,
};

static char *rc_chardev_devnode(RC_COMPAT_DEVNODE_CONST struct device *device, umode_t *mode)
{
	struct rc_chardev *chardev = dev_get_drvdata(device);
	char *path;

	if (!chardev)
		return NULL;
	if (mode)
		*mode = chardev->mode;
	/* The caller frees it. */
	path = kasprintf(GFP_KERNEL, "ringcap/%s/%u", chardev->cluster->name, chardev->index);
	return path ?: xchg(&chardev->path, NULL);
}

int rc_chardev_make_path(struct rc_chardev *chardev)
{
	char *path;

	if (READ_ONCE(chardev->path))
		return 0;
	path = kasprintf(GFP_KERNEL_ACCOUNT, "ringcap/%s/%u", chardev->cluster->name, chardev->index);
	if (!path)
		return -ENOMEM;
	kfree(xchg(&chardev->path, path));
	return 0;
}

static int rc_chardev_add_minor(struct rc_chardev *chardev)
{
	int minor;

	mutex_lock(&rc_chardev_lock);
	minor = idr_alloc_cyclic(&rc_chardevs, chardev, 0, RC_CHARDEV_MINORS, GFP_KERNEL);
	mutex_unlock(&rc_chardev_lock);
	if (minor < 0)
		return minor;
	chardev->devt = MKDEV(MAJOR(rc_chardev_first), minor);
	return 0;
}

static void rc_chardev_remove_minor(struct rc_chardev *chardev)
{
	mutex_lock(&rc_chardev_lock);
	idr_remove(&rc_chardevs, MINOR(chardev->devt));
	mutex_unlock(&rc_chardev_lock);
}

int rc_chardev_renumber(struct rc_chardev *chardev, dev_t *old)
{
	int minor;

	lockdep_assert_held(&rc_chardev_lock);
	minor = idr_alloc_cyclic(&rc_chardevs, chardev, 0, RC_CHARDEV_MINORS, GFP_KERNEL);
	if (minor < 0)
		return minor;
	*old = chardev->devt;
	idr_remove(&rc_chardevs, MINOR(*old));
	chardev->devt = MKDEV(MAJOR(rc_chardev_first), minor);
	return 0;
}

static struct device *rc_chardev_create_device(struct rc_chardev *chardev)
{
	return device_create(rc_chardev_class, NULL, chardev->devt, chardev, "ringcap!%s!%u", chardev->cluster->name,
			     chardev->index);
}

int rc_chardev_show_number(struct rc_chardev *chardev, dev_t old)
{
	/* A name can have only one device. */
	device_destroy(rc_chardev_class, old);
	chardev->device = rc_chardev_create_device(chardev);
	return PTR_ERR_OR_ZERO(chardev->device);
}

struct rc_chardev *rc_chardev_create(struct rc_cluster *cluster, u32 index, umode_t mode)
{
	struct rc_chardev *chardev = kzalloc(sizeof(*chardev), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!chardev)
		return ERR_PTR(err);
	chardev->cluster = cluster;
	chardev->index = index;
	chardev->mode = mode;
	err = rc_chardev_make_path(chardev) ?: rc_chardev_add_minor(chardev);
	if (err)
		goto fail;
	chardev->proc = rc_proc_add_queue(chardev);
	if (!chardev->proc) {
		err = -ENOMEM;
		goto fail_minor;
	}
	chardev->device = rc_chardev_create_device(chardev);
	if (!IS_ERR(chardev->device))
		return chardev;
	err = PTR_ERR(chardev->device);
	rc_proc_remove(chardev->proc);
fail_minor:
	rc_chardev_remove_minor(chardev);
fail:
	kfree(chardev->path);
	kfree(chardev);
	return ERR_PTR(err);
}

void rc_chardev_destroy(struct rc_chardev *chardev)
{
	device_destroy(rc_chardev_class, chardev->devt);
	rc_proc_remove(chardev->proc);
	rc_chardev_remove_minor(chardev);
	kfree(chardev->path);
	kfree(chardev);
}

int rc_chardev_module_init(void)
{
	int err;

	rc_chardev_class = rc_compat_class_create("ringcap");
	if (IS_ERR(rc_chardev_class))
		return PTR_ERR(rc_chardev_class);
	rc_chardev_class->devnode = rc_chardev_devnode;

	err = alloc_chrdev_region(&rc_chardev_first, 0, RC_CHARDEV_MINORS, "ringcap");
	if (err)
		goto fail_class;
	cdev_init(&rc_chardev_cdev, &rc_chardev_fops);
	rc_chardev_cdev.owner = THIS_MODULE;
	err = cdev_add(&rc_chardev_cdev, rc_chardev_first, RC_CHARDEV_MINORS);
	if (err)
		goto fail_region;
	return 0;

fail_region:
	unregister_chrdev_region(rc_chardev_first, RC_CHARDEV_MINORS);
fail_class:
	class_destroy(rc_chardev_class);
	return err;
}

void rc_chardev_module_exit(void)
{
	cdev_del(&rc_chardev_cdev);
	unregister_chrdev_region(rc_chardev_first, RC_CHARDEV_MINORS);
	class_destroy(rc_chardev_class);
	idr_destroy(&rc_chardevs);
}
