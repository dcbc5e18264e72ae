/* SPDX-License-Identifier: GPL-2.0-only */
/* The generic netlink family. Its manual is include/uapi/linux/ringcap.h. */
#ifndef RC_NETLINK_H
#define RC_NETLINK_H

int rc_netlink_module_init(void);
void rc_netlink_module_exit(void);

#endif /* RC_NETLINK_H */
