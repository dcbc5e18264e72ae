// SPDX-License-Identifier: GPL-2.0-only
#include <linux/netlink.h>

void probe(struct netlink_ext_ack *extack, const char *text);

void probe(struct netlink_ext_ack *extack, const char *text)
{
	NL_SET_ERR_MSG_FMT(extack, "%s", text);
}
