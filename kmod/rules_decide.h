/* SPDX-License-Identifier: GPL-2.0-only */
/* What rules decide on packets. */
#ifndef RC_RULES_DECIDE_H
#define RC_RULES_DECIDE_H

#include "verdict.h"

struct rc_packet;
struct rc_rules;

/* What is to become of @pkt. Bottom halves off, under RCU. */
struct rc_verdict rc_rules_decide(struct rc_rules *rules, struct rc_packet *pkt);

#endif /* RC_RULES_DECIDE_H */
