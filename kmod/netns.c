// SPDX-License-Identifier: GPL-2.0-only

#include "netns.h"

#include <net/net_namespace.h>

#include "cluster.h"
#include "cluster_set.h"
#include "net.h"
#include "proc.h"
#include "ring.h"
#include "ring_set.h"
#include "rules_expire.h"

static int __net_init rc_netns_init(struct net *net)
{
	struct rc_net *this = rc_net(net);

	this->net = net;
	this->limited.initial = net_eq(net, &init_net);
	this->changes = 1;	/* 0 means that nothing is checked */
	INIT_LIST_HEAD(&this->rings);
	INIT_LIST_HEAD(&this->clusters);
	mutex_init(&this->control);
	rc_rules_net_init(this);
	return rc_proc_add_net(this);
}

static void __net_exit rc_netns_exit(struct net *net)
{
	struct rc_net *this = rc_net(net);
	struct rc_cluster *cluster, *next_cluster;
	struct rc_ring *ring, *next_ring;

	WRITE_ONCE(this->dying, true);
	mutex_lock(&this->control);
	list_for_each_entry_safe(ring, next_ring, &this->rings, list)
		rc_ring_destroy(ring);
	list_for_each_entry_safe(cluster, next_cluster, &this->clusters, list)
		rc_cluster_destroy(cluster);
	mutex_unlock(&this->control);
	rc_rules_net_exit(this);
	rc_proc_remove_net(this);
}

static struct pernet_operations rc_netns_ops = {
	.init = rc_netns_init,
	.exit = rc_netns_exit,
	.id = &rc_net_id,
	.size = sizeof(struct rc_net),
};

int rc_netns_module_init(void)
{
	return register_pernet_subsys(&rc_netns_ops);
}

void rc_netns_module_exit(void)
{
	unregister_pernet_subsys(&rc_netns_ops);
}
