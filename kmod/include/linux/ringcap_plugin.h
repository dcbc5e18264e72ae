/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plugins of ringcap: filters that other modules bring, by name. A ring names them with RINGCAP_A_PLUGIN, and asks them
 * about each packet that its other filters let through; see THE WAY OF A PACKET in uapi/linux/ringcap.h.
 *
 *	static struct ringcap_plugin example = {
 *		.name = "example", .create = example_create, .destroy = example_destroy, .filter = example_filter,
 *	};
 *
 *	module_init: return ringcap_plugin_register(&example);
 *	module_exit: ringcap_plugin_unregister(&example);
 *
 * Each use by a ring is an instance, and holds the plugin's module: it cannot be unloaded while a ring uses it. A
 * plugin that is not used may go any time; rings can't name it any more then.
 */
#ifndef _LINUX_RINGCAP_PLUGIN_H
#define _LINUX_RINGCAP_PLUGIN_H

#include <linux/list.h>
#include <linux/types.h>

struct module;
struct netlink_ext_ack;
struct sk_buff;

/**
 * struct ringcap_packet - what a plugin is shown of a packet
 * @len: bytes on the wire
 * @payload_off, @payload_end: where its payload is, as PAYLOAD PATTERNS in uapi/linux/ringcap.h explains
 * @l3_off, @l4_off, @l3_proto, @l4_proto: as in struct ringcap_slot
 * @sport, @dport: host order; 0 where there are none, as in fragments
 * @fragment: an IP fragment, first or later
 *
 * Offsets are those on the wire: a VLAN tag that the device took off is in its place. Good until the filter returns.
 */
struct ringcap_packet {
	u32 len;
	u32 payload_off;
	u32 payload_end;
	u16 l3_off;
	u16 l4_off;
	u16 l3_proto;
	u16 sport;
	u16 dport;
	u8 l4_proto;
	bool fragment;

	/* private */
	const struct sk_buff *skb;
	u16 vlan_tpid;
	u16 vlan_tci;
};

/*
 * @len bytes at @off, or NULL if the packet does not have them: in the packet itself if they are in a row, else copied
 * to @buffer, which has room for them. The caller must not write to them.
 */
const void *ringcap_packet_bytes(const struct ringcap_packet *packet, u32 off, u32 len, void *buffer);

/**
 * struct ringcap_plugin - a filter for rings
 * @name: 1 to 31 of a-z, 0-9 and -; no other plugin's
 * @owner: set by ringcap_plugin_register()
 * @create: an instance from the @len bytes of RINGCAP_A_PLUGIN_CONFIG (0 without one), or an ERR_PTR and a reason by
 *	NL_SET_ERR_MSG() or ringcap_plugin_refuse(). Untrusted input: an administrator of a network namespace may
 *	configure rings. May sleep
 * @destroy: the end of an instance, which no packet sees any more. May sleep
 * @filter: whether a packet passes. Bottom halves off, under RCU, on several CPUs at once
 * @list: private
 */
struct ringcap_plugin {
	const char *name;
	struct module *owner;
	void *(*create)(const void *config, u32 len, struct netlink_ext_ack *extack);
	void (*destroy)(void *instance);
	bool (*filter)(void *instance, const struct ringcap_packet *packet);
	struct list_head list;
};

/* 0; -EEXIST when there is one of that name, -EINVAL for a plugin without a good name and all functions. */
int __ringcap_plugin_register(struct ringcap_plugin *plugin, struct module *owner);
#define ringcap_plugin_register(plugin) __ringcap_plugin_register(plugin, THIS_MODULE)

void ringcap_plugin_unregister(struct ringcap_plugin *plugin);

/* Gives a reason that has to be put together, for create. At most about 70 bytes of it are sure to arrive. */
__printf(2, 3) void ringcap_plugin_refuse(struct netlink_ext_ack *extack, const char *format, ...);

#endif /* _LINUX_RINGCAP_PLUGIN_H */
