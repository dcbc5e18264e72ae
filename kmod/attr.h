/* SPDX-License-Identifier: GPL-2.0-only */
/* Netlink attributes: reads those of requests, refuses them by name, and puts those of answers. */
#ifndef RC_ATTR_H
#define RC_ATTR_H

#include <linux/ringcap.h>
#include <net/genetlink.h>

/* Refuses @attr, or reports that it is missing. */
#define rc_attr_refuse(extack, attr, err, message) ({	\
	NL_SET_ERR_MSG(extack, message);		\
	NL_SET_BAD_ATTR(extack, attr);			\
	(err);						\
})

static inline u32 rc_attr_u32(const struct genl_info *info, int type, u32 absent)
{
	return info->attrs[type] ? nla_get_u32(info->attrs[type]) : absent;
}

/* Reads an attribute with the value 0 or 1. */
#define rc_attr_flag_or(info, type, absent, flag) ({						\
	u32 rc_value = rc_attr_u32(info, type, absent);					\
	*(flag) = rc_value;									\
	rc_value > 1 ? rc_attr_refuse((info)->extack, (info)->attrs[type], -EINVAL, #type ": 0 or 1") : 0;	\
})

#define rc_attr_flag(info, type, flag) rc_attr_flag_or(info, type, 0, flag)

static inline int rc_attr_put_u64(struct sk_buff *msg, int type, u64 value)
{
	return nla_put_u64_64bit(msg, type, value, RINGCAP_A_PAD);
}

#endif /* RC_ATTR_H */
