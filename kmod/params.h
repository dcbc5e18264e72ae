/* SPDX-License-Identifier: GPL-2.0-only */
/* Module parameters: defaults of new rings and clusters, and limits. docs/kernel-module.md explains them. */
#ifndef RC_PARAMS_H
#define RC_PARAMS_H

#include <linux/compiler.h>
#include <linux/types.h>

/**
 * struct rc_params - current values; they may change at any time, so use rc_param()
 * @min_num_slots: packets of 1518 bytes that fit into a lane; 0 = RINGCAP_A_LANE_SIZE's usual default
 * @transparent_mode: RINGCAP_A_TRANSPARENT
 * @quick_mode: RINGCAP_A_QUICK
 * @enable_tx_capture: RINGCAP_A_TAP_DIRECTION is BOTH, not RX
 * @enable_frag_coherence: RINGCAP_A_FRAGMENTS is WITH_FLOW, not TOGETHER
 * @enable_ip_defrag: RINGCAP_A_DEFRAG
 * @max_rings, @max_rings_netns, @max_learnt, @max_learnt_netns: see limit.h
 */
struct rc_params {
	unsigned int min_num_slots;
	unsigned int transparent_mode;
	unsigned int quick_mode;
	unsigned int enable_tx_capture;
	unsigned int enable_frag_coherence;
	unsigned int enable_ip_defrag;
	unsigned int max_rings;
	unsigned int max_rings_netns;
	unsigned int max_learnt;
	unsigned int max_learnt_netns;
};

extern struct rc_params rc_params;

#define rc_param(name) READ_ONCE(rc_params.name)

/* RINGCAP_A_LANE_SIZE where it is not given, bytes. */
u32 rc_params_lane_size(void);

#endif /* RC_PARAMS_H */
