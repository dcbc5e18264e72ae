// SPDX-License-Identifier: GPL-2.0-only

#include "ring_set.h"

#include <linux/memcontrol.h>
#include <linux/netlink.h>
#include <linux/rcupdate.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "cluster.h"
#include "driver_hook.h"
#include "feed.h"
#include "limit.h"
#include "net.h"
#include "owner.h"
#include "pair.h"
#include "plugin.h"
#include "proc.h"
#include "proc_device.h"
#include "ring.h"
#include "rules.h"
#include "spec.h"
#include "stages.h"
#include "tap.h"
#include "tap_set.h"
#include "vlans.h"

static void rc_ring_config_free(const struct rc_ring_config *config)
{
	if (!config)
		return;
	if (config->filter)
		bpf_prog_destroy(config->filter);
	rc_plugins_free(config->plugins);
	mem_cgroup_put(config->memcg);
	kfree(config->vlans);
	kfree(config);
}

/* A ring with pairs has one in-line cluster, others have none. */
static int rc_ring_find_in_line(struct rc_ring_config *config, const struct rc_ring_spec *spec,
				struct netlink_ext_ack *extack)
{
	u32 i;

	for (i = 0; i < config->nr_outputs; i++) {
		if (!config->outputs[i]->shape.in_line)
			continue;
		if (!spec->has_pairs || config->in_line) {
			NL_SET_ERR_MSG_ATTR(extack, spec->outputs[i],
					    "RINGCAP_A_OUTPUT: an in-line cluster (RINGCAP_A_INLINE) is fed only by rings whose taps have peers, and each of these feeds only one");
			return -EINVAL;
		}
		config->in_line = config->outputs[i];
	}
	if (config->in_line || !spec->has_pairs)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, spec->taps[0].attr,
			    "RINGCAP_A_TAP_PEER: a ring whose taps have peers needs an in-line cluster (RINGCAP_A_INLINE) among its outputs");
	return -EINVAL;
}

static int rc_ring_add_outputs(struct rc_ring_config *config, const struct rc_net *rc_net,
			       const struct rc_ring_spec *spec, struct netlink_ext_ack *extack)
{
	u32 i, j;

	for (i = 0; i < spec->nr_outputs; i++) {
		struct rc_cluster *cluster = rc_cluster_find(rc_net, nla_data(spec->outputs[i]));

		if (!cluster) {
			NL_SET_ERR_MSG_ATTR(extack, spec->outputs[i],
					    "RINGCAP_A_OUTPUT: there is no cluster of this name: make it first, with RINGCAP_CMD_CLUSTER_SET");
			return -ENOENT;
		}
		for (j = 0; j < i; j++) {
			if (config->outputs[j] == cluster) {
				NL_SET_ERR_MSG_ATTR(extack, spec->outputs[i],
						    "RINGCAP_A_OUTPUT: this cluster is named twice");
				return -EINVAL;
			}
		}
		if (rc_owner_check_feed(spec->owner, cluster->owner, extack)) {
			NL_SET_BAD_ATTR(extack, spec->outputs[i]);
			return -EBUSY;
		}
		config->outputs[i] = cluster;
	}
	config->nr_outputs = spec->nr_outputs;
	return rc_ring_find_in_line(config, spec, extack);
}

static int rc_ring_add_filter(struct rc_ring_config *config, const struct rc_ring_spec *spec,
			      struct netlink_ext_ack *extack)
{
	struct sock_fprog_kern program;
	int err;

	if (!spec->filter)
		return 0;
	program.len = nla_len(spec->filter) / sizeof(struct sock_filter);
	program.filter = nla_data(spec->filter);
	err = bpf_prog_create(&config->filter, &program);
	if (err)
		NL_SET_ERR_MSG_ATTR(extack, spec->filter,
				    "RINGCAP_A_FILTER: the kernel does not accept this classic BPF program: an instruction is unknown, jumps out of the program, or the last one does not return");
	return err;
}

/* Sets what stages.c does to packets. */
static int rc_ring_add_stages(struct rc_ring_config *config, const struct rc_ring_spec *spec,
			      struct netlink_ext_ack *extack)
{
	struct rc_plugins *plugins;
	struct rc_vlans *vlans;
	int err;

