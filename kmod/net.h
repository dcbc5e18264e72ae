/* SPDX-License-Identifier: GPL-2.0-only */
/* What ringcap has in a network namespace. */
#ifndef RC_NET_H
#define RC_NET_H

#include <linux/list.h>
#include <linux/mutex.h>

#include "limit.h"
#include "proc_device.h"

struct net;
struct proc_dir_entry;

/**
 * struct rc_net - a namespace's objects
 * @rings: under rc_control_lock and RTNL to write, either to read
 * @clusters: under rc_control_lock
 * @nr_owned: of those with an owner
 * @limited: what limit.h counts; not of the initial namespace
 * @changes: of these lists, so that a dump that was interrupted by one is marked; under rc_control_lock
 * @defrag_full: fragments go on as they are, see defrag.c; written by packets
 * @proc, @proc_rings, @proc_queues: folders in /proc/net/ringcap
 * @proc_devices: one more
 */
struct rc_net {
	struct net *net;
	struct list_head rings;
	struct list_head clusters;
	unsigned int nr_owned;
	unsigned int changes;
	atomic_t limited[RC_LIMITS];
	bool defrag_full;
	struct proc_dir_entry *proc;
	struct proc_dir_entry *proc_rings;
	struct proc_dir_entry *proc_queues;
	struct rc_proc_devices proc_devices;
};

/* Configuration, of all namespaces. Taken before RTNL and before rc_node_lock; never by a notifier. */
extern struct mutex rc_control_lock;

int rc_net_module_init(void);
void rc_net_module_exit(void);

struct rc_net *rc_net(const struct net *net);

#endif /* RC_NET_H */
