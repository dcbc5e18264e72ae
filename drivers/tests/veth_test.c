// SPDX-License-Identifier: GPL-2.0-only
/* Transparent modes on veth_ringcap, which replaces the stock driver. There is no bus, and the far end is aware too. */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"
#include "mode.h"
#include "traffic.h"

/* With GRO, the driver polls. Without it, packets come by the stack's backlog. */
static void set_gro(const char *name, bool on)
{
	struct ethtool_value value = { .cmd = ETHTOOL_SGRO, .data = on };
	struct ifreq request = { .ifr_data = (void *)&value };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	RT_CHECK(fd >= 0 && !ioctl(fd, SIOCETHTOOL, &request), "%s: %m", name);
	close(fd);
}

static void try_veth(bool gro)
{
	rt_veth_create("peer", "nic");
	set_gro("nic", gro);
	rt_mode_try_all("veth_ringcap", 1);
}

RT_CASE(modes_veth)
{
	try_veth(false);
}

RT_CASE(modes_veth_polled)
{
	try_veth(true);
}
