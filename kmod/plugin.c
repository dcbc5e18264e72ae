// SPDX-License-Identifier: GPL-2.0-only

#include "plugin.h"

#include <linux/bpf.h>
#include <linux/export.h>
#include <linux/filter.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <net/netlink.h>

#include "account.h"
#include "compat/compat.h"
#include "packet.h"
#include "view.h"

/* ---- registered plugins ---- */

static LIST_HEAD(rc_plugin_list);
static DEFINE_MUTEX(rc_plugin_lock);	/* protects the list; taken last */

static struct ringcap_plugin *rc_plugin_find(const char *name)
{
	struct ringcap_plugin *plugin;

	lockdep_assert_held(&rc_plugin_lock);
	list_for_each_entry(plugin, &rc_plugin_list, list)
		if (!strcmp(plugin->name, name))
			return plugin;
	return NULL;
}

static bool rc_plugin_good_name(const char *name)
{
	size_t len = name ? strlen(name) : 0;

	return len && len <= RINGCAP_PLUGIN_NAME_MAX && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

int __ringcap_plugin_register(struct ringcap_plugin *plugin, struct module *owner)
{
	int err = 0;

	if (!rc_plugin_good_name(plugin->name) || !plugin->create || !plugin->destroy || !plugin->filter)
		return -EINVAL;
	mutex_lock(&rc_plugin_lock);
	if (rc_plugin_find(plugin->name)) {
		err = -EEXIST;
	} else {
		plugin->owner = owner;
		list_add_tail(&plugin->list, &rc_plugin_list);
	}
	mutex_unlock(&rc_plugin_lock);
	return err;
}
EXPORT_SYMBOL_GPL(__ringcap_plugin_register);

void ringcap_plugin_unregister(struct ringcap_plugin *plugin)
{
	mutex_lock(&rc_plugin_lock);
	list_del(&plugin->list);
	mutex_unlock(&rc_plugin_lock);
}
EXPORT_SYMBOL_GPL(ringcap_plugin_unregister);

void ringcap_plugin_refuse(struct netlink_ext_ack *extack, const char *format, ...)
{
	char text[80];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	rc_compat_set_err_msg(extack, text);
}
EXPORT_SYMBOL_GPL(ringcap_plugin_refuse);

/* The plugin with this name, with its module held; NULL = there is none, or it is being unregistered. */
static struct ringcap_plugin *rc_plugin_get(const char *name)
{
	struct ringcap_plugin *plugin;

	mutex_lock(&rc_plugin_lock);
	plugin = rc_plugin_find(name);
	if (plugin && !try_module_get(plugin->owner))
		plugin = NULL;
	mutex_unlock(&rc_plugin_lock);
	return plugin;
}

/* ---- a ring's plugins ---- */

static const struct nla_policy rc_plugin_policy[RINGCAP_A_MAX + 1] = {
	[RINGCAP_A_PLUGIN_NAME] = { .type = NLA_NUL_STRING, .len = RINGCAP_PLUGIN_NAME_MAX },
	[RINGCAP_A_PLUGIN_FD] = { .type = NLA_U32 },
	[RINGCAP_A_PLUGIN_CONFIG] = { .type = NLA_BINARY, .len = RINGCAP_PLUGIN_CONFIG_MAX },
};

static int rc_plugin_use_module(struct rc_plugin_use *use, const struct nlattr *name, const struct nlattr *config,
				struct netlink_ext_ack *extack)
{
	struct ringcap_plugin *plugin = rc_plugin_get(nla_data(name));
	void *instance;

	if (!plugin) {
		NL_SET_ERR_MSG_ATTR(extack, name,
				    "RINGCAP_A_PLUGIN_NAME: there is no plugin of this name: load the module that brings it (ringcap_dns, ringcap_http)");
		return -ENOENT;
	}
	instance = plugin->create(config ? nla_data(config) : NULL, config ? nla_len(config) : 0, extack);
	if (IS_ERR(instance)) {
		if (config)
			NL_SET_BAD_ATTR(extack, config);
		module_put(plugin->owner);
		return PTR_ERR(instance);
	}
	use->plugin = plugin;
	use->instance = instance;
	return 0;
}

static int rc_plugin_use_program(struct rc_plugin_use *use, const struct nlattr *fd, const struct nlattr *config,
				 struct netlink_ext_ack *extack)
{
	struct bpf_prog *prog;

	if (config) {
		NL_SET_ERR_MSG_ATTR(extack, config,
				    "RINGCAP_A_PLUGIN_CONFIG: an eBPF program has no configuration but its maps");
		return -EINVAL;
	}
	prog = bpf_prog_get_type_dev(nla_get_u32(fd), BPF_PROG_TYPE_SOCKET_FILTER, false);
	if (IS_ERR(prog)) {
		NL_SET_ERR_MSG_ATTR(extack, fd,
				    "RINGCAP_A_PLUGIN_FD: not a descriptor of a BPF_PROG_TYPE_SOCKET_FILTER program in the process that asks");
		return PTR_ERR(prog);
	}
	use->prog = prog;
	return 0;
}

static int rc_plugin_use_create(struct rc_plugin_use *use, const struct nlattr *nest, struct netlink_ext_ack *extack)
{
	struct nlattr **in;
	int err;

	/* Too large for the stack. */
	in = kcalloc(RINGCAP_A_MAX + 1, sizeof(*in), GFP_KERNEL);
	if (!in)
		return -ENOMEM;
	err = nla_parse_nested(in, RINGCAP_A_MAX, nest, rc_plugin_policy, extack);
	if (!err && !in[RINGCAP_A_PLUGIN_NAME] == !in[RINGCAP_A_PLUGIN_FD]) {
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "RINGCAP_A_PLUGIN: needs either RINGCAP_A_PLUGIN_NAME or RINGCAP_A_PLUGIN_FD");
		err = -EINVAL;
	}
	if (!err && in[RINGCAP_A_PLUGIN_NAME])
		err = rc_plugin_use_module(use, in[RINGCAP_A_PLUGIN_NAME], in[RINGCAP_A_PLUGIN_CONFIG], extack);
	else if (!err)
		err = rc_plugin_use_program(use, in[RINGCAP_A_PLUGIN_FD], in[RINGCAP_A_PLUGIN_CONFIG], extack);
	kfree(in);
	return err;
}

