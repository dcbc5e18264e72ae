/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests: checks a netlink message and collects what it asks for. On each rejection the extended acknowledgement
 * names the attribute and the reason.
 */
#ifndef RC_REQUEST_H
#define RC_REQUEST_H

#include <linux/ringcap.h>
#include <net/genetlink.h>

struct rc_cluster_spec;
struct rc_ring_spec;

/* For the whole family: an attribute has the same meaning in each command. */
extern const struct nla_policy rc_request_policy[RINGCAP_A_MAX + 1];

/*
 * Copies RINGCAP_A_NAME, which must be a valid name, to @name. @name has RINGCAP_NAME_MAX + 1 bytes; the rest of it is
 * zeroed.
 */
int rc_request_name(const struct nlattr *attr, char *name, struct netlink_ext_ack *extack);

int rc_request_cluster(const struct genl_info *info, struct rc_cluster_spec *spec);
int rc_request_ring(const struct sk_buff *skb, const struct genl_info *info, struct rc_ring_spec *spec);

#endif /* RC_REQUEST_H */
