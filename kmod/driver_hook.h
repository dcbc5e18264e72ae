/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hook in capture-aware drivers: taps of transparent modes 1 and 2 get received packets from the driver. The
 * packets come through ringcap_driver.ko, which is looked up when the first such tap is made. A device's taps form a
 * list. ringcap_driver.ko has the first tap of the list.
 */
#ifndef RC_DRIVER_HOOK_H
#define RC_DRIVER_HOOK_H

#include <linux/types.h>

struct net_device;
struct netlink_ext_ack;
struct nlattr;
struct rc_tap;

/* All under RTNL. */

/* RINGCAP_OFFERS_* of the device's driver, 0 = it is not capture-aware. */
unsigned int rc_driver_hook_offers(const struct net_device *dev);

/*
 * The transparent mode of a tap on @dev if its ring requests @mode. If the driver is not capture-aware, it is 0 with
 * @fallback, or else an error with a message in @extack.
 */
int rc_driver_hook_mode(const struct net_device *dev, u32 mode, bool fallback, const struct nlattr *attr,
			struct netlink_ext_ack *extack);

/* ringcap_driver.ko stays loaded from hold to release, while a tap is on a device with a capture-aware driver. */
void rc_driver_hook_hold(void);
void rc_driver_hook_release(void);

/* From add on, @tap gets received packets. After remove, it may get them for another RCU grace period. */
void rc_driver_hook_add(struct rc_tap *tap);
void rc_driver_hook_remove(struct rc_tap *tap);

/* To be called after the mode of @tap, which was added, has changed. */
void rc_driver_hook_update(const struct rc_tap *tap);

#endif /* RC_DRIVER_HOOK_H */
