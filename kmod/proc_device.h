/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /proc/net/ringcap/dev/<interface>: which rings tap the interface, and how. Entries follow the taps and the
 * interfaces' names: at once when a ring changes, soon after when an interface does. They are removed outside of
 * RTNL, because their readers take it.
 */
#ifndef RC_PROC_DEVICE_H
#define RC_PROC_DEVICE_H

#include <linux/types.h>

struct rc_net;

/* Returns whether there was memory. Call the removal even if this fails. */
bool rc_proc_devices_add(struct rc_net *rc_net);

/* When no tap is left. */
void rc_proc_devices_remove(struct rc_net *rc_net);

/* Called after taps have changed. Not under RTNL. */
void rc_proc_devices_follow(struct rc_net *rc_net);

/* The same, with a delay. */
void rc_proc_devices_follow_later(struct rc_net *rc_net);

#endif /* RC_PROC_DEVICE_H */
