// SPDX-License-Identifier: GPL-2.0-only
/* The plugin "http": lets HTTP/1 requests pass that are for certain hosts or URIs; see http.h. */

#include <linux/err.h>
#include <linux/in.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/percpu.h>
#include <linux/ringcap_plugin.h>
#include <linux/slab.h>

#include "http.h"

/* For requests in pieces. */
struct rc_http_scratch {
	u8 bytes[RC_HTTP_LOOK];
};

static struct rc_http_scratch __percpu *rc_http_scratch;

static void rc_http_destroy(void *instance)
{
	struct rc_http *http = instance;

	kvfree(http->hosts.list);
	kfree(http);
}

static void *rc_http_create(const void *config, u32 len, struct netlink_ext_ack *extack)
{
	struct rc_http *http = kzalloc(sizeof(*http), GFP_KERNEL_ACCOUNT);
	u32 lines, line, size = rc_names_size(config, len, &lines);
	const char *wrong;
	void *block;

	if (!http)
		return ERR_PTR(-ENOMEM);
	block = kvmalloc(size, GFP_KERNEL_ACCOUNT);
	if (!block) {
		kfree(http);
		return ERR_PTR(-ENOMEM);
	}
	wrong = rc_http_configure(http, config, len, block, &line);
	if (!wrong)
		return http;
	rc_http_destroy(http);
	ringcap_plugin_refuse(extack, "http: line %u: %s", line, wrong);
	return ERR_PTR(-EINVAL);
}

static bool rc_http_filter(void *instance, const struct ringcap_packet *packet)
{
	u32 len = min_t(u32, packet->payload_end - packet->payload_off, RC_HTTP_LOOK);
	const struct rc_http *http = instance;
	struct rc_http_request request;
	const u8 *bytes;

	if (packet->l4_proto != IPPROTO_TCP || !len || !rc_ports_have(&http->ports, packet->dport))
		return false;
	bytes = ringcap_packet_bytes(packet, packet->payload_off, len, this_cpu_ptr(rc_http_scratch));
	return bytes && rc_http_read(bytes, len, &request) && rc_http_wants(http, &request);
}

static struct ringcap_plugin rc_http_plugin = {
	.name = "http",
	.create = rc_http_create,
	.destroy = rc_http_destroy,
	.filter = rc_http_filter,
};

static int __init rc_http_init(void)
{
	int err;

	rc_http_scratch = alloc_percpu(struct rc_http_scratch);
	if (!rc_http_scratch)
		return -ENOMEM;
	err = ringcap_plugin_register(&rc_http_plugin);
	if (err)
		free_percpu(rc_http_scratch);
	return err;
}

static void __exit rc_http_exit(void)
{
	ringcap_plugin_unregister(&rc_http_plugin);
	free_percpu(rc_http_scratch);
}

module_init(rc_http_init);
module_exit(rc_http_exit);
MODULE_DESCRIPTION("ringcap plugin: HTTP requests by host and URI");
MODULE_AUTHOR("The ringcap authors");
MODULE_LICENSE("GPL");
