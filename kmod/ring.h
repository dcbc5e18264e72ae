/* SPDX-License-Identifier: GPL-2.0-only */
/* Rings: named captures, from taps through a filter to clusters. */
#ifndef RC_RING_H
#define RC_RING_H

#include <linux/filter.h>
#include <linux/list.h>
#include <linux/ringcap.h>

#include "account.h"
#include "sample.h"

struct mem_cgroup;
struct rc_cluster;
struct rc_net;
struct rc_plugins;
struct rc_vlans;
struct rc_rules;

/**
 * struct rc_ring_config - what packets need of a ring; never changed, only replaced, under RCU
 * @fast: the cluster that gets all packets unchanged; NULL if there is a filter, a stage or another cluster
 * @ruled: the cluster that gets what header rules pass; NULL if there are none, or other stages as well
 * @filtered: the cluster that gets what the filter passes; NULL if there is none, or a stage or another cluster
 * @in_line: of @outputs, the one whose consumers decide on the packets of pairs; NULL if there are no pairs
 * @filter: packets that pass, NULL = all
 * @has_stages: there are stages besides the filter, see stages.h
 * @hwtstamp: packets have the device's timestamp if it took one
 * @defrag: fragments of IPv4 are reassembled, see defrag.h; implies @has_stages
 * @needs_skb: a scratch skb is not enough, see scratch.h
 * @snaplen: bytes
 * @outputs: clusters that get the packets that pass; each counts this ring in its nr_rings
 * @vlans: VLANs that pass, NULL = all
 * @plugins: NULL = none
 * @memcg: of the process that last set the ring; later allocations for the ring are charged to it; held. NULL = the
 *	kernel has no memory cgroups
 */
struct rc_ring_config {
	struct rc_cluster *fast;
	struct rc_cluster *ruled;
	struct rc_cluster *filtered;
	struct rc_cluster *in_line;
	struct bpf_prog *filter;
	bool has_stages;
	bool hwtstamp;
	bool defrag;
	bool needs_skb;
	u32 snaplen;
	u32 nr_outputs;
	struct rc_cluster *outputs[RINGCAP_OUTPUTS_MAX];
	struct rc_vlans *vlans;
	struct rc_plugins *plugins;
	struct mem_cgroup *memcg;
	struct rc_sample sample;
};

/**
 * struct rc_ring - a ring
 * @config: written under rc_net.control
 * @rules: the rule set that decides on packets, NULL = none; written under rc_net.control
 * @account: per CPU
 * @expired: see RINGCAP_A_EXPIRED
 * @rules_changes: counts changes of the active rules, so that a dump is marked if a change interrupted it
 * @taps: under RTNL
 * @transparent: the mode that was requested. Taps have the active mode, which is 0 for some with @transparent_fallback
 * @addressed: interfaces of its pairs may have addresses
 * @quick: quick mode was requested: it is reported, and has no effect
 * @owner: see owner.h
 * @list: in rc_net.rings
 */
struct rc_ring {
	struct rc_ring_config __rcu *config;
	struct rc_rules __rcu *rules;
	struct rc_account __percpu *account;
	atomic64_t expired;
	atomic_t rules_changes;

	char name[RINGCAP_NAME_MAX + 1];
	struct list_head list;
	struct rc_net *rc_net;
	struct list_head taps;
	bool promiscuous;
	u32 transparent;
	bool transparent_fallback;
	bool addressed;
	bool quick;
	u32 owner;
	u64 generation;
	struct proc_dir_entry *proc;
};

struct rc_ring *rc_ring_find(const struct rc_net *rc_net, const char *name);

/* The configuration that packets see. Under rc_net.control. */
const struct rc_ring_config *rc_ring_config(const struct rc_ring *ring);

#endif /* RC_RING_H */
