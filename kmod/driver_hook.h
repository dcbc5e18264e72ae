/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hook in capture-aware drivers: taps of transparent modes 1 and 2 get received packets from the driver, by way of
 * ringcap_driver.ko, which is looked up when the first of them is made. A device's taps are a list that
 * ringcap_driver.ko has the first of.
 */
#ifndef RC_DRIVER_HOOK_H
#define RC_DRIVER_HOOK_H

#include <linux/types.h>

struct net_device;
struct netlink_ext_ack;
struct nlattr;
struct rc_tap;

/* All under RTNL. */

/* RINGCAP_OFFERS_* of the device's driver, 0 = it is not aware. */
unsigned int rc_driver_hook_offers(const struct net_device *dev);

/*
 * The transparent mode of a tap on @dev whose ring asks for @mode: that, 0 with @fallback where the driver is not
 * aware, or an error and why.
 */
int rc_driver_hook_mode(const struct net_device *dev, u32 mode, bool fallback, const struct nlattr *attr,
			struct netlink_ext_ack *extack);

/* While there is a tap on @dev, whose driver is aware, ringcap_driver.ko stays. */
void rc_driver_hook_hold(void);
void rc_driver_hook_release(void);

/* @tap gets what is received. After it is removed, an RCU grace period more. */
void rc_driver_hook_add(struct rc_tap *tap);
void rc_driver_hook_remove(struct rc_tap *tap);

/* After @tap, which was added, has got another mode. */
void rc_driver_hook_update(const struct rc_tap *tap);

#endif /* RC_DRIVER_HOOK_H */
