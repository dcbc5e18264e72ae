/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /proc/net/ringcap/dev/<interface>: who taps it, and how. Entries follow the taps and the interfaces' names: at once
 * when a ring is changed, soon when an interface is. They are removed outside of RTNL, which their readers take.
 */
#ifndef RC_PROC_DEVICE_H
#define RC_PROC_DEVICE_H

#include <linux/types.h>

struct rc_net;

/* Whether there was memory. Remove also what was not added. */
bool rc_proc_devices_add(struct rc_net *rc_net);

/* When no tap is left. */
void rc_proc_devices_remove(struct rc_net *rc_net);

/* After taps have changed. Not under RTNL. */
void rc_proc_devices_follow(struct rc_net *rc_net);

/* The same, in a while. */
void rc_proc_devices_follow_later(struct rc_net *rc_net);

#endif /* RC_PROC_DEVICE_H */
