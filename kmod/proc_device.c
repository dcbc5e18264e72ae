// SPDX-License-Identifier: GPL-2.0-only

#include "proc_device.h"

#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/proc_fs.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "net.h"
#include "ring.h"
#include "rx_queues.h"
#include "tap.h"
#include "worker.h"

/**
 * struct rc_proc_device - an interface that has taps, under the name that it had
 * @list: in rc_proc_devices.entries
 * @rc_net: its namespace
 * @ifindex: of the interface
 * @name: of the interface
 * @entry: NULL when there was no memory for it
 * @stale: the interface has no taps any more, or has another name
 */
struct rc_proc_device {
	struct list_head list;
	struct rc_net *rc_net;
	struct proc_dir_entry *entry;
	u32 ifindex;
	bool stale;
	char name[IFNAMSIZ];
};

static void rc_proc_device_show_tap(struct seq_file *m, const struct rc_tap *tap)
{
	const struct rc_rx_queues *rx_queues = rtnl_dereference(tap->rx_queues);

	seq_printf(m, "Ring: %s %s", tap->ring->name, rc_tap_direction(tap->direction));
	if (rx_queues)
		seq_printf(m, " rx-queues %*pbl", rx_queues->nr, rx_queues->mask);
	seq_printf(m, "%s mode %u\n", tap->promiscuous ? " promiscuous" : "", tap->mode);
}

static int rc_proc_device_show(struct seq_file *m, void *unused)
{
	const struct rc_proc_device *this = m->private;
	const struct net_device *dev;
	const struct rc_ring *ring;
	const struct rc_tap *tap;

	rtnl_lock();
	dev = __dev_get_by_index(this->rc_net->net, this->ifindex);
	if (dev) {
		seq_printf(m, "Name: %s\nIndex: %d\nAddress: %pM\nMTU: %u\nRX queues: %u\nTX queues: %u\n", dev->name,
			   dev->ifindex, dev->dev_addr, dev->mtu, dev->real_num_rx_queues, dev->real_num_tx_queues);
		seq_printf(m, "Promiscuity: %u\n", dev->promiscuity);
		list_for_each_entry(ring, &this->rc_net->rings, list)
			list_for_each_entry(tap, &ring->taps, list)
				if (tap->packet_type.dev == dev)
					rc_proc_device_show_tap(m, tap);
	}
	rtnl_unlock();
	return 0;
}

static struct rc_proc_device *rc_proc_device_find(const struct rc_net *rc_net, const struct net_device *dev)
{
	struct rc_proc_device *this;

	list_for_each_entry(this, &rc_net->proc_devices.entries, list)
		if (this->ifindex == dev->ifindex && !strcmp(this->name, dev->name))
			return this;
	return NULL;
}

/* An entry without its file yet; no entry if there is no memory. */
static void rc_proc_device_note(struct rc_net *rc_net, const struct net_device *dev)
{
	struct rc_proc_device *this = rc_proc_device_find(rc_net, dev);

	if (!this) {
		this = kzalloc(sizeof(*this), GFP_KERNEL);
		if (!this)
			return;
		this->rc_net = rc_net;
		this->ifindex = dev->ifindex;
		strscpy(this->name, dev->name, sizeof(this->name));
		list_add_tail(&this->list, &rc_net->proc_devices.entries);
	}
	this->stale = false;
}

static void rc_proc_devices_note(struct rc_net *rc_net)
{
	struct rc_proc_device *this;
	const struct rc_ring *ring;
	const struct rc_tap *tap;

	list_for_each_entry(this, &rc_net->proc_devices.entries, list)
		this->stale = true;
	rtnl_lock();
	list_for_each_entry(ring, &rc_net->rings, list)
		list_for_each_entry(tap, &ring->taps, list)
			if (!rc_tap_is_away(tap))
				rc_proc_device_note(rc_net, tap->packet_type.dev);
	rtnl_unlock();
}

void rc_proc_devices_follow(struct rc_net *rc_net)
{
	struct rc_proc_devices *devices = &rc_net->proc_devices;
	struct rc_proc_device *this, *next;

	mutex_lock(&devices->lock);
	rc_proc_devices_note(rc_net);
	/* Remove stale entries first: another interface may have the name now. */
	list_for_each_entry_safe(this, next, &devices->entries, list) {
		if (!this->stale)
			continue;
		list_del(&this->list);
		proc_remove(this->entry);
		kfree(this);
	}
	list_for_each_entry(this, &devices->entries, list)
		if (!this->entry)
			this->entry = proc_create_single_data(this->name, 0444, devices->folder, rc_proc_device_show,
							      this);
	mutex_unlock(&devices->lock);
}

static void rc_proc_devices_work(struct work_struct *work)
{
	rc_proc_devices_follow(container_of(work, struct rc_net, proc_devices.work));
}

void rc_proc_devices_follow_later(struct rc_net *rc_net)
{
	rc_worker_schedule(&rc_net->proc_devices.work);
}

bool rc_proc_devices_add(struct rc_net *rc_net)
{
	struct rc_proc_devices *devices = &rc_net->proc_devices;

	mutex_init(&devices->lock);
	INIT_LIST_HEAD(&devices->entries);
	INIT_WORK(&devices->work, rc_proc_devices_work);
	devices->folder = proc_mkdir("dev", rc_net->proc);
	return devices->folder;
}

void rc_proc_devices_remove(struct rc_net *rc_net)
{
	cancel_work_sync(&rc_net->proc_devices.work);
	rc_proc_devices_follow(rc_net);
}
