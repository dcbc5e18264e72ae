/* SPDX-License-Identifier: GPL-2.0-only */
/* The generic netlink family, of which answers are. It is defined in netlink.c, with all commands. */
#ifndef RC_FAMILY_H
#define RC_FAMILY_H

#include <net/genetlink.h>

extern struct genl_family rc_netlink_family;

#endif /* RC_FAMILY_H */
