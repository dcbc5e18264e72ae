/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits on the number of rings, and of flows that rings have learnt. The administrator of a network namespace may make
 * both. Any user of the machine can become one (unshare -Urn). So there are these limits:
 *
 *	all namespaces together		the parameter, for example max_rings
 *	the initial namespace		no limit of its own: it may have all of these
 *	each other namespace		the parameter of that name with _netns
 *	all other namespaces together	half of the parameter: the rest is always left to the initial namespace
 *
 * In addition, memory is charged: see rc_ring_config.memcg.
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
 * struct rc_limited - the number of limited objects in a namespace
 * @initial: it is the initial namespace, which counts only in the sum of all
 * @nr: number for each limit; not used in the initial namespace
 */
struct rc_limited {
	bool initial;
	atomic_t nr[RC_LIMITS];
};

/* Takes one. 0, -EDQUOT at the namespace's limit, or -ENOSPC at the machine's. In any context. */
int rc_limit_take(struct rc_limited *limited, enum rc_limit limit);

/* Estimates, without a locked operation, whether rc_limit_take would fail. In any context. */
bool rc_limit_seems_reached(const struct rc_limited *limited, enum rc_limit limit);

/* Gives @nr back. */
void rc_limit_give(struct rc_limited *limited, enum rc_limit limit, u32 nr);

#endif /* RC_LIMIT_H */
