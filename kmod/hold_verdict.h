/* SPDX-License-Identifier: GPL-2.0-only */
/* Verdicts of a consumer on packets that wait for it: RINGCAP_IOC_VERDICT. */
#ifndef RC_HOLD_VERDICT_H
#define RC_HOLD_VERDICT_H

#include <linux/compiler.h>

struct rc_queue;
struct ringcap_verdicts;

long rc_hold_verdict_run(struct rc_queue *queue, struct ringcap_verdicts __user *argument);

#endif /* RC_HOLD_VERDICT_H */
