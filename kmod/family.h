/* SPDX-License-Identifier: GPL-2.0-only */
/* The generic netlink family of all answers. netlink.c defines it, with all commands. */
#ifndef RC_FAMILY_H
#define RC_FAMILY_H

#include <net/genetlink.h>

extern struct genl_family rc_netlink_family;

#endif /* RC_FAMILY_H */
