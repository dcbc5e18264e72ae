// SPDX-License-Identifier: GPL-2.0-only
/* Module parameters: defaults of new objects for what the request leaves out. */
#define _GNU_SOURCE
#include "fixture.h"

#include <fcntl.h>
#include <sys/syscall.h>

static const char *const rt_params[] = { "min_num_slots", "transparent_mode", "quick_mode", "enable_tx_capture",
					 "enable_frag_coherence", "enable_ip_defrag" };

static bool rt_param_set(const char *name, const char *value)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/module/ringcap/parameters/%s", name);
	return rt_write_file(path, value);
}

/* Cases share the module: each begins, and ends, with the defaults. */
static void rt_params_reset(void)
{
	size_t i;

	for (i = 0; i < sizeof(rt_params) / sizeof(rt_params[0]); i++)
		RT_CHECK(rt_param_set(rt_params[i], "0"), "%s: %m", rt_params[i]);
}

static u32 rt_lane_size(const char *slots)
{
	struct rt_cluster shape = { .name = "params", .lanes = 1 };
	u32 size;

	RT_CHECK(rt_param_set("min_num_slots", slots), "%m");
	RT_EQUAL(rt_cluster_set(&shape), 0);
	size = rt_get_attr(RINGCAP_CMD_CLUSTER_GET, "params", RINGCAP_A_LANE_SIZE);
	/* The request knows better. */
	shape.lane_size = 2 * RINGCAP_LANE_SIZE_MIN;
	RT_EQUAL(rt_cluster_set(&shape), 0);
	RT_EQUAL(rt_get_attr(RINGCAP_CMD_CLUSTER_GET, "params", RINGCAP_A_LANE_SIZE), 2 * RINGCAP_LANE_SIZE_MIN);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, "params"), 0);
	return size;
}

RT_CASE(params_min_num_slots)
{
	rt_params_reset();
	rt_control_open();
	RT_EQUAL(rt_lane_size("0"), 1 << 20);
	RT_EQUAL(rt_lane_size("1"), RINGCAP_LANE_SIZE_MIN);
	RT_EQUAL(rt_lane_size("4096"), 8 << 20);
	rt_params_reset();
}

RT_CASE(params_quick_mode)
{
	struct rt_fixture fixture;

	rt_params_reset();
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_get_attr(RINGCAP_CMD_RING_GET, fixture.ring, RINGCAP_A_QUICK), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
	RT_CHECK(rt_param_set("quick_mode", "1") && rt_param_set("enable_ip_defrag", "1"), "%m");
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
	RT_EQUAL(rt_get_attr(RINGCAP_CMD_RING_GET, fixture.ring, RINGCAP_A_QUICK), 1);
	RT_EQUAL(rt_get_attr(RINGCAP_CMD_RING_GET, fixture.ring, RINGCAP_A_DEFRAG), 1);
	rt_params_reset();
}

/* Whether a tap without a direction in its request takes what is sent. */
static u64 rt_seen_of_sent(struct rt_fixture *fixture)
{
	struct rt_ring ring = { .name = fixture->ring, .taps = { { .ifindex = fixture->ifindex } },
				.outputs = { fixture->cluster } };
	struct rt_traffic traffic = { .flows = 5 };
	u64 before = rt_ring_seen(fixture->ring);

	RT_EQUAL(rt_ring_set(&ring), 0);
	rt_send(fixture->back, &traffic, 0, 10);
	return rt_ring_seen(fixture->ring) - before;
}

RT_CASE(params_rings)
{
	struct rt_fixture fixture;

	rt_params_reset();
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_seen_of_sent(&fixture), 0);
	RT_CHECK(rt_param_set("enable_tx_capture", "1"), "%m");
	RT_EQUAL(rt_seen_of_sent(&fixture), 10);
	RT_CHECK(rt_param_set("transparent_mode", "2"), "%m");
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), -EOPNOTSUPP);
	RT_CHECK(strstr(rt_reason, "transparent_mode"), "%s", rt_reason);
	rt_params_reset();
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
}

static u32 rt_fragments(struct rt_cluster *shape)
{
	RT_EQUAL(rt_cluster_set(shape), 0);
	return rt_get_attr(RINGCAP_CMD_CLUSTER_GET, shape->name, RINGCAP_A_FRAGMENTS);
}

static u32 rt_defrag(const struct rt_fixture *fixture)
{
	RT_EQUAL(rt_fixture_change(fixture, &(struct rt_ring){}), 0);
	return rt_get_attr(RINGCAP_CMD_RING_GET, fixture->ring, RINGCAP_A_DEFRAG);
}

RT_CASE(params_fragments)
{
	struct rt_cluster shape = { .name = "params", .lanes = 1 };
	struct rt_fixture fixture;

	rt_params_reset();
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_fragments(&shape), RINGCAP_FRAGMENTS_TOGETHER);
	RT_EQUAL(rt_defrag(&fixture), 0);
	RT_CHECK(rt_param_set("enable_frag_coherence", "1"), "%m");
	RT_EQUAL(rt_fragments(&shape), RINGCAP_FRAGMENTS_WITH_FLOW);
	RT_CHECK(rt_param_set("enable_ip_defrag", "1"), "%m");
	RT_EQUAL(rt_defrag(&fixture), 1);
	rt_params_reset();
	RT_EQUAL(rt_defrag(&fixture), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, "params"), 0);
}

static const struct { const char *param, *value; } rt_bad[] = {
	{ "transparent_mode", "3" }, { "transparent_mode", "-1" }, { "transparent_mode", "x" }, { "quick_mode", "2" },
	{ "enable_tx_capture", "2" }, { "enable_frag_coherence", "y" }, { "enable_ip_defrag", "7" },
	{ "min_num_slots", "1000000" }, { "min_num_slots", "" }, { "max_rings", "-1" }, { "max_rings_netns", "1073741825" },
	{ "max_learnt", "all" }, { "max_learnt_netns", "" },
};

static int rt_load(const char *params)
{
	int fd = open("/ringcap.ko", O_RDONLY | O_CLOEXEC), err;

	RT_CHECK(fd >= 0, "%m");
	err = syscall(SYS_finit_module, fd, params, 0) ? -errno : 0;
	close(fd);
	return err;
}

/* Refused while the module is there, and when it is loaded. */
RT_CASE(params_refused)
{
	char params[64];
	size_t i;

	rt_params_reset();
	for (i = 0; i < sizeof(rt_bad) / sizeof(rt_bad[0]); i++)
		RT_CHECK(!rt_bad[i].value[0] || !rt_param_set(rt_bad[i].param, rt_bad[i].value), "%s = %s is taken", rt_bad[i].param,
			 rt_bad[i].value);
	RT_EVENTUALLY(!syscall(SYS_delete_module, "ringcap", O_NONBLOCK), 10000);
	for (i = 0; i < sizeof(rt_bad) / sizeof(rt_bad[0]); i++) {
		snprintf(params, sizeof(params), "%s=%s", rt_bad[i].param, rt_bad[i].value);
		RT_EQUAL(rt_load(params), -EINVAL);
	}
	RT_EQUAL(rt_load("min_num_slots=4096 transparent_mode=0 enable_tx_capture=1"), 0);
	rt_params_reset();
}
