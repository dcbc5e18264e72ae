// SPDX-License-Identifier: GPL-2.0-only
#include <net/gso.h>

bool probe(const struct sk_buff *skb);
bool probe(const struct sk_buff *skb)
{
	return skb_gso_validate_mac_len(skb, 1);
}
