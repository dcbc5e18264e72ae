/* SPDX-License-Identifier: GPL-2.0-only */
/* What a rule decides on a packet. */
#ifndef RC_VERDICT_H
#define RC_VERDICT_H

#include <linux/types.h>

/**
 * struct rc_verdict - a rule's answer; a word, so that it can be exchanged while packets are under way
 * @action: enum ringcap_action
 * @flags: for exact rules, RC_EXACT_*
 * @target: number of the set's target
 * @idle_s: seconds without a packet after which the rule expires, 0 = never
 */
struct rc_verdict {
	u8 action;
	u8 flags;
	u16 target;
	u32 idle_s;
} __aligned(8);

#endif /* RC_VERDICT_H */
