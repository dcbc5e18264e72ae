// SPDX-License-Identifier: GPL-2.0-only

#include "tap.h"

#include <linux/netdevice.h>

#include "net.h"
#include "ring.h"

bool rc_tap_is_away(const struct rc_tap *tap)
{
	return !net_eq(dev_net(tap->packet_type.dev), tap->ring->rc_net->net);
}

const char *rc_tap_direction(u32 direction)
{
	static const char *const names[] = {
		[RINGCAP_DIRECTION_RX] = "rx",
		[RINGCAP_DIRECTION_TX] = "tx",
		[RINGCAP_DIRECTION_BOTH] = "both",
	};

	return names[direction];
}
