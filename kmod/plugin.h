/* SPDX-License-Identifier: GPL-2.0-only */
/* Plugins in use, and eBPF programs that take a plugin's place. linux/ringcap_plugin.h is the plugins' interface. */
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

/* One CPU's counts of packets that did not pass, by plugin. */
struct rc_plugin_account {
	u64 filtered[RINGCAP_PLUGINS_MAX];
};

/**
 * struct rc_plugins - a ring's plugins, in their order; never changed, packets see it under RCU
 * @need_view: some are functions of modules
 * @has_program: some are eBPF programs, which may read all of an skb
 * @account: per CPU
 */
struct rc_plugins {
	u32 nr;
	bool need_view;
	bool has_program;
	struct rc_plugin_use uses[RINGCAP_PLUGINS_MAX];
	struct rc_plugin_account __percpu *account;
};

/*
 * Creates plugins from @nr nests RINGCAP_A_PLUGIN. Returns an ERR_PTR and a reason on failure. File descriptors are
 * those of the calling process.
 */
struct rc_plugins *rc_plugins_create(const struct nlattr *const *nests, u32 nr, struct netlink_ext_ack *extack);

/* Does nothing for NULL. No packet sees the plugins any more. May sleep. */
void rc_plugins_free(struct rc_plugins *plugins);

/* Whether all of them let the packet pass. */
bool rc_plugins_pass(const struct rc_plugins *plugins, struct rc_packet *pkt);

/* Puts the nests RINGCAP_A_PLUGIN. */
int rc_plugins_put(struct sk_buff *msg, const struct rc_plugins *plugins);

/* Human-readable lines. Under RCU. */
void rc_plugins_show(struct seq_file *m, const struct rc_plugins *plugins);

#endif /* RC_PLUGIN_H */
