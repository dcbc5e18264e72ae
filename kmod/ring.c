// SPDX-License-Identifier: GPL-2.0-only

#include "ring.h"

#include <linux/rcupdate.h>

#include "net.h"

struct rc_ring *rc_ring_find(const struct rc_net *rc_net, const char *name)
{
	struct rc_ring *ring;

	list_for_each_entry(ring, &rc_net->rings, list)
		if (!strcmp(ring->name, name))
			return ring;
	return NULL;
}

const struct rc_ring_config *rc_ring_config(const struct rc_ring *ring)
{
	return rcu_dereference_protected(ring->config, rc_net_held(ring->rc_net));
}
