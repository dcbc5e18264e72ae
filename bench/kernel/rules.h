/* SPDX-License-Identifier: Apache-2.0 */
/* Rules and payload patterns for the UDP packets of traffic.h. */
#ifndef RB_RULES_H
#define RB_RULES_H

#include <linux/ringcap.h>

#define PATTERN_MAX	32

/* Returns rule n of a set of 8 shapes. Only rule 0, which has the last priority, matches the traffic. */
struct ringcap_rule rule_wildcard(unsigned int n);

/* Returns rule n, n < 1000, of a set about other hosts in the traffic's own /24 networks. */
struct ringcap_rule rule_near(unsigned int n);

/* Returns a wildcard rule that matches the traffic and learns its flows. */
struct ringcap_rule rule_learning(void);

/* Returns exact rule n. The first FLOWS rules are for the traffic's flows. */
struct ringcap_exact rule_exact(unsigned int n);

/*
 * Writes pattern n as text, at most PATTERN_MAX bytes including the 0. Returns its length. The traffic's payload is the
 * repeated letter U. Every tenth pattern starts with some U, and no pattern ends with one.
 */
int rule_pattern(unsigned int n, char *text);

#endif /* RB_RULES_H */
