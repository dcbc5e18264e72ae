// SPDX-License-Identifier: GPL-2.0-only

#include "proc.h"

#include <linux/proc_fs.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>
#include <net/net_namespace.h>

#include "balance.h"
#include "chardev.h"
#include "cluster.h"
#include "hold.h"
#include "net.h"
#include "params.h"
#include "plugin.h"
#include "proc_device.h"
#include "ring.h"
#include "shunt.h"
#include "tap.h"
#include "version.h"
#include "vlans.h"

/* Totals of this network namespace. The file is not removed under rc_net.control. */
static void rc_proc_show_totals(struct seq_file *m, struct rc_net *rc_net)
{
	unsigned int rings = 0, taps = 0, clusters = 0, queues = 0;
	struct rc_cluster *cluster;
	struct rc_ring *ring;
	struct rc_tap *tap;
	u64 memory = 0;

	mutex_lock(&rc_net->control);
	list_for_each_entry(cluster, &rc_net->clusters, list) {
		clusters++;
		queues += cluster->shape.nr_queues;
		memory += rc_cluster_memory(cluster);
	}
	rtnl_lock();
	list_for_each_entry(ring, &rc_net->rings, list) {
		rings++;
		list_for_each_entry(tap, &ring->taps, list)
			taps++;
	}
	rtnl_unlock();
	mutex_unlock(&rc_net->control);
	seq_printf(m, "Rings: %u\nTaps: %u\nClusters: %u\nQueues: %u\nMemory: %llu\n", rings, taps, clusters, queues,
		   memory);
}

static int rc_proc_show_info(struct seq_file *m, void *unused)
{
	seq_printf(m, "Version: %s\nABI: %u\nABI oldest: %u\nSlot header: %zu\n", RC_VERSION, RINGCAP_ABI,
		   RINGCAP_ABI_MIN, sizeof(struct ringcap_slot));
	rc_proc_show_totals(m, m->private);
	seq_printf(m, "Default min_num_slots: %u\nDefault lane size: %u\n", rc_param(min_num_slots),
		   rc_params_lane_size());
	seq_printf(m, "Default transparent_mode: %u\nDefault quick_mode: %u\nDefault enable_tx_capture: %u\n",
		   rc_param(transparent_mode), rc_param(quick_mode), rc_param(enable_tx_capture));
	seq_printf(m, "Default enable_frag_coherence: %u\nDefault enable_ip_defrag: %u\n",
		   rc_param(enable_frag_coherence), rc_param(enable_ip_defrag));
	seq_printf(m, "Max rings: %u\nMax rings netns: %u\nMax learnt: %u\nMax learnt netns: %u\n", rc_param(max_rings),
		   rc_param(max_rings_netns), rc_param(max_learnt), rc_param(max_learnt_netns));
	return 0;
}

static void rc_proc_show_stages(struct seq_file *m, const struct rc_ring_config *config)
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
	rc_proc_show_stages(m, config);
	rcu_read_unlock();
}

/* The lines of a pair's account, by enum ringcap_inline_stat. */
static const char *const rc_proc_inline_names[] = {
	[RINGCAP_INLINE_BRIDGED] = "Bridged",
	[RINGCAP_INLINE_HELD] = "Held",
	[RINGCAP_INLINE_PASSED] = "Passed on",
	[RINGCAP_INLINE_REPLACED] = "Replaced",
	[RINGCAP_INLINE_BLOCKED] = "Blocked",
	[RINGCAP_INLINE_UNANSWERED] = "Unanswered",
	[RINGCAP_INLINE_BYPASS_UNATTENDED] = "Bypass unattended",
	[RINGCAP_INLINE_BYPASS_FULL] = "Bypass full",
	[RINGCAP_INLINE_BYPASS_HUNG] = "Bypass hung",
	[RINGCAP_INLINE_BLOCK_UNATTENDED] = "Block unattended",
	[RINGCAP_INLINE_BLOCK_FULL] = "Block full",
	[RINGCAP_INLINE_BLOCK_HUNG] = "Block hung",
	[RINGCAP_INLINE_TOO_LONG] = "Lost too long",
	[RINGCAP_INLINE_REFUSED] = "Lost refused",
	[RINGCAP_INLINE_NOMEM] = "Lost nomem",
	[RINGCAP_INLINE_DOWN] = "Lost down",
	[RINGCAP_INLINE_LATE] = "Verdicts late",
	[RINGCAP_INLINE_UNKNOWN] = "Verdicts unknown",
	[RINGCAP_INLINE_BYPASSES] = "Bypasses",
	[RINGCAP_INLINE_BYPASS_MS] = "Bypass ms",
	[RINGCAP_INLINE_INJECTED] = "Injected",
	[RINGCAP_INLINE_NOT_INJECTED] = "Not injected",
	[RINGCAP_INLINE_SHUNT_PASSED] = "Shunt passed",
	[RINGCAP_INLINE_SHUNT_BLOCKED] = "Shunt blocked",
};

