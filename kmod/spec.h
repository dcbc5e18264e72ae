/* SPDX-License-Identifier: GPL-2.0-only */
/* Clusters, taps and rings as their configurers want them. */
#ifndef RC_SPEC_H
#define RC_SPEC_H

#include <linux/ringcap.h>

#include "cluster.h"
#include "grant.h"
#include "queue.h"

struct nlattr;

/* A cluster as its configurer wants it. */
struct rc_cluster_spec {
	char name[RINGCAP_NAME_MAX + 1];
	struct rc_queue_shape shape;
	u32 balance;
	u32 watermark;
	u32 timeout_us;
	bool metadata;
	struct rc_balance_options options;
	u8 open;
	u32 hung_ms;
	u32 shunt_quota;
	u64 generation;
	u32 owner;
	umode_t mode;
	bool has_mode;
	u32 nr_inject;
	struct rc_grant_spec inject[RINGCAP_INJECT_MAX];
	bool has_key;
	u8 key[RINGCAP_KEY_LEN];
};

/* A tap as its configurer wants it. @peer: 0 = none. @attr is the attribute of the request, @rx_queues may be NULL. */
struct rc_tap_spec {
	u32 ifindex;
	u32 direction;
	u32 peer;
	bool follows;
	const struct nlattr *rx_queues;
	const struct nlattr *attr;
};

/* A ring as its configurer wants it. @has_pairs: all taps have a peer, else none has. Its pointers point into the request. */
struct rc_ring_spec {
	char name[RINGCAP_NAME_MAX + 1];
	u32 nr_taps;
	struct rc_tap_spec taps[RINGCAP_TAPS_MAX];
	u32 nr_outputs;
	const struct nlattr *outputs[RINGCAP_OUTPUTS_MAX];
	const struct nlattr *filter;
	const struct nlattr *vlans;
	const struct nlattr *sample;
	const struct nlattr *sample_by;
	u32 nr_plugins;
	const struct nlattr *plugins[RINGCAP_PLUGINS_MAX];
	u32 snaplen;
	bool defrag;
	bool promiscuous;
	bool hwtstamp;
	u32 transparent;
	bool transparent_fallback;
	bool quick;
	bool has_pairs;
	bool addressed;
	u32 owner;
	u64 generation;
};

#endif /* RC_SPEC_H */
