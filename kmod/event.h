/* SPDX-License-Identifier: GPL-2.0-only */
/* Events for processes that listen to the family's multicast group: RINGCAP_CMD_EVENT in linux/ringcap.h. */
#ifndef RC_EVENT_H
#define RC_EVENT_H

#include <linux/ringcap.h>

struct genl_family;
struct net;
struct pid;
struct rc_hold_episode;

/* From here on, events are sent to the first multicast group of @family, which is registered. */
void rc_event_start(const struct genl_family *family);

/*
 * From here on, no new event is begun. Events that are being sent hold rc_chardev_lock or RTNL: take both before the
 * family goes.
 */
void rc_event_stop(void);

/* RINGCAP_EVENT_ATTACHED or _DETACHED of queue @index of @cluster; @pid may be NULL. Under rc_chardev_lock. */
void rc_event_queue(struct net *net, const char *cluster, u32 index, struct pid *pid, enum ringcap_event event);

/* RINGCAP_EVENT_OVERFLOW; @dropped has RINGCAP_DROP_REASONS counters. Under rc_chardev_lock. */
void rc_event_overflow(struct net *net, const char *cluster, u32 index, const __u64 *dropped);

/* RINGCAP_EVENT_PAST or _BACK. Under rc_chardev_lock. */
void rc_event_past(struct net *net, const char *cluster, u32 index, enum ringcap_event event,
		   const struct rc_hold_episode *episode);

/* RINGCAP_EVENT_TAP_GONE. Under RTNL. */
void rc_event_tap_gone(struct net *net, const char *ring, u32 ifindex);

#endif /* RC_EVENT_H */
