/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits by number: rings, and flows that rings have learnt. The administrator of a network namespace may make both,
 * and any user of the machine can be one (unshare -Urn). So:
 *
 *	all namespaces together		have at most as many as the parameter sets
 *	the machine's own (initial)	may have all of them
 *	each other one			has at most as many as the parameter of that name with _netns sets
 *	all other ones together		have half as many as all: the rest is the machine's own, whatever they do
 *
 * Memory is charged besides: see rc_ring_config.memcg.
 */
#ifndef RC_LIMIT_H
#define RC_LIMIT_H

#include <linux/atomic.h>
#include <linux/types.h>

enum rc_limit {
	RC_LIMIT_RINGS,		/* max_rings, max_rings_netns */
	RC_LIMIT_LEARNT,	/* max_learnt, max_learnt_netns */
	RC_LIMITS
};

/**
 * struct rc_limited - what a namespace has of these
 * @initial: it is the machine's own, of which only the sum of all is counted
 * @nr: of each; not of the initial namespace
 */
struct rc_limited {
	bool initial;
	atomic_t nr[RC_LIMITS];
};

/* One more in a namespace: 0, -EDQUOT if the namespace has enough, -ENOSPC if the machine has. In any context. */
int rc_limit_take(struct rc_limited *limited, enum rc_limit limit);

/* A guess, without a locked operation: rc_limit_take would refuse one more. In any context. */
bool rc_limit_seems_reached(const struct rc_limited *limited, enum rc_limit limit);

/* @nr less. */
void rc_limit_give(struct rc_limited *limited, enum rc_limit limit, u32 nr);

#endif /* RC_LIMIT_H */
