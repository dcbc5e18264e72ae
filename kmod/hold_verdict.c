// SPDX-License-Identifier: GPL-2.0-only

#include "hold_verdict.h"

#include <linux/if_ether.h>
#include <linux/mm.h>
#include <linux/ringcap.h>
#include <linux/sched/signal.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "forward.h"
#include "hold.h"
#include "queue.h"

/* Verdicts that are obeyed together, with bottom halves off. */
#define RC_VERDICT_BATCH	32
/* If a packet is longer than a page, its first piece has this length, as in send.c. */
#define RC_VERDICT_LINEAR	256

/* Verdicts that were copied and checked. @others: the packets of those that have data, else NULL. */
struct rc_verdict_batch {
	u32 nr;
	struct ringcap_verdict verdicts[RC_VERDICT_BATCH];
	struct sk_buff *others[RC_VERDICT_BATCH];
};

static struct sk_buff *rc_verdict_alloc(u32 len)
{
	u32 linear = len < PAGE_SIZE ? len : RC_VERDICT_LINEAR;
	struct sk_buff *skb;
	int err;

	skb = alloc_skb_with_frags(LL_MAX_HEADER + linear, len - linear, PAGE_ALLOC_COSTLY_ORDER, &err, GFP_KERNEL);
	if (!skb)
		return NULL;
	skb_reserve(skb, LL_MAX_HEADER);
	skb_put(skb, linear);
	skb->data_len = len - linear;
	skb->len = len;
	return skb;
}

/* The packet that @verdict has, or an error. */
static struct sk_buff *rc_verdict_copy(const struct ringcap_verdict *verdict)
{
	void *bytes = vmemdup_user(u64_to_user_ptr(verdict->data), verdict->len);
	struct sk_buff *skb;

	if (IS_ERR(bytes))
		return ERR_CAST(bytes);
	skb = rc_verdict_alloc(verdict->len);
	if (skb && WARN_ON_ONCE(skb_store_bits(skb, 0, bytes, verdict->len))) {
		kfree_skb(skb);
		skb = NULL;
	}
	kvfree(bytes);
	if (!skb)
		return ERR_PTR(-ENOMEM);
	rc_forward_set_headers(skb);
	return skb;
}

static bool rc_verdict_has_data(const struct ringcap_verdict *verdict)
{
	return verdict->verdict >= RINGCAP_VERDICT_REPLACE;
}

static bool rc_verdict_is_valid(const struct ringcap_verdict *verdict)
{
	if (verdict->lane || verdict->flags)
		return false;
	switch (verdict->verdict) {
	case RINGCAP_VERDICT_PASS:
	case RINGCAP_VERDICT_BLOCK:
		return true;
	case RINGCAP_VERDICT_REPLACE:
	case RINGCAP_VERDICT_INJECT_FORWARD:
	case RINGCAP_VERDICT_INJECT_REVERSE:
		return verdict->len >= ETH_HLEN && verdict->len <= RINGCAP_SNAPLEN_MAX;
	default:
		return false;
	}
}

/* Copies up to @nr verdicts together. Returns how many could be read. */
static u32 rc_verdict_read(struct rc_verdict_batch *batch, const struct ringcap_verdict __user *from, u32 nr)
{
	size_t rest = copy_from_user(batch->verdicts, from, nr * sizeof(*from));

	return nr - DIV_ROUND_UP(rest, sizeof(*from));
}

/* Checks the next verdict, which was read, and copies its packet. */
static int rc_verdict_take(struct rc_verdict_batch *batch)
{
	const struct ringcap_verdict *verdict = &batch->verdicts[batch->nr];
	struct sk_buff *other = NULL;

	if (!rc_verdict_is_valid(verdict))
		return -EINVAL;
	if (rc_verdict_has_data(verdict))
		other = rc_verdict_copy(verdict);
	if (IS_ERR(other))
		return PTR_ERR(other);
	batch->others[batch->nr++] = other;
	return 0;
}

/* Returns how many of the verdicts found no packet. */
static u32 rc_verdict_obey(struct rc_hold *hold, const struct rc_verdict_batch *batch)
{
	u32 i, missed = 0;

	spin_lock_bh(&hold->lock);
	for (i = 0; i < batch->nr; i++)
		missed += !rc_hold_obey(hold, &batch->verdicts[i], batch->others[i]);
	spin_unlock_bh(&hold->lock);
	return missed;
}

/* Takes the next verdicts of @argument, from number @done on. Counts those taken in @done, even with an error. */
static int rc_verdict_step(struct rc_hold *hold, struct ringcap_verdicts *argument, u32 *done)
{
	const struct ringcap_verdict __user *from = u64_to_user_ptr(argument->verdicts);
	u32 wanted = min_t(u32, argument->nr - *done, RC_VERDICT_BATCH), read;
	struct rc_verdict_batch batch;
	int err = 0;

	read = rc_verdict_read(&batch, from + *done, wanted);
	batch.nr = 0;
	while (!err && batch.nr < read)
		err = rc_verdict_take(&batch);
	if (!err && read < wanted)
		err = -EFAULT;
	argument->missed += rc_verdict_obey(hold, &batch);
	*done += batch.nr;
	return err;
}

long rc_hold_verdict_run(struct rc_queue *queue, struct ringcap_verdicts __user *to)
{
	struct ringcap_verdicts argument;
	u32 done = 0;
	int err = 0;

	if (READ_ONCE(queue->dead))
		return -ENODEV;
	if (!queue->hold)
		return -EPERM;
	if (copy_from_user(&argument, to, sizeof(argument)))
		return -EFAULT;
	argument.missed = 0;
	/* The result is an int. */
	argument.nr = min_t(u32, argument.nr, INT_MAX);
	while (!err && done < argument.nr) {
		err = signal_pending(current) ? -ERESTARTSYS : rc_verdict_step(queue->hold, &argument, &done);
		cond_resched();
	}
	if (put_user(argument.missed, &to->missed) && !err)
		err = -EFAULT;
	return done ?: err;
}
