// SPDX-License-Identifier: GPL-2.0-only

#include "limit.h"

#include <linux/errno.h>

#include "params.h"

static atomic_t rc_limit_all[RC_LIMITS];
static atomic_t rc_limit_others[RC_LIMITS];	/* all but the initial namespace */

static u32 rc_limit_machine(enum rc_limit limit)
{
	return limit == RC_LIMIT_RINGS ? rc_param(max_rings) : rc_param(max_learnt);
}

static u32 rc_limit_netns(enum rc_limit limit)
{
	return limit == RC_LIMIT_RINGS ? rc_param(max_rings_netns) : rc_param(max_learnt_netns);
}

static bool rc_limit_add(atomic_t *count, u32 max)
{
	if ((u32)atomic_inc_return(count) <= max)
		return true;
	atomic_dec(count);
	return false;
}

static int rc_limit_take_other(struct rc_limited *limited, enum rc_limit limit)
{
	if (!rc_limit_add(&limited->nr[limit], rc_limit_netns(limit)))
		return -EDQUOT;
	if (rc_limit_add(&rc_limit_others[limit], rc_limit_machine(limit) / 2))
		return 0;
	atomic_dec(&limited->nr[limit]);
	return -ENOSPC;
}

static void rc_limit_give_other(struct rc_limited *limited, enum rc_limit limit, u32 nr)
{
	atomic_sub(nr, &limited->nr[limit]);
	atomic_sub(nr, &rc_limit_others[limit]);
}

static bool rc_limit_is_full(const atomic_t *count, u32 max)
{
	return (u32)atomic_read(count) >= max;
}

bool rc_limit_seems_reached(const struct rc_limited *limited, enum rc_limit limit)
{
	if (rc_limit_is_full(&rc_limit_all[limit], rc_limit_machine(limit)))
		return true;
	return !limited->initial && (rc_limit_is_full(&limited->nr[limit], rc_limit_netns(limit)) ||
				     rc_limit_is_full(&rc_limit_others[limit], rc_limit_machine(limit) / 2));
}

int rc_limit_take(struct rc_limited *limited, enum rc_limit limit)
{
	bool other = !limited->initial;
	int err = other ? rc_limit_take_other(limited, limit) : 0;

	if (err || rc_limit_add(&rc_limit_all[limit], rc_limit_machine(limit)))
		return err;
	if (other)
		rc_limit_give_other(limited, limit, 1);
	return -ENOSPC;
}

void rc_limit_give(struct rc_limited *limited, enum rc_limit limit, u32 nr)
{
	if (!limited->initial)
		rc_limit_give_other(limited, limit, nr);
	atomic_sub(nr, &rc_limit_all[limit]);
}
