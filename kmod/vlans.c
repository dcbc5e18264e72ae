// SPDX-License-Identifier: GPL-2.0-only

#include "vlans.h"

#include <linux/ringcap.h>
#include <linux/slab.h>
#include <net/netlink.h>

struct rc_vlans *rc_vlans_create(const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	const u16 *ids = nla_data(attr);
	struct rc_vlans *vlans;
	u32 i;

	if (!nla_len(attr) || nla_len(attr) % sizeof(*ids)) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "RINGCAP_A_VLANS: one or more whole 16-bit VLAN ids; leave it out to let all VLANs pass");
		return ERR_PTR(-EINVAL);
	}
	vlans = kzalloc(sizeof(*vlans), GFP_KERNEL_ACCOUNT);
	if (!vlans)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < nla_len(attr) / sizeof(*ids); i++) {
		if (ids[i] >= VLAN_VID_MASK) {
			kfree(vlans);
			NL_SET_ERR_MSG_ATTR(extack, attr,
					    "RINGCAP_A_VLANS: a VLAN id is 1 to 4094, in host byte order; 0 stands for packets without a tag");
			return ERR_PTR(-EINVAL);
		}
		set_bit(ids[i], vlans->ids);
	}
	return vlans;
}

int rc_vlans_put(struct sk_buff *msg, const struct rc_vlans *vlans)
{
	u32 nr = bitmap_weight(vlans->ids, VLAN_N_VID), id, i = 0;
	struct nlattr *attr = nla_reserve(msg, RINGCAP_A_VLANS, nr * sizeof(u16));
	u16 *at;

	if (!attr)
		return -EMSGSIZE;
	at = nla_data(attr);
	for_each_set_bit(id, vlans->ids, VLAN_N_VID)
		at[i++] = id;
	return 0;
}