	if (spec->vlans) {
		vlans = rc_vlans_create(spec->vlans, extack);
		if (IS_ERR(vlans))
			return PTR_ERR(vlans);
		config->vlans = vlans;
	}
	if (spec->nr_plugins) {
		plugins = rc_plugins_create(spec->plugins, spec->nr_plugins, extack);
		if (IS_ERR(plugins))
			return PTR_ERR(plugins);
		config->plugins = plugins;
	}
	if (spec->has_pairs && spec->sample && nla_get_u32(spec->sample) > 1) {
		NL_SET_ERR_MSG_ATTR(extack, spec->sample,
				    "RINGCAP_A_SAMPLE: a ring whose taps have peers does not sample: its consumer decides on packets");
		return -EINVAL;
	}
	config->needs_skb = config->defrag || (config->plugins && config->plugins->has_program);
	err = rc_sample_init(&config->sample, spec->sample, spec->sample_by, extack);
	return err;
}

static struct rc_ring_config *rc_ring_config_create(const struct rc_net *rc_net, const struct rc_ring_spec *spec,
						    struct netlink_ext_ack *extack)
{
	struct rc_ring_config *config = kzalloc(sizeof(*config), GFP_KERNEL_ACCOUNT);
	int err;

	if (!config)
		return ERR_PTR(-ENOMEM);
	config->memcg = get_mem_cgroup_from_mm(current->mm);
	config->snaplen = spec->snaplen;
	config->hwtstamp = spec->hwtstamp;
	config->defrag = spec->defrag;
	err = rc_ring_add_outputs(config, rc_net, spec, extack) ?: rc_ring_add_filter(config, spec, extack) ?:
	      rc_ring_add_stages(config, spec, extack);
	if (!err)
		return config;
	rc_ring_config_free(config);
	return ERR_PTR(err);
}

/* ---- taps ---- */

static struct rc_tap *rc_ring_find_tap(const struct rc_ring *ring, u32 ifindex)
{
	struct rc_tap *tap;

	list_for_each_entry(tap, &ring->taps, list)
		if (tap->ifindex == ifindex)
			return tap;
	return NULL;
}

/* Undoes rc_ring_prepare_taps. */
static void rc_ring_abandon_taps(struct rc_ring *ring, struct list_head *fresh)
{
	struct rc_tap *tap, *next;

	list_for_each_entry_safe(tap, next, fresh, list)
		rc_tap_free(tap);
	list_for_each_entry(tap, &ring->taps, list) {
		rc_tap_abandon_rx_queues(tap);
		if (!ring->promiscuous && !tap->peer)
			rc_tap_set_promiscuous(tap, false);
	}
}

/* The tap's device. A tap that follows keeps its device in any namespace, unless another device here has its index. */
static struct net_device *rc_ring_tap_device(const struct rc_ring *ring, const struct rc_tap_spec *spec,
					     struct netlink_ext_ack *extack)
{
	const struct rc_tap *tap = rc_ring_find_tap(ring, spec->ifindex);

	if (tap && spec->follows && rc_tap_is_away(tap) && !__dev_get_by_index(ring->rc_net->net, spec->ifindex))
		return tap->packet_type.dev;
	return rc_tap_device(ring, spec, extack);
}

/*
 * The tap that @spec asks for, if it exists and gets its packets where @spec wants it to. Otherwise a new one, in
 * @fresh.
 */
static struct rc_tap *rc_ring_prepare_tap(struct rc_ring *ring, const struct rc_ring_spec *spec,
					  const struct rc_tap_spec *tap_spec, struct list_head *fresh,
					  struct netlink_ext_ack *extack)
{
	struct net_device *dev = rc_ring_tap_device(ring, tap_spec, extack);
	struct rc_tap *tap;
	int mode, err;

	if (IS_ERR(dev))
		return ERR_CAST(dev);
	mode = rc_driver_hook_mode(dev, spec->transparent, spec->transparent_fallback, tap_spec->attr, extack);
	if (mode < 0)
		return ERR_PTR(mode);
	if (mode && tap_spec->follows) {
		NL_SET_ERR_MSG_ATTR(extack, tap_spec->attr, "RINGCAP_A_TAP_FOLLOWS: this goes with transparent mode 0");
		return ERR_PTR(-EOPNOTSUPP);
	}
	if (mode && tap_spec->peer) {
		NL_SET_ERR_MSG_ATTR(extack, tap_spec->attr, "RINGCAP_A_TAP_PEER: this goes with transparent mode 0");
		return ERR_PTR(-EOPNOTSUPP);
	}
	err = tap_spec->peer ? rc_pair_check(ring, tap_spec, dev, spec->addressed, extack) : 0;
	if (err)
		return ERR_PTR(err);
	tap = rc_ring_find_tap(ring, tap_spec->ifindex);
	if (!tap || tap->packet_type.dev != dev || !tap->mode != !mode || !rc_pair_is(tap, tap_spec)) {
		tap = rc_tap_create(ring, tap_spec, dev, mode, extack);
		if (IS_ERR(tap))
			return tap;
		list_add_tail(&tap->list, fresh);
	}
	tap->new_mode = mode;
	return tap;
}

