// SPDX-License-Identifier: GPL-2.0-only
/* The plugin "dns": lets DNS messages pass that ask for certain names; see dns.h. */

#include <linux/err.h>
#include <linux/in.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/ringcap_plugin.h>
#include <linux/slab.h>

#include "dns.h"

static void rc_dns_destroy(void *instance)
{
	struct rc_dns *dns = instance;

	kvfree(dns->names.list);
	kfree(dns);
}

static void *rc_dns_create(const void *config, u32 len, struct netlink_ext_ack *extack)
{
	struct rc_dns *dns = kzalloc(sizeof(*dns), GFP_KERNEL_ACCOUNT);
	u32 lines, line, size = rc_names_size(config, len, &lines);
	const char *wrong;
	void *block;

	if (!dns)
		return ERR_PTR(-ENOMEM);
	block = kvmalloc(size, GFP_KERNEL_ACCOUNT);
	if (!block) {
		kfree(dns);
		return ERR_PTR(-ENOMEM);
	}
	wrong = rc_dns_configure(dns, config, len, block, &line);
	if (!wrong)
		return dns;
	rc_dns_destroy(dns);
	ringcap_plugin_refuse(extack, "dns: line %u: %s", line, wrong);
	return ERR_PTR(-EINVAL);
}

static bool rc_dns_filter(void *instance, const struct ringcap_packet *packet)
{
	u32 at = packet->payload_off, left = packet->payload_end - at;
	const struct rc_dns *dns = instance;
	struct rc_dns_name name;
	u8 buffer[RC_DNS_LOOK];
	const u8 *message;

	if (!rc_ports_have(&dns->ports, packet->sport) && !rc_ports_have(&dns->ports, packet->dport))
		return false;
	if (packet->l4_proto == IPPROTO_TCP) {
		/* The message is preceded by its length. */
		if (left < 2)
			return false;
		at += 2;
		left -= 2;
	} else if (packet->l4_proto != IPPROTO_UDP) {
		return false;
	}
	left = min_t(u32, left, sizeof(buffer));
	message = ringcap_packet_bytes(packet, at, left, buffer);
	return message && rc_dns_question(message, left, &name) && rc_dns_wants(dns, &name);
}

static struct ringcap_plugin rc_dns_plugin = {
	.name = "dns",
	.create = rc_dns_create,
	.destroy = rc_dns_destroy,
	.filter = rc_dns_filter,
};

static int __init rc_dns_init(void)
{
	return ringcap_plugin_register(&rc_dns_plugin);
}

static void __exit rc_dns_exit(void)
{
	ringcap_plugin_unregister(&rc_dns_plugin);
}

module_init(rc_dns_init);
module_exit(rc_dns_exit);
MODULE_DESCRIPTION("ringcap plugin: DNS messages by the name that they ask for");
MODULE_AUTHOR("The ringcap authors");
MODULE_LICENSE("GPL");
