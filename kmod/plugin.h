/* SPDX-License-Identifier: GPL-2.0-only */
/* Plugins in use: what linux/ringcap_plugin.h is for plugins, and eBPF programs in their place. */
#ifndef RC_PLUGIN_H
#define RC_PLUGIN_H

#include <linux/percpu.h>
#include <linux/ringcap.h>
#include <linux/ringcap_plugin.h>

struct bpf_prog;
struct netlink_ext_ack;
struct nlattr;
struct rc_packet;
struct seq_file;

/**
 * struct rc_plugin_use - a plugin's or a program's place in a ring
 * @plugin: with its @instance, and its module held; NULL with a program
 * @prog: a BPF_PROG_TYPE_SOCKET_FILTER program, held; else NULL
 */
struct rc_plugin_use {
	struct ringcap_plugin *plugin;
	void *instance;
	struct bpf_prog *prog;
};

/* One CPU's counts of what did not pass, by place. */
struct rc_plugin_account {
	u64 filtered[RINGCAP_PLUGINS_MAX];
};

/**
 * struct rc_plugins - a ring's plugins, in their order; never changed, packets see it under RCU
 * @need_view: some are functions of modules
 * @has_program: some are eBPF programs, which may look into all of an skb
 * @account: per CPU
 */
struct rc_plugins {
	u32 nr;
	bool need_view;
	bool has_program;
	struct rc_plugin_use uses[RINGCAP_PLUGINS_MAX];
	struct rc_plugin_account __percpu *account;
};

/* From @nr nests RINGCAP_A_PLUGIN, or an ERR_PTR and a reason. File descriptors are the calling process's. */
struct rc_plugins *rc_plugins_create(const struct nlattr *const *nests, u32 nr, struct netlink_ext_ack *extack);

/* NULL is none. No packet sees them any more. May sleep. */
void rc_plugins_free(struct rc_plugins *plugins);

/* Whether all of them let the packet pass. */
bool rc_plugins_pass(const struct rc_plugins *plugins, struct rc_packet *pkt);

/* Puts the nests RINGCAP_A_PLUGIN. */
int rc_plugins_put(struct sk_buff *msg, const struct rc_plugins *plugins);

/* Lines for people. Under RCU. */
void rc_plugins_show(struct seq_file *m, const struct rc_plugins *plugins);

#endif /* RC_PLUGIN_H */