/* Makes missing taps, as @fresh, and marks those to be removed. All steps that can fail are done here. */
static int rc_ring_prepare_taps(struct rc_ring *ring, const struct rc_ring_spec *spec, struct list_head *fresh,
				struct netlink_ext_ack *extack)
{
	struct rc_tap *tap;
	int err = 0;
	u32 i;

	list_for_each_entry(tap, &ring->taps, list)
		tap->stale = true;
	for (i = 0; i < spec->nr_taps && !err; i++) {
		tap = rc_ring_prepare_tap(ring, spec, &spec->taps[i], fresh, extack);
		if (IS_ERR(tap)) {
			err = PTR_ERR(tap);
			break;
		}
		tap->stale = false;
		err = rc_tap_prepare_rx_queues(tap, &spec->taps[i], extack);
		if (err || !(spec->promiscuous || tap->peer))
			continue;
		err = rc_tap_set_promiscuous(tap, true);
		if (err)
			NL_SET_ERR_MSG_ATTR(extack, spec->taps[i].attr,
					    "RINGCAP_A_PROMISC: this interface cannot be made promiscuous");
	}
	if (err)
		rc_ring_abandon_taps(ring, fresh);
	return err;
}

/* Cannot fail. */
static void rc_ring_commit_taps(struct rc_ring *ring, const struct rc_ring_spec *spec, struct list_head *fresh)
{
	struct rc_tap *tap, *next;
	LIST_HEAD(stale);
	u32 i;

	list_for_each_entry_safe(tap, next, &ring->taps, list) {
		if (tap->stale) {
			list_move_tail(&tap->list, &stale);
			continue;
		}
		rc_tap_commit_rx_queues(tap);
		rc_tap_commit_mode(tap);
		if (!spec->promiscuous && !tap->peer)
			rc_tap_set_promiscuous(tap, false);
	}
	/*
	 * Old taps are removed first: a packet on its way from the driver to the stack could pass an old tap and a new
	 * one.
	 */
	rc_tap_remove_all(&stale);
	list_for_each_entry_safe(tap, next, fresh, list) {
		list_move_tail(&tap->list, &ring->taps);
		rc_tap_commit_rx_queues(tap);
		rc_tap_add(tap);
	}
	for (i = 0; i < spec->nr_taps; i++) {
		tap = rc_ring_find_tap(ring, spec->taps[i].ifindex);
		rc_tap_set_follows(tap, spec->taps[i].follows);
		rc_tap_set_direction(tap, spec->taps[i].direction);
	}
}

/* ---- life ---- */

static void rc_ring_free(struct rc_ring *ring)
{
	rc_limit_give(&ring->rc_net->limited, RC_LIMIT_RINGS, 1);
	free_percpu(ring->account);
	kfree(ring);
}

static int rc_ring_take(struct rc_net *rc_net, struct netlink_ext_ack *extack)
{
	int err = rc_limit_take(&rc_net->limited, RC_LIMIT_RINGS);

	if (err == -EDQUOT)
		NL_SET_ERR_MSG(extack,
			       "this network namespace has as many rings as max_rings_netns of the module ringcap allows: delete some, or have the machine's administrator raise it");
	else if (err)
		NL_SET_ERR_MSG(extack,
			       "this machine's network namespaces have as many rings as max_rings of the module ringcap allows, of which half are the initial one's: delete some, or have the machine's administrator raise it");
	return err;
}

static struct rc_ring *rc_ring_alloc(struct rc_net *rc_net, const struct rc_ring_spec *spec,
				     struct netlink_ext_ack *extack)
{
	struct rc_ring *ring;
	int err = rc_ring_take(rc_net, extack);

	if (err)
		return ERR_PTR(err);
	ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	if (!ring) {
		rc_limit_give(&rc_net->limited, RC_LIMIT_RINGS, 1);
		return ERR_PTR(-ENOMEM);
	}
	INIT_LIST_HEAD(&ring->taps);
	ring->rc_net = rc_net;
	strscpy(ring->name, spec->name, sizeof(ring->name));
	ring->account = alloc_percpu_gfp(struct rc_account, GFP_KERNEL_ACCOUNT);
	if (!ring->account) {
		rc_ring_free(ring);
		return ERR_PTR(-ENOMEM);
	}
	return ring;
}

