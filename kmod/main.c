// SPDX-License-Identifier: GPL-2.0-only

#include <linux/init.h>
#include <linux/module.h>

#include "chardev.h"
#include "defrag.h"
#include "device.h"
#include "egress.h"
#include "netlink.h"
#include "netns.h"
#include "publish.h"
#include "rules.h"
#include "scratch.h"
#include "socket.h"
#include "version.h"
#include "worker.h"

static int __init rc_module_init(void)
{
	int err;

	rc_scratch_module_init();
	err = rc_worker_module_init();
	if (err)
		goto fail_worker;
	err = rc_publish_init();
	if (err)
		goto fail_publish;
	err = rc_chardev_module_init();
	if (err)
		goto fail_chardev;
	err = rc_egress_module_init();
	if (err)
		goto fail_egress;
	err = rc_rules_module_init();
	if (err)
		goto fail_rules;
	err = rc_defrag_module_init();
	if (err)
		goto fail_defrag;
	err = rc_netns_module_init();
	if (err)
		goto fail_netns;
	err = rc_device_module_init();
	if (err)
		goto fail_device;
	err = rc_socket_module_init();
	if (err)
		goto fail_socket;
	err = rc_netlink_module_init();
	if (err)
		goto fail_netlink;
	pr_info("ringcap %s loaded, ABI %u\n", RC_VERSION, RINGCAP_ABI);
	return 0;

fail_netlink:
	rc_socket_module_exit();
fail_socket:
	rc_device_module_exit();
fail_device:
	rc_netns_module_exit();
fail_netns:
	rc_defrag_module_exit();
fail_defrag:
	rc_rules_module_exit();
fail_rules:
	rc_egress_module_exit();
fail_egress:
	rc_chardev_module_exit();
fail_chardev:
	rc_publish_exit();
fail_publish:
	rc_worker_module_exit();
fail_worker:
	return err;
}

/* No file is open here: an open file holds the module. */
static void __exit rc_module_exit(void)
{
	rc_netlink_module_exit();
	rc_socket_module_exit();
	rc_device_module_exit();
	rc_netns_module_exit();
	rc_defrag_module_exit();
	rc_rules_module_exit();
	rc_egress_module_exit();
	rc_chardev_module_exit();
	rc_publish_exit();
	rc_worker_module_exit();
}

module_init(rc_module_init);
module_exit(rc_module_exit);
MODULE_DESCRIPTION("Packet capture into mapped rings");
MODULE_AUTHOR("The ringcap authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(RC_VERSION);
/* No MODULE_ALIAS_GENL_FAMILY: with it, any user could have the module loaded by asking for the netlink family. */
