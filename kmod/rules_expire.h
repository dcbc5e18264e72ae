/* SPDX-License-Identifier: GPL-2.0-only */
/* Rules that are idle go, and tables of learnt ones grow: work of the namespace. */
#ifndef RC_RULES_EXPIRE_H
#define RC_RULES_EXPIRE_H

struct rc_net;

/* What a namespace has of rule sets, and the end of it when it has no ring any more. */
void rc_rules_net_init(struct rc_net *rc_net);
void rc_rules_net_exit(struct rc_net *rc_net);

#endif /* RC_RULES_EXPIRE_H */
