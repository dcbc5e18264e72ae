// SPDX-License-Identifier: GPL-2.0-only

#include "socket.h"

#include <linux/netlink.h>
#include <linux/notifier.h>

#include "cluster.h"
#include "cluster_set.h"
#include "net.h"
#include "ring.h"
#include "ring_set.h"
#include "rules.h"

/* Rings first: a cluster that a ring feeds cannot be deleted. */
static void rc_socket_gone(struct rc_net *rc_net, u32 owner)
{
	struct rc_cluster *cluster, *next_cluster;
	struct rc_ring *ring, *next_ring;

	mutex_lock(&rc_net->control);
	list_for_each_entry_safe(ring, next_ring, &rc_net->rings, list)
		if (ring->owner == owner)
			rc_ring_destroy(ring);
	list_for_each_entry_safe(cluster, next_cluster, &rc_net->clusters, list)
		if (cluster->owner == owner)
			rc_cluster_destroy(cluster);
	mutex_unlock(&rc_net->control);
}

/*
 * The port is free again by now. In theory another socket has already bound it and made an object: libringcap chooses
 * ports at random.
 */
static int rc_socket_event(struct notifier_block *block, unsigned long event, void *data)
{
	const struct netlink_notify *notify = data;
	struct rc_net *this;

	if (event != NETLINK_URELEASE || notify->protocol != NETLINK_GENERIC)
		return NOTIFY_DONE;
	this = rc_net(notify->net);
	rc_rules_socket_gone(this, notify->portid);
	/* A closed socket makes no more objects, so this check needs no lock. Most sockets make none. */
	if (READ_ONCE(this->nr_owned))
		rc_socket_gone(this, notify->portid);
	return NOTIFY_DONE;
}

static struct notifier_block rc_socket_notifier = {
	.notifier_call = rc_socket_event,
};

int rc_socket_module_init(void)
{
	return netlink_register_notifier(&rc_socket_notifier);
}

void rc_socket_module_exit(void)
{
	netlink_unregister_notifier(&rc_socket_notifier);
}