/* A ring gets pairs: what its former taps receive must not come into the in-line cluster, where nothing would wait. */
static void rc_ring_end_copies(struct rc_ring *ring, const struct rc_ring_config *config)
{
	const struct rc_ring_config *old = rc_ring_config(ring);

	if (old && !old->in_line && config->in_line)
		rc_tap_remove_all(&ring->taps);
}

/* Gives @config and the taps of @spec to @ring. The ring is new if it is not in a list yet. */
static int rc_ring_apply(struct rc_ring *ring, const struct rc_ring_spec *spec, struct rc_ring_config *config,
			 bool is_new, struct netlink_ext_ack *extack)
{
	struct rc_ring_config *old;
	LIST_HEAD(fresh);
	int err;

	rtnl_lock();
	err = rc_ring_prepare_taps(ring, spec, &fresh, extack);
	if (!err) {
		rc_ring_end_copies(ring, config);
		rc_stages_note(ring, config);
		old = rcu_replace_pointer(ring->config, config, rc_net_held(ring->rc_net));
		ring->promiscuous = spec->promiscuous;
		ring->quick = spec->quick;
		ring->transparent = spec->transparent;
		ring->transparent_fallback = spec->transparent_fallback;
		ring->addressed = spec->addressed;
		ring->generation = spec->generation;
		if (is_new) {
			list_add_tail(&ring->list, &ring->rc_net->rings);
			ring->rc_net->changes++;
			ring->owner = spec->owner;
			ring->rc_net->nr_owned += !!ring->owner;
		}
		rc_ring_commit_taps(ring, spec, &fresh);
	}
	rtnl_unlock();
	if (err)
		return err;

	/* After this, clusters that are no longer fed may be deleted. */
	if (old)
		synchronize_net();
	rc_ring_config_free(old);
	rc_feed_update(ring->rc_net);
	return 0;
}

/* Packets that wait in the one could be overtaken by those that come to the other. */
static bool rc_ring_exchanges_in_line(const struct rc_ring *ring, const struct rc_ring_config *config,
				      struct netlink_ext_ack *extack)
{
	const struct rc_cluster *old = rc_ring_config(ring)->in_line;

	if (!old || !config->in_line || old == config->in_line)
		return false;
	NL_SET_ERR_MSG(extack,
		       "RINGCAP_A_OUTPUT: a ring's in-line cluster cannot be exchanged for another, because packets may wait in it: delete the ring first");
	return true;
}

int rc_ring_set(struct rc_net *rc_net, const struct rc_ring_spec *spec, struct netlink_ext_ack *extack)
{
	struct rc_ring *ring = rc_ring_find(rc_net, spec->name);
	struct rc_ring_config *config;
	bool is_new = !ring;
	int err;

	lockdep_assert_held(&rc_net->control);
	err = ring ? rc_owner_check_replace(ring->owner, spec->owner, extack) : 0;
	if (err)
		return err;
	config = rc_ring_config_create(rc_net, spec, extack);
	if (IS_ERR(config))
		return PTR_ERR(config);
	if (is_new)
		ring = rc_ring_alloc(rc_net, spec, extack);
	else if (rc_ring_exchanges_in_line(ring, config, extack))
		err = -EBUSY;
	err = err ?: PTR_ERR_OR_ZERO(ring) ?: rc_ring_apply(ring, spec, config, is_new, extack);
	if (err) {
		rc_ring_config_free(config);
		if (is_new && !IS_ERR(ring))
			rc_ring_free(ring);
		return err;
	}
	/* For people only: a ring works without it. */
	if (is_new)
		ring->proc = rc_proc_add_ring(ring);
	rc_proc_devices_follow(rc_net);
	return 0;
}

void rc_ring_destroy(struct rc_ring *ring)
{
	struct rc_net *rc_net = ring->rc_net;

	if (ring->proc)
		rc_proc_remove(ring->proc);
	rc_net->changes++;
	rc_net->nr_owned -= !!ring->owner;
	rtnl_lock();
	list_del(&ring->list);
	rc_tap_remove_all(&ring->taps);
	rtnl_unlock();
	rc_rules_ring_gone(ring);
	rc_ring_config_free(rc_ring_config(ring));
	rc_ring_free(ring);
	rc_feed_update(rc_net);
	rc_proc_devices_follow(rc_net);
}
