// SPDX-License-Identifier: GPL-2.0-only

#include "cluster.h"

#include <linux/overflow.h>
#include <linux/slab.h>

#include "fragment.h"
#include "net.h"

struct rc_cluster *rc_cluster_find(const struct rc_net *rc_net, const char *name)
{
	struct rc_cluster *cluster;

	list_for_each_entry(cluster, &rc_net->clusters, list)
		if (!strcmp(cluster->name, name))
			return cluster;
	return NULL;
}

struct rc_queue *rc_cluster_queue(const struct rc_cluster *cluster, u32 index)
{
	return rc_cluster_config(cluster)->queues[index];
}

u64 rc_cluster_memory(const struct rc_cluster *cluster)
{
	u64 bytes = rc_fragments_memory(rc_cluster_config(cluster)->fragments);
	u32 i;

	for (i = 0; i < cluster->shape.nr_queues; i++)
		bytes += rc_queue_memory(rc_cluster_queue(cluster, i));
	return bytes;
}

struct rc_cluster_config *rc_cluster_config_alloc(u32 nr_queues)
{
	struct rc_cluster_config *config;

	config = kzalloc(struct_size(config, queues, nr_queues), GFP_KERNEL_ACCOUNT);
	if (config)
		config->nr_queues = nr_queues;
	return config;
}

void rc_cluster_config_free(struct rc_cluster_config *config, const struct rc_cluster_config *other)
{
	if (config && (!other || config->fragments != other->fragments))
		rc_fragments_destroy(config->fragments);
	kfree(config);
}
