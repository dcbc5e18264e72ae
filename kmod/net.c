// SPDX-License-Identifier: GPL-2.0-only

#include "net.h"

#include <net/netns/generic.h>

unsigned int rc_net_id __read_mostly;

struct rc_net *rc_net(const struct net *net)
{
	return net_generic(net, rc_net_id);
}
