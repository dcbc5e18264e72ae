/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pairs: two interfaces between which a ring stands (IN LINE in linux/ringcap.h). A tap with a peer takes the packets
 * of its device away from the stack by the device's rx_handler.
 */
#ifndef RC_PAIR_H
#define RC_PAIR_H

#include <linux/types.h>

struct net_device;
struct netdev_notifier_info;
struct netlink_ext_ack;
struct rc_ring;
struct rc_tap;
struct rc_tap_spec;

/* All under RTNL. */

/* Whether @dev, an interface of @ring's namespace, can be in a pair as @spec wants it. */
int rc_pair_check(const struct rc_ring *ring, const struct rc_tap_spec *spec, const struct net_device *dev,
		  bool addressed, struct netlink_ext_ack *extack);

/* The same for what is about to be stacked upon an interface, of NETDEV_PRECHANGEUPPER. */
int rc_pair_check_upper(const struct netdev_notifier_info *info);

/* Whether @tap has the peer of @spec, or neither has one. */
bool rc_pair_is(const struct rc_tap *tap, const struct rc_tap_spec *spec);

/* Gives a new @tap its peer. */
int rc_pair_open(struct rc_tap *tap, const struct rc_tap_spec *spec, struct netlink_ext_ack *extack);

/* From hook on, the tap gets all packets that its device receives. After unhook, it gets none. */
void rc_pair_hook(struct rc_tap *tap);
void rc_pair_unhook(struct rc_tap *tap);

#endif /* RC_PAIR_H */