static void rc_proc_show_inline(struct seq_file *m, const u64 *stats, u32 first, u32 last)
{
	u32 i;

	for (i = first; i <= last; i++)
		seq_printf(m, "%s: %llu\n", rc_proc_inline_names[i], stats[i]);
}

static void rc_proc_show_hold(struct seq_file *m, struct rc_hold *hold)
{
	u64 stats[RINGCAP_INLINE_STATS];

	seq_printf(m, "Open: %s%s%s\nHung ms: %u\n", hold->open & RINGCAP_OPEN_UNATTENDED ? "unattended " : "",
		   hold->open & RINGCAP_OPEN_FULL ? "full " : "", hold->open & RINGCAP_OPEN_HUNG ? "hung" : "",
		   READ_ONCE(hold->hung_ms));
	rc_hold_stats(hold, stats);
	rc_proc_show_inline(m, stats, RINGCAP_INLINE_HELD, RINGCAP_INLINE_SHUNT_BLOCKED);
}

static void rc_proc_show_tap(struct seq_file *m, const struct rc_tap *tap)
{
	const struct net_device *peer = tap->peer ? rtnl_dereference(tap->egress.dev) : NULL;

	seq_printf(m, "Tap: %s %s%s", tap->packet_type.dev->name, rc_tap_direction(tap->direction),
		   tap->promiscuous ? " promiscuous" : "");
	if (tap->peer)
		seq_printf(m, " peer %s", peer ? peer->name : "gone");
	seq_putc(m, '\n');
}

static int rc_proc_show_ring(struct seq_file *m, void *unused)
{
	const struct rc_ring *ring = m->private;
	const struct rc_tap *tap;
	struct rc_account_sum sum;
	u32 loss;

	seq_printf(m, "Name: %s\nTransparent mode: %u\nOwned: %s\n", ring->name, READ_ONCE(ring->transparent),
		   ring->owner ? "yes" : "no");
	rtnl_lock();
	list_for_each_entry(tap, &ring->taps, list)
		rc_proc_show_tap(m, tap);
	rtnl_unlock();
	rc_proc_show_config(m, ring);
	rc_account_sum(ring->account, &sum);
	seq_printf(m, "Seen: %llu\nSeen bytes: %llu\nFiltered: %llu\nSampled out: %llu\n", sum.seen, sum.seen_bytes,
		   sum.fates[RC_FATE_FILTERED], sum.fates[RC_FATE_SAMPLED_OUT]);
	seq_printf(m, "Reflected: %llu\nReflect failed: %llu\nAbsorbed: %llu\nDirected: %llu\nPassed: %llu\n",
		   sum.fates[RC_FATE_REFLECTED], sum.reflect_failed, sum.fates[RC_FATE_ABSORBED],
		   sum.fates[RC_FATE_DIRECTED], sum.fates[RC_FATE_PASSED]);
	seq_printf(m, "Bridged: %llu\n", sum.bridged);
	for (loss = 0; loss < RC_ACCOUNT_LOSSES; loss++)
		seq_printf(m, "%s: %llu\n", rc_proc_inline_names[RINGCAP_INLINE_TOO_LONG + loss], sum.lost[loss]);
	return 0;
}

static void rc_proc_show_stats(struct seq_file *m, struct rc_queue *queue)
{
	struct ringcap_lane_stats sum;

	rc_queue_stats(queue, &sum);
	seq_printf(m, "Lanes: %u\nLane size: %u\nMemory: %llu\nUnread bytes: %llu\n", queue->nr_lanes,
		   rc_lane_size(&queue->lanes[0]), rc_queue_memory(queue), rc_queue_unread_bytes(queue));
	seq_printf(m, "Delivered: %llu\nDelivered bytes: %llu\nTruncated: %llu\nTruncated bytes: %llu\n", sum.delivered,
		   sum.delivered_bytes, sum.truncated, sum.truncated_bytes);
	seq_printf(m, "Dropped full: %llu\nDropped unattended: %llu\nDropped nomem: %llu\nDropped hung: %llu\n",
		   sum.dropped[RINGCAP_DROP_FULL], sum.dropped[RINGCAP_DROP_UNATTENDED],
		   sum.dropped[RINGCAP_DROP_NOMEM], sum.dropped[RINGCAP_DROP_HUNG]);
	seq_printf(m, "Lanes with memory: %u\nShared lane: %llu\n", rc_queue_lanes(queue), rc_queue_shared(queue));
	seq_printf(m, "Sent: %llu\nSend failed: %llu\n", READ_ONCE(queue->tx_sent), READ_ONCE(queue->tx_failed));
}

