// SPDX-License-Identifier: GPL-2.0-only

#include "cluster.h"

#include <linux/overflow.h>
#include <linux/slab.h>

#include "fragment.h"
#include "net.h"
#include "shunt.h"

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

static bool rc_cluster_shunts(const struct rc_cluster_config *config)
{
	u32 i;

	for (i = 0; i < config->nr_queues; i++)
		if (READ_ONCE(config->queues[i]->shunt_quota) && rc_shunts_count(config->queues[i]))
			return true;
	return false;
}

static void rc_cluster_note(struct rc_cluster_config *config)
{
	bool shunting = rc_cluster_shunts(config);

	WRITE_ONCE(config->shunting, shunting);
	WRITE_ONCE(config->special, shunting || config->usually_special);
	WRITE_ONCE(config->path, shunting ? RC_PATH_SLOW : config->usual_path);
}

void rc_cluster_note_shunts(struct rc_cluster *cluster)
{
	rcu_read_lock();
	rc_cluster_note(rcu_dereference(cluster->config));
	rcu_read_unlock();
}

struct rc_cluster_config *rc_cluster_replace_config(struct rc_cluster *cluster, struct rc_cluster_config *config)
{
	rc_cluster_note(config);
	return rcu_replace_pointer(cluster->config, config, rc_net_held(cluster->rc_net));
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
