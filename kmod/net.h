/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's objects in one network namespace, and the lock of their configuration. */
#ifndef RC_NET_H
#define RC_NET_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "limit.h"

struct net;
struct proc_dir_entry;

/**
 * struct rc_proc_devices - the entries in /proc for a namespace's interfaces, see proc_device.h
 * @folder: dev
 * @lock: nests in rc_net.control; RTNL nests in it. It is a separate lock because the removal of an entry waits for
 *	its readers
 * @entries: under @lock
 * @work: updates the entries
 */
struct rc_proc_devices {
	struct proc_dir_entry *folder;
	struct mutex lock;
	struct list_head entries;
	struct work_struct work;
};

/**
 * struct rc_net - a namespace's objects
 * @control: lock of the configuration. Taken before RTNL and before rc_chardev_lock. A device's notifier never takes
 *	it. Nobody holds it for two namespaces at once
 * @rings: written under @control and RTNL, read under either
 * @clusters: under @control
 * @rules_live, @rules_built: rule sets that packets see, and those under construction; under @control
 * @nr_built: length of @rules_built; read without the lock too
 * @rules_work: see rules_expire.c
 * @rules_round: number of times that it has checked the sets; under @control
 * @dying: the namespace is being removed, and its sets are no longer checked
 * @nr_owned: number of objects that have an owner
 * @limited: what limit.h counts
 * @changes: counts changes of rings and clusters, so that a dump is marked if a change interrupted it; under @control
 * @defrag_full: fragments pass through as they are, see defrag.c; written by packets
 * @proc, @proc_rings, @proc_queues: folders in /proc/net/ringcap
 * @proc_devices: the folder dev there
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

/* Index for net_generic, set when the module is loaded. */
extern unsigned int rc_net_id;

struct rc_net *rc_net(const struct net *net);

/* For lockdep: whether the caller holds the lock of the namespace's configuration. */
#define rc_net_held(rc_net) lockdep_is_held(&(rc_net)->control)

#endif /* RC_NET_H */