/* Under rc_chardev_lock. */
static void rc_proc_show_shunts(struct seq_file *m, const struct rc_queue *queue)
{
	struct rc_queue_shunted shunted;

	rc_queue_shunted(queue, &shunted);
	seq_printf(m, "Shunt quota: %u\nShunts: %u\nShunts lost: %llu\nShunted: %llu\nShunted bytes: %llu\n",
		   READ_ONCE(queue->shunt_quota), rc_shunts_count(queue), rc_shunts_lost(queue), shunted.packets,
		   shunted.bytes);
}

/* The queue's consumer, if the reader of this file is allowed to see it. */
static void rc_proc_show_consumer(struct seq_file *m, const struct rc_queue *queue)
{
	bool attached = rc_queue_has_consumer(queue);
	pid_t pid = attached ? pid_vnr(queue->pid) : 0;
	struct task_struct *task = pid ? get_pid_task(queue->pid, PIDTYPE_TGID) : NULL;
	char name[TASK_COMM_LEN] = "";

	if (task) {
		get_task_comm(name, task);
		put_task_struct(task);
	}
	seq_printf(m, "Attached: %s\nAttached pid: %d\nAttached name: %s\n", attached ? "yes" : "no", pid, name);
	seq_printf(m, "Watermark: %u\nTimeout us: %u\n", READ_ONCE(queue->waiter.watermark),
		   READ_ONCE(queue->waiter.timeout_us));
}

/* The rings that deliver to @cluster, and their interfaces. The file is not removed under RTNL. */
static void rc_proc_show_feeders(struct seq_file *m, const struct rc_cluster *cluster)
{
	const struct rc_ring_config *config;
	const struct rc_ring *ring;
	const struct rc_tap *tap;
	u32 i;

	rtnl_lock();
	list_for_each_entry(ring, &cluster->rc_net->rings, list) {
		config = rcu_dereference_rtnl(ring->config);
		for (i = 0; i < config->nr_outputs && config->outputs[i] != cluster; i++)
			;
		if (i == config->nr_outputs)
			continue;
		seq_printf(m, "Ring: %s", ring->name);
		list_for_each_entry(tap, &ring->taps, list)
			seq_printf(m, " %s", tap->packet_type.dev->name);
		seq_putc(m, '\n');
	}
	rtnl_unlock();
}

static int rc_proc_show_queue(struct seq_file *m, void *unused)
{
	const struct rc_chardev *chardev = m->private;
	struct rc_balance_account balance;

	seq_printf(m, "Device: /dev/ringcap/%s/%u\n", chardev->cluster->name, chardev->index);
	rc_proc_show_feeders(m, chardev->cluster);
	rc_balance_account_sum(chardev->cluster, &balance);
	seq_printf(m, "Cluster duplicated: %llu\nCluster spread: %llu\n", balance.duplicated, balance.spread);
	mutex_lock(&rc_chardev_lock);
	if (chardev->queue) {
		rc_proc_show_consumer(m, chardev->queue);
		rc_proc_show_stats(m, chardev->queue);
		rc_proc_show_shunts(m, chardev->queue);
		if (chardev->queue->hold)
			rc_proc_show_hold(m, chardev->queue->hold);
	}
	mutex_unlock(&rc_chardev_lock);
	return 0;
}

int rc_proc_add_net(struct rc_net *rc_net)
{
	rc_net->proc = proc_mkdir("ringcap", rc_net->net->proc_net);
	if (!rc_net->proc)
		return -ENOMEM;
	rc_net->proc_rings = proc_mkdir("ring", rc_net->proc);
	rc_net->proc_queues = proc_mkdir("queue", rc_net->proc);
	if (rc_proc_devices_add(rc_net) && rc_net->proc_rings && rc_net->proc_queues &&
	    proc_create_single_data("info", 0444, rc_net->proc, rc_proc_show_info, rc_net))
		return 0;
	rc_proc_remove_net(rc_net);
	return -ENOMEM;
}

void rc_proc_remove_net(struct rc_net *rc_net)
{
	rc_proc_devices_remove(rc_net);
	proc_remove(rc_net->proc);
}

struct proc_dir_entry *rc_proc_add_ring(struct rc_ring *ring)
{
	return proc_create_single_data(ring->name, 0444, ring->rc_net->proc_rings, rc_proc_show_ring, ring);
}

struct proc_dir_entry *rc_proc_add_queue(struct rc_chardev *chardev)
{
	char name[RINGCAP_NAME_MAX + sizeof("-255")];

	snprintf(name, sizeof(name), "%s-%u", chardev->cluster->name, chardev->index);
	return proc_create_single_data(name, 0444, chardev->cluster->rc_net->proc_queues, rc_proc_show_queue, chardev);
}

void rc_proc_remove(struct proc_dir_entry *entry)
{
	proc_remove(entry);
}
