/* SPDX-License-Identifier: GPL-2.0-only */
/* Payload patterns of a rule set; see PAYLOAD PATTERNS in linux/ringcap.h and classify/pattern.h. */
#ifndef RC_PATTERN_SET_H
#define RC_PATTERN_SET_H

#include <linux/types.h>

struct netlink_ext_ack;
struct nlattr;
struct rc_packet;
struct rc_patterns;
struct sk_buff;

/* An empty set under construction, NULL = no memory. @action: RINGCAP_A_PATTERN_ACTION, PASS or DROP. */
struct rc_patterns *rc_patterns_create(u32 action);

/* Adds one nest RINGCAP_A_PATTERN. */
int rc_patterns_add(struct rc_patterns *patterns, const struct nlattr *nest, struct netlink_ext_ack *extack);

/* Removes all patterns but the first @nr. */
void rc_patterns_truncate(struct rc_patterns *patterns, u32 nr);

/*
 * Makes the set ready for packets; no pattern can be added afterwards. Sleeps; a large set takes long. On failure the
 * set is unchanged. -E2BIG: more than RINGCAP_PATTERN_ENDS_MAX patterns may end at one place. Does nothing for NULL.
 */
int rc_patterns_compile(struct rc_patterns *patterns, struct netlink_ext_ack *extack);

/* Does nothing for NULL. No packet sees the set any more. */
void rc_patterns_free(struct rc_patterns *patterns);

/* Number of patterns, 0 for NULL. */
u32 rc_patterns_count(const struct rc_patterns *patterns);

/* Bytes of memory, 0 for NULL. */
u64 rc_patterns_memory(const struct rc_patterns *patterns);

/* Whether the packet passes, according to the action. Bottom halves off, under RCU; the set is compiled. */
bool rc_patterns_pass(const struct rc_patterns *patterns, struct rc_packet *pkt);

/* Puts a nest RINGCAP_A_PATTERN with RINGCAP_A_PATTERN_MATCHES for the pattern that was added at position @index. */
int rc_patterns_put(struct sk_buff *msg, const struct rc_patterns *patterns, u32 index);

#endif /* RC_PATTERN_SET_H */
