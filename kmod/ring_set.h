/* SPDX-License-Identifier: GPL-2.0-only */
/* RING_SET and RING_DEL: makes, changes and deletes rings. */
#ifndef RC_RING_SET_H
#define RC_RING_SET_H

struct netlink_ext_ack;
struct rc_net;
struct rc_ring;
struct rc_ring_spec;

/* Makes the ring as described, or changes nothing and reports the reason. Under rc_net.control. */
int rc_ring_set(struct rc_net *rc_net, const struct rc_ring_spec *spec, struct netlink_ext_ack *extack);

/* Under rc_net.control. */
void rc_ring_destroy(struct rc_ring *ring);

#endif /* RC_RING_SET_H */