static void rc_plugin_use_destroy(struct rc_plugin_use *use)
{
	if (use->prog) {
		bpf_prog_put(use->prog);
		return;
	}
	use->plugin->destroy(use->instance);
	module_put(use->plugin->owner);
}

struct rc_plugins *rc_plugins_create(const struct nlattr *const *nests, u32 nr, struct netlink_ext_ack *extack)
{
	struct rc_plugins *plugins = kzalloc(sizeof(*plugins), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!plugins)
		return ERR_PTR(-ENOMEM);
	plugins->account = alloc_percpu_gfp(struct rc_plugin_account, GFP_KERNEL_ACCOUNT);
	if (!plugins->account)
		goto fail;
	while (plugins->nr < nr) {
		struct rc_plugin_use *use = &plugins->uses[plugins->nr];

		err = rc_plugin_use_create(use, nests[plugins->nr], extack);
		if (err)
			goto fail;
		plugins->need_view |= !use->prog;
		plugins->has_program |= !!use->prog;
		plugins->nr++;
	}
	return plugins;
fail:
	rc_plugins_free(plugins);
	return ERR_PTR(err);
}

void rc_plugins_free(struct rc_plugins *plugins)
{
	if (!plugins)
		return;
	while (plugins->nr)
		rc_plugin_use_destroy(&plugins->uses[--plugins->nr]);
	free_percpu(plugins->account);
	kfree(plugins);
}

/*
 * A program sees what a socket filter of a raw packet socket sees. Data starts at the MAC header, and a tag that was
 * stripped is in the skb's fields. Changes that it makes to the skb's control block are undone: others see the skb
 * after us.
 */
static bool rc_plugin_use_pass(const struct rc_plugin_use *use, struct sk_buff *skb, const struct ringcap_packet *view)
{
	if (use->prog)
		return bpf_prog_run_save_cb(use->prog, skb);
	return use->plugin->filter(use->instance, view);
}

bool rc_plugins_pass(const struct rc_plugins *plugins, struct rc_packet *pkt)
{
	struct rc_plugin_account *account = this_cpu_ptr(plugins->account);
	struct ringcap_packet view rc_uninitialized;
	u32 i;

	if (plugins->need_view)
		rc_view_init(&view, pkt);
	for (i = 0; i < plugins->nr; i++) {
		if (!rc_plugin_use_pass(&plugins->uses[i], pkt->skb, &view)) {
			rc_account_add(account->filtered[i], 1);
			return false;
		}
	}
	return true;
}

/* ---- shown ---- */

static u64 rc_plugins_filtered(const struct rc_plugins *plugins, u32 i)
{
	unsigned int cpu;
	u64 sum = 0;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(plugins->account, cpu)->filtered[i]);
	return sum;
}

int rc_plugins_put(struct sk_buff *msg, const struct rc_plugins *plugins)
{
	u32 i;

	for (i = 0; i < plugins->nr; i++) {
		const struct rc_plugin_use *use = &plugins->uses[i];
		struct nlattr *nest = nla_nest_start(msg, RINGCAP_A_PLUGIN);

		if (!nest || (use->plugin && nla_put_string(msg, RINGCAP_A_PLUGIN_NAME, use->plugin->name)) ||
		    (use->prog && nla_put_u32(msg, RINGCAP_A_PLUGIN_PROG_ID, use->prog->aux->id)) ||
		    nla_put_u64_64bit(msg, RINGCAP_A_PLUGIN_FILTERED, rc_plugins_filtered(plugins, i), RINGCAP_A_PAD))
			return -EMSGSIZE;
		nla_nest_end(msg, nest);
	}
	return 0;
}

void rc_plugins_show(struct seq_file *m, const struct rc_plugins *plugins)
{
	u32 i;

	for (i = 0; i < plugins->nr; i++) {
		const struct rc_plugin_use *use = &plugins->uses[i];

		if (use->plugin)
			seq_printf(m, "Plugin: %s", use->plugin->name);
		else
			seq_printf(m, "Plugin: eBPF program %u", use->prog->aux->id);
		seq_printf(m, ", filtered %llu\n", rc_plugins_filtered(plugins, i));
	}
}
