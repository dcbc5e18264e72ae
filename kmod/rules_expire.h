/* SPDX-License-Identifier: GPL-2.0-only */
/* Work of a namespace: removes idle rules, and enlarges tables of learnt ones. */
#ifndef RC_RULES_EXPIRE_H
#define RC_RULES_EXPIRE_H

struct rc_net;

/* Sets up a namespace's rule sets, and cleans them up when it has no ring any more. */
void rc_rules_net_init(struct rc_net *rc_net);
void rc_rules_net_exit(struct rc_net *rc_net);

#endif /* RC_RULES_EXPIRE_H */
