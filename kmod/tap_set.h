/* SPDX-License-Identifier: GPL-2.0-only */
/* Adding, changing and removing a ring's taps. */
#ifndef RC_TAP_SET_H
#define RC_TAP_SET_H

#include <linux/types.h>

struct list_head;
struct net_device;
struct netlink_ext_ack;
struct rc_ring;
struct rc_tap;
struct rc_tap_spec;

/* Taps that follow their devices, of all namespaces. Under RTNL. */
extern struct list_head rc_tap_followers;

/*
 * All under RTNL. A new tap gets packets once it is added and its direction is set. rc_driver_hook_mode determines
 * @mode.
 */
struct net_device *rc_tap_device(const struct rc_ring *ring, const struct rc_tap_spec *spec,
				 struct netlink_ext_ack *extack);
struct rc_tap *rc_tap_create(struct rc_ring *ring, const struct rc_tap_spec *spec, struct net_device *dev, u32 mode,
			     struct netlink_ext_ack *extack);
void rc_tap_commit_mode(struct rc_tap *tap);
void rc_tap_set_follows(struct rc_tap *tap, bool follows);

void rc_tap_set_direction(struct rc_tap *tap, u32 direction);
int rc_tap_set_promiscuous(struct rc_tap *tap, bool promiscuous);

/*
 * Prepares to take only the receive queues of @spec. The commit, which cannot fail, activates this. The abandon
 * discards it.
 */
int rc_tap_prepare_rx_queues(struct rc_tap *tap, const struct rc_tap_spec *spec, struct netlink_ext_ack *extack);
void rc_tap_commit_rx_queues(struct rc_tap *tap);
void rc_tap_abandon_rx_queues(struct rc_tap *tap);

/* Frees a tap that was not added. */
void rc_tap_free(struct rc_tap *tap);
void rc_tap_add(struct rc_tap *tap);

/* Removes and frees @taps. When this returns, they get no packets any more. */
void rc_tap_remove_all(struct list_head *taps);

#endif /* RC_TAP_SET_H */
