// SPDX-License-Identifier: GPL-2.0-only

#include "proc.h"

#include <linux/proc_fs.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>
#include <net/net_namespace.h>

#include "cluster.h"
#include "net.h"
#include "node.h"
#include "plugin.h"
#include "ring.h"
#include "version.h"
#include "vlans.h"

static int rc_proc_show_info(struct seq_file *m, void *unused)
{
	seq_printf(m, "Version: %s\nABI: %u\nABI oldest: %u\nSlot header: %zu\n", RC_VERSION, RINGCAP_ABI,
		   RINGCAP_ABI_MIN, sizeof(struct ringcap_slot));
	return 0;
}

static const char *rc_proc_direction(u32 direction)
{
	static const char *const names[] = {
		[RINGCAP_DIRECTION_RX] = "rx",
		[RINGCAP_DIRECTION_TX] = "tx",
		[RINGCAP_DIRECTION_BOTH] = "both",
	};

	return names[direction];
}

static void rc_proc_show_steps(struct seq_file *m, const struct rc_ring_config *config)
{
	if (config->vlans)
		seq_printf(m, "Vlans: %*pbl\n", VLAN_N_VID, config->vlans->ids);
	if (config->plugins)
		rc_plugins_show(m, config->plugins);
	if (config->sample.n > 1)
		seq_printf(m, "Sample: 1 in %u by %s\n", config->sample.n,
			   config->sample.by == RINGCAP_SAMPLE_FLOW ? "flow" : "packet");
}

static void rc_proc_show_config(struct seq_file *m, const struct rc_ring *ring)
{
	const struct rc_ring_config *config;
	u32 i;

	rcu_read_lock();
	config = rcu_dereference(ring->config);
	seq_printf(m, "Snap length: %u\nFilter: %s\nDefragmentation: %s\n", config->snaplen, config->filter ? "yes" : "no",
		   config->defrag ? "yes" : "no");
	for (i = 0; i < config->nr_outputs; i++)
		seq_printf(m, "Output: %s\n", config->outputs[i]->name);
	rc_proc_show_steps(m, config);
	rcu_read_unlock();
}

static int rc_proc_show_ring(struct seq_file *m, void *unused)
{
	const struct rc_ring *ring = m->private;
	const struct rc_tap *tap;
	struct rc_account_sum sum;

	seq_printf(m, "Name: %s\n", ring->name);
	rtnl_lock();
	list_for_each_entry(tap, &ring->taps, list)
		seq_printf(m, "Tap: %s %s%s\n", tap->packet_type.dev->name, rc_proc_direction(tap->direction),
			   tap->promiscuous ? " promiscuous" : "");
	rtnl_unlock();
	rc_proc_show_config(m, ring);
	rc_account_sum(ring->account, &sum);
	seq_printf(m, "Seen: %llu\nSeen bytes: %llu\nFiltered: %llu\nSampled out: %llu\n", sum.seen, sum.seen_bytes,
		   sum.fates[RC_FATE_FILTERED], sum.fates[RC_FATE_SAMPLED_OUT]);
	seq_printf(m, "Reflected: %llu\nReflect failed: %llu\nAbsorbed: %llu\nDirected: %llu\nPassed: %llu\n",
		   sum.fates[RC_FATE_REFLECTED], sum.reflect_failed, sum.fates[RC_FATE_ABSORBED],
		   sum.fates[RC_FATE_DIRECTED], sum.fates[RC_FATE_PASSED]);
	return 0;
}

static void rc_proc_show_stats(struct seq_file *m, struct rc_queue *queue)
{
	struct ringcap_lane_stats sum;

	rc_queue_stats(queue, &sum);
	seq_printf(m, "Lanes: %u\nLane size: %u\nMemory: %llu\nUnread bytes: %llu\n", queue->nr_lanes,
		   queue->lanes[0].size, rc_queue_memory(queue), rc_queue_unread_bytes(queue));
	seq_printf(m, "Delivered: %llu\nDelivered bytes: %llu\n", sum.delivered, sum.delivered_bytes);
	seq_printf(m, "Dropped full: %llu\nDropped unattended: %llu\nDropped nomem: %llu\n",
		   sum.dropped[RINGCAP_DROP_FULL], sum.dropped[RINGCAP_DROP_UNATTENDED],
		   sum.dropped[RINGCAP_DROP_NOMEM]);
	seq_printf(m, "Sent: %llu\nSend failed: %llu\n", READ_ONCE(queue->tx_sent), READ_ONCE(queue->tx_failed));
}

static int rc_proc_show_queue(struct seq_file *m, void *unused)
{
	const struct rc_node *node = m->private;

	struct rc_balance_account balance;

	seq_printf(m, "Device: /dev/ringcap/%s/%u\n", node->cluster->name, node->index);
	rc_balance_account_sum(node->cluster, &balance);
	seq_printf(m, "Cluster duplicated: %llu\nCluster spread: %llu\n", balance.duplicated, balance.spread);
	mutex_lock(&rc_node_lock);
	if (node->queue) {
		seq_printf(m, "Attached pid: %d\n", node->queue->pid ? pid_vnr(node->queue->pid) : 0);
		rc_proc_show_stats(m, node->queue);
	}
	mutex_unlock(&rc_node_lock);
	return 0;
}

int rc_proc_add_net(struct rc_net *rc_net)
{
	rc_net->proc = proc_mkdir("ringcap", rc_net->net->proc_net);
	if (!rc_net->proc)
		return -ENOMEM;
	rc_net->proc_rings = proc_mkdir("ring", rc_net->proc);
	rc_net->proc_queues = proc_mkdir("queue", rc_net->proc);
	if (rc_net->proc_rings && rc_net->proc_queues &&
	    proc_create_single_data("info", 0444, rc_net->proc, rc_proc_show_info, NULL))
		return 0;
	rc_proc_remove_net(rc_net);
	return -ENOMEM;
}

void rc_proc_remove_net(struct rc_net *rc_net)
{
	proc_remove(rc_net->proc);
}

struct proc_dir_entry *rc_proc_add_ring(struct rc_ring *ring)
{
	return proc_create_single_data(ring->name, 0444, ring->rc_net->proc_rings, rc_proc_show_ring, ring);
}

struct proc_dir_entry *rc_proc_add_queue(struct rc_node *node)
{
	char name[RINGCAP_NAME_MAX + sizeof("-255")];

	snprintf(name, sizeof(name), "%s-%u", node->cluster->name, node->index);
	return proc_create_single_data(name, 0444, node->cluster->rc_net->proc_queues, rc_proc_show_queue, node);
}

void rc_proc_remove(struct proc_dir_entry *entry)
{
	proc_remove(entry);
}
