/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests: what a netlink message asks for, checked. Each refusal names the attribute and the reason in the extended
 * acknowledgement.
 */
#ifndef RC_REQUEST_H
#define RC_REQUEST_H

#include <linux/ringcap.h>
#include <net/genetlink.h>

struct rc_cluster_spec;
struct rc_ring_spec;

/* Refuses @attr, or its absence. */
#define rc_request_refuse(extack, attr, err, message) ({	\
	NL_SET_ERR_MSG(extack, message);			\
	NL_SET_BAD_ATTR(extack, attr);				\
	(err);							\
})

static inline u32 rc_request_u32(const struct genl_info *info, int type, u32 absent)
{
	return info->attrs[type] ? nla_get_u32(info->attrs[type]) : absent;
}

/* For attributes that are 0 or 1. */
#define rc_request_flag_or(info, type, absent, flag) ({							\
	u32 rc_value = rc_request_u32(info, type, absent);						\
	*(flag) = rc_value;										\
	rc_value > 1 ? rc_request_refuse((info)->extack, (info)->attrs[type], -EINVAL, #type ": 0 or 1") : 0;	\
})

#define rc_request_flag(info, type, flag) rc_request_flag_or(info, type, 0, flag)

/* For the whole family: an attribute means the same in each command. */
extern const struct nla_policy rc_request_policy[RINGCAP_A_MAX + 1];

/* Refuses @attr, or its absence. */
#define rc_request_refuse(extack, attr, err, message) ({	\
	NL_SET_ERR_MSG(extack, message);			\
	NL_SET_BAD_ATTR(extack, attr);				\
	(err);							\
})

/* Copies RINGCAP_A_NAME, which must be a valid name, to @name: RINGCAP_NAME_MAX + 1 bytes, zeroed behind it. */
int rc_request_name(const struct nlattr *attr, char *name, struct netlink_ext_ack *extack);

int rc_request_cluster(const struct genl_info *info, struct rc_cluster_spec *spec);
int rc_request_ring(const struct sk_buff *skb, const struct genl_info *info, struct rc_ring_spec *spec);

#endif /* RC_REQUEST_H */
