// SPDX-License-Identifier: GPL-2.0-only
/* Interfaces under rings come and go, change their names and their namespaces; namespaces end with rings in them. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../control.h"
#include "../link.h"

/* Ends with a ring on an interface, or with what of it could be made. */
static void rf_be_tenant(void *arg)
{
	char name[16];
	struct rt_cluster cluster = { .name = name, .lanes = 1, .lane_size = RINGCAP_LANE_SIZE_MIN };
	struct rt_ring ring = { .name = name, .outputs = { name } };
	u64 *seed = arg;

	snprintf(name, sizeof(name), "tenant-%u", rf_below(seed, 3));
	if (unshare(CLONE_NEWNET))
		return;
	rt_control_open();
	if (rt_link_add_veth("t0", "t1") || rt_cluster_set(&cluster) < 0)
		return;
	ring.taps[0] = (struct rt_tap){ if_nametoindex("t1"), RINGCAP_DIRECTION_BOTH };
	rt_ring_set(&ring);
	if (rf_one_in(seed, 3))
		rt_link_remove("t0");
}

static void rf_move_away(void)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), there = -1;

	if (here >= 0 && !unshare(CLONE_NEWNET)) {
		there = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
		RT_CHECK(!setns(here, CLONE_NEWNET), "%m");
	}
	if (there >= 0) {
		rt_link_move("q1", there);
		close(there);
	}
	close(here);
}

void rf_act_devices(u64 seed)
{
	u32 steps;

	for (steps = 0; rf_go_on(steps); steps++) {
		rf_count(devices);
		switch (rf_below(&seed, 8)) {
		case 0:
			rt_link_remove("q0");
			break;
		case 1:
			rt_link_rename("q1", "q2");
			break;
		case 2:
			rt_link_rename("q2", "q1");
			break;
		case 3:
			rf_move_away();
			break;
		case 4:
			rt_link_set_up(rf_one_in(&seed, 2) ? "p0" : "p1", rf_one_in(&seed, 2));
			break;
		case 5:
			rt_child(rf_be_tenant, &seed);
			break;
		default:
			rt_link_set_up("p0", true);
			rt_link_set_up("p1", true);
			rt_link_add_aware("q0", "q1");
		}
		usleep(rf_below(&seed, 30000));
	}
}
