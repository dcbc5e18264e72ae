/* SPDX-License-Identifier: GPL-2.0-only */
/* What ringcap has in a network namespace, and the lock of its configuration. */
#ifndef RC_NET_H
#define RC_NET_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "limit.h"

struct net;
struct proc_dir_entry;

/**
 * struct rc_proc_devices - what /proc has of a namespace's interfaces, see proc_device.h
 * @folder: dev
 * @lock: nests in rc_net.control; RTNL nests in it. A namespace's own, because the removal of an
 *	entry waits for its readers
 * @entries: under @lock
 * @work: makes the entries follow
 */
struct rc_proc_devices {
	struct proc_dir_entry *folder;
	struct mutex lock;
	struct list_head entries;
	struct work_struct work;
};

/**
 * struct rc_net - a namespace's objects
 * @control: of its configuration: taken before RTNL and before rc_chardev_lock; never by a device's notifier, and never
 *	that of two namespaces
 * @rings: under @control and RTNL to write, either to read
 * @clusters: under @control
 * @rules_live, @rules_built: rule sets that packets see, and those under construction; under @control
 * @nr_built: of @rules_built; read without the lock too
 * @rules_work: see rules_expire.c
 * @rules_round: how often it has looked after the sets; under @control
 * @dying: the namespace ends, and its sets are not looked after any more
 * @nr_owned: of those with an owner
 * @limited: what limit.h counts
 * @changes: of rings and clusters, so that a dump that was interrupted by one is marked; under @control
 * @defrag_full: fragments go on as they are, see defrag.c; written by packets
 * @proc, @proc_rings, @proc_queues: folders in /proc/net/ringcap
 * @proc_devices: one more
 */
struct rc_net {
	struct net *net;
	struct mutex control;
	struct list_head rings;
	struct list_head clusters;
	struct list_head rules_live;
	struct list_head rules_built;
	unsigned int nr_built;
	struct delayed_work rules_work;
	u32 rules_round;
	bool dying;
	unsigned int nr_owned;
	unsigned int changes;
	struct rc_limited limited;
	bool defrag_full;
	struct proc_dir_entry *proc;
	struct proc_dir_entry *proc_rings;
	struct proc_dir_entry *proc_queues;
	struct rc_proc_devices proc_devices;
};

/* Of net_generic, set when the module is loaded. */
extern unsigned int rc_net_id;

struct rc_net *rc_net(const struct net *net);

/* For lockdep: whether the namespace's configuration is the caller's. */
#define rc_net_held(rc_net) lockdep_is_held(&(rc_net)->control)

#endif /* RC_NET_H */
