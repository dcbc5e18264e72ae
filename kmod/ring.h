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
 * @fast: the cluster that gets all packets as they come; NULL where there is a filter, another stage or cluster
 * @ruled: the cluster that gets what header rules pass; NULL where there are none, or there is more than they
 * @filter: what passes, NULL = everything
 * @has_stages: there is more to do than to filter, see stages.h
 * @hwtstamp: packets have the device's time where it took one
 * @defrag: fragments of IPv4 are put together, see defrag.h; implies @has_stages
 * @needs_skb: scratch.h is not enough
 * @snaplen: bytes
 * @outputs: clusters that get what passes; each counts this ring in its nr_rings
 * @vlans: which ones pass, NULL = all
 * @plugins: NULL = none
 * @memcg: of the process that set the ring last: charged for later allocations on the ring's behalf; held. NULL = there
 *	are none
 */
struct rc_ring_config {
	struct rc_cluster *fast;
	struct rc_cluster *ruled;
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
 * @rules: the rule set that packets are decided on by, NULL = none; written under rc_net.control
 * @account: per CPU
 * @expired: see RINGCAP_A_EXPIRED
 * @rules_changes: of the active rules, so that a dump that was interrupted by one is marked
 * @taps: under RTNL
 * @transparent: the mode that was asked for; taps have the active one, which is 0 for some with @transparent_fallback
 * @quick: quick mode was asked for: is told, and has no effect
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
	bool quick;
	u32 owner;
	u64 generation;
	struct proc_dir_entry *proc;
};

struct rc_ring *rc_ring_find(const struct rc_net *rc_net, const char *name);

/* The configuration that packets see. Under rc_net.control. */
const struct rc_ring_config *rc_ring_config(const struct rc_ring *ring);

#endif /* RC_RING_H */
