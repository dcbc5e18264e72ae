// SPDX-License-Identifier: GPL-2.0-only

#include "params.h"

#include <linux/cache.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/ringcap.h>

#define RC_PARAMS_LANE_SIZE	(1U << 20)
#define RC_PARAMS_SLOT_SIZE	RINGCAP_SLOT_SIZE((u32)sizeof(struct ringcap_slot), 1518)
#define RC_PARAMS_SLOTS_MAX	(RINGCAP_LANE_SIZE_MAX / RC_PARAMS_SLOT_SIZE)

#define RC_PARAMS_LIMIT_MAX	(1U << 30)

struct rc_params rc_params __read_mostly = {
	.max_rings = 4096,
	.max_rings_netns = 256,
	.max_learnt = 16 << 20,
	.max_learnt_netns = 1 << 20,
};

u32 rc_params_lane_size(void)
{
	u32 slots = rc_param(min_num_slots);
	u32 bytes = slots * RC_PARAMS_SLOT_SIZE;

	return slots ? max_t(u32, roundup_pow_of_two(bytes), RINGCAP_LANE_SIZE_MIN) : RC_PARAMS_LANE_SIZE;
}

static int rc_params_set_flag(const char *value, const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, 0, 1);
}

static int rc_params_set_mode(const char *value, const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, 0, 2);
}

static int rc_params_set_slots(const char *value, const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, 0, RC_PARAMS_SLOTS_MAX);
}

static int rc_params_set_limit(const char *value, const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, 0, RC_PARAMS_LIMIT_MAX);
}

static const struct kernel_param_ops rc_params_flag = { .set = rc_params_set_flag, .get = param_get_uint };
static const struct kernel_param_ops rc_params_mode = { .set = rc_params_set_mode, .get = param_get_uint };
static const struct kernel_param_ops rc_params_slots = { .set = rc_params_set_slots, .get = param_get_uint };
static const struct kernel_param_ops rc_params_limit = { .set = rc_params_set_limit, .get = param_get_uint };

module_param_cb(min_num_slots, &rc_params_slots, &rc_params.min_num_slots, 0644);
MODULE_PARM_DESC(min_num_slots, "Packets of 1518 bytes that each lane of a new cluster has room for; 0 = 1 MiB (0)");
module_param_cb(transparent_mode, &rc_params_mode, &rc_params.transparent_mode, 0644);
MODULE_PARM_DESC(transparent_mode,
		 "New rings: 0 = any driver, 1 = a capture-aware driver and the stack, 2 = a capture-aware driver only (0)");
module_param_cb(quick_mode, &rc_params_flag, &rc_params.quick_mode, 0644);
MODULE_PARM_DESC(quick_mode, "New rings: accepted for PF_RING's users, without effect: each ring takes the shortest path that its settings leave (0)");
module_param_cb(enable_tx_capture, &rc_params_flag, &rc_params.enable_tx_capture, 0644);
MODULE_PARM_DESC(enable_tx_capture, "New taps: 1 = also packets that the interface sends (0)");
module_param_cb(enable_frag_coherence, &rc_params_flag, &rc_params.enable_frag_coherence, 0644);
MODULE_PARM_DESC(enable_frag_coherence,
		 "New clusters: 1 = IP fragments go to the queue of their flow, 0 = to one of their own (0)");
module_param_cb(enable_ip_defrag, &rc_params_flag, &rc_params.enable_ip_defrag, 0644);
MODULE_PARM_DESC(enable_ip_defrag, "New rings: 1 = IPv4 fragments come as one reassembled packet (0)");
module_param_cb(max_rings, &rc_params_limit, &rc_params.max_rings, 0644);
MODULE_PARM_DESC(max_rings, "Rings of all network namespaces, half of them of others than the initial one (4096)");
module_param_cb(max_rings_netns, &rc_params_limit, &rc_params.max_rings_netns, 0644);
MODULE_PARM_DESC(max_rings_netns, "Rings of a network namespace other than the initial one (256)");
module_param_cb(max_learnt, &rc_params_limit, &rc_params.max_learnt, 0644);
MODULE_PARM_DESC(max_learnt,
		 "Learnt flows of all network namespaces, half of them of others than the initial one (16777216)");
module_param_cb(max_learnt_netns, &rc_params_limit, &rc_params.max_learnt_netns, 0644);
MODULE_PARM_DESC(max_learnt_netns, "Learnt flows of a network namespace other than the initial one (1048576)");
