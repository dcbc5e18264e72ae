/* SPDX-License-Identifier: Apache-2.0 */
/* Rules and payload patterns for traffic.h's packets of UDP. */
#ifndef RB_RULES_H
#define RB_RULES_H

#include <linux/ringcap.h>

#define PATTERN_MAX	32

/* Rule n of a set of 8 shapes. Rule 0, which decides last, is the traffic's; no other matches it. */
struct ringcap_rule rule_wildcard(unsigned int n);

/* The same, n < 1000, about other hosts in the traffic's own networks of 24 bits. */
struct ringcap_rule rule_near(unsigned int n);

/* A wildcard rule that matches the traffic and learns its flows. */
struct ringcap_rule rule_learning(void);

/* The first FLOWS are the traffic's. */
struct ringcap_exact rule_exact(unsigned int n);

/*
 * Pattern n as text, at most PATTERN_MAX bytes with the 0; returns its length. The traffic's payload is the letter U over and
 * over; every tenth pattern begins with some, and none ends with one.
 */
int rule_pattern(unsigned int n, char *text);

#endif /* RB_RULES_H */
