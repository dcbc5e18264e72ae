/* SPDX-License-Identifier: GPL-2.0-only */
/* Taps: where a ring gets its packets, one device each. */
#ifndef RC_TAP_H
#define RC_TAP_H

#include <linux/list.h>
#include <linux/netdevice.h>

struct netlink_ext_ack;
struct nlattr;
struct rc_channels;
struct rc_ring;

/* A tap as its configurer wants it; @attr is where he said so, @channels may be NULL. */
struct rc_tap_spec {
	u32 ifindex;
	u32 direction;
	const struct nlattr *channels;
	const struct nlattr *attr;
};

/**
 * struct rc_tap - a capture point
 * @packet_type: our hook on the device. No reference to the device is held: the tap goes when that does
 * @ring: whose tap it is
 * @ifindex: of the device
 * @direction: enum ringcap_direction
 * @channels: receive queues whose packets it takes, NULL = all
 * @new_channels: what it will have once the configuration that is being put in force is
 * @promiscuous: the device receives what is not addressed to it on this tap's behalf
 * @stale: not wanted any more by the configuration that is being put in force
 * @list: in rc_ring.taps, or in a list of taps to be added or removed; under RTNL
 */
struct rc_tap {
	struct packet_type packet_type;
	struct rc_ring *ring;
	u32 ifindex;
	u32 direction;
	struct rc_channels __rcu *channels;
	struct rc_channels *new_channels;
	bool promiscuous;
	bool stale;
	struct list_head list;
};

int rc_tap_module_init(void);
void rc_tap_module_exit(void);

/* All under RTNL. A new tap gets no packets before it is added. */
struct rc_tap *rc_tap_create(struct rc_ring *ring, const struct rc_tap_spec *spec, struct netlink_ext_ack *extack);
void rc_tap_set_direction(struct rc_tap *tap, u32 direction);
int rc_tap_set_promiscuous(struct rc_tap *tap, bool promiscuous);

/* Gets ready to take the receive queues of @spec only; commit, which cannot fail, makes it so, abandon forgets it. */
int rc_tap_prepare_channels(struct rc_tap *tap, const struct rc_tap_spec *spec, struct netlink_ext_ack *extack);
void rc_tap_commit_channels(struct rc_tap *tap);
void rc_tap_abandon_channels(struct rc_tap *tap);

/* Frees a tap that was not added. */
void rc_tap_free(struct rc_tap *tap);
void rc_tap_add(struct rc_tap *tap);

/* Those of @taps get no packets any more when this returns, and are freed. */
void rc_tap_remove_all(struct list_head *taps);

#endif /* RC_TAP_H */
