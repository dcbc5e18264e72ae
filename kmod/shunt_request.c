// SPDX-License-Identifier: GPL-2.0-only

#include "shunt_request.h"

#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "chardev.h"
#include "cluster.h"
#include "queue.h"
#include "rules.h"
#include "shunt.h"

/**
 * struct rc_shunt_request - a request that is under way
 * @argument: as the consumer gave it
 * @shunts: the flows of its attachment
 * @gone: flows that the request has ended and that are no records yet
 * @nr_gone: number of them
 */
struct rc_shunt_request {
	struct ringcap_shunts argument;
	struct rc_shunts *shunts;
	struct rc_shunt_list gone;
	u32 nr_gone;
};

/*
 * When a request has ended so many flows, they become records, after a grace period. Until then no quota counts them,
 * and another thread may shunt their flows again: without this bound, they could take any amount of memory.
 */
#define RC_SHUNT_GONE_MAX 8192U

/* ---- the attachment's flows ---- */

static void rc_shunt_request_note(struct rc_shunts *shunts)
{
	mutex_lock(&rc_chardev_lock);
	if (!shunts->ended && !shunts->queue->dead)
		rc_cluster_note_shunts(shunts->queue->chardev->cluster);
	mutex_unlock(&rc_chardev_lock);
}

/* Gives @queue's attachment @new, unless it has flows already. Returns those with a reference, or NULL. */
static struct rc_shunts *rc_shunt_request_install(struct rc_queue *queue, struct rc_shunts *new)
{
	struct rc_shunts *shunts;

	lockdep_assert_held(&rc_chardev_lock);
	if (!rc_queue_has_consumer(queue))
		return NULL;
	shunts = rcu_dereference_protected(queue->shunts, lockdep_is_held(&rc_chardev_lock));
	if (!shunts) {
		kref_get(&new->ref);
		rcu_assign_pointer(queue->shunts, new);
		shunts = new;
	}
	kref_get(&shunts->ref);
	return shunts;
}

static struct rc_shunts *rc_shunt_request_create(struct rc_queue *queue)
{
	struct rc_shunts *shunts, *new = rc_shunts_create(queue, rc_shunt_request_note);

	if (!new)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&rc_chardev_lock);
	shunts = rc_shunt_request_install(queue, new);
	mutex_unlock(&rc_chardev_lock);
	rc_shunts_put(new);
	return shunts ?: ERR_PTR(-ENODEV);
}

/* The flows of @queue's attachment, with a reference, or an error. */
static struct rc_shunts *rc_shunt_request_get(struct rc_queue *queue)
{
	struct rc_shunts *shunts;

	rcu_read_lock();
	shunts = rcu_dereference(queue->shunts);
	if (shunts && !kref_get_unless_zero(&shunts->ref))
		shunts = NULL;
	rcu_read_unlock();
	return shunts ?: rc_shunt_request_create(queue);
}

/* ---- one element ---- */

static bool rc_shunt_request_is_valid(const struct rc_queue *queue, const struct ringcap_exact *flow)
{
	if (rc_exact_refusal(flow) || flow->target || flow->idle_s > RC_IDLE_MAX)
		return false;
	return flow->action == RINGCAP_ACTION_DROP || (flow->action == RINGCAP_ACTION_PASS && queue->hold);
}

static int rc_shunt_request_add(struct rc_shunt_request *request, u64 at)
{
	struct ringcap_exact flow;

	if (copy_from_user(&flow, u64_to_user_ptr(at), sizeof(flow)))
		return -EFAULT;
	return rc_shunt_request_is_valid(request->shunts->queue, &flow) ? rc_shunts_add(request->shunts, &flow) :
									  -EINVAL;
}

static void rc_shunt_request_record(struct rc_shunt_request *request)
{
	rc_shunts_record(request->shunts, &request->gone);
	request->nr_gone = 0;
}

static int rc_shunt_request_remove(struct rc_shunt_request *request, u64 at)
{
	struct ringcap_exact flow;
	int unknown;

	if (copy_from_user(&flow, u64_to_user_ptr(at), sizeof(flow)))
		return -EFAULT;
	if (rc_exact_refusal(&flow))
		return -EINVAL;
	unknown = rc_shunts_remove(request->shunts, &flow, &request->gone);
	request->nr_gone += !unknown;
	if (request->nr_gone == RC_SHUNT_GONE_MAX)
		rc_shunt_request_record(request);
	return unknown;
}

static int rc_shunt_request_read(struct rc_shunt_request *request, u64 at)
{
	struct ringcap_exact_state state;
	int unknown;

	if (copy_from_user(&state, u64_to_user_ptr(at), sizeof(state)))
		return -EFAULT;
	if (rc_exact_refusal(&state.rule))
		return -EINVAL;
	unknown = rc_shunts_read(request->shunts, &state);
	return copy_to_user(u64_to_user_ptr(at), &state, sizeof(state)) ? -EFAULT : unknown;
}

/* 1 if there is no record any more. */
static int rc_shunt_request_ended(struct rc_shunt_request *request, u64 at)
{
	struct rc_shunt *shunt = rc_shunts_take_record(request->shunts, &request->argument.lost);
	struct ringcap_exact_state state;

	if (!shunt)
		return 1;
	rc_shunt_state(shunt, &state);
	if (copy_to_user(u64_to_user_ptr(at), &state, sizeof(state))) {
		rc_shunts_give_record(request->shunts, shunt);
		return -EFAULT;
	}
	rc_shunt_free(shunt);
	return 0;
}

/* ---- all elements ---- */

/**
 * struct rc_shunt_verb - what a request does
 * @run: handles the element at an address: 0; 1 = it is counted as missed; or an error
 * @size: bytes of an element
 * @ends: the request ends at the first element that is missed
 * @sums: the request also tells the queue's counters
 */
struct rc_shunt_verb {
	int (*run)(struct rc_shunt_request *request, u64 at);
	size_t size;
	bool ends;
	bool sums;
};

static const struct rc_shunt_verb *rc_shunt_verb(unsigned int cmd)
{
	static const struct rc_shunt_verb add = { rc_shunt_request_add, sizeof(struct ringcap_exact) };
	static const struct rc_shunt_verb remove = { rc_shunt_request_remove, sizeof(struct ringcap_exact) };
	static const struct rc_shunt_verb read = {
		.run = rc_shunt_request_read, .size = sizeof(struct ringcap_exact_state), .sums = true,
	};
	static const struct rc_shunt_verb ended = {
		.run = rc_shunt_request_ended, .size = sizeof(struct ringcap_exact_state), .ends = true,
	};

	switch (cmd) {
	case RINGCAP_IOC_SHUNT:
		return &add;
	case RINGCAP_IOC_UNSHUNT:
		return &remove;
	case RINGCAP_IOC_SHUNT_READ:
		return &read;
	default:
		return &ended;
	}
}

/* Returns how many elements were handled, or an error if there was one at the first. */
static long rc_shunt_request_all(struct rc_shunt_request *request, const struct rc_shunt_verb *verb)
{
	u32 done, nr = min_t(u32, request->argument.nr, INT_MAX);	/* the result is an int */
	int result;

	for (done = 0; done < nr; done++) {
		result = signal_pending(current) ? -ERESTARTSYS :
						   verb->run(request, request->argument.flows + done * verb->size);
		if (result < 0)
			return done ?: result;
		if (result && verb->ends)
			break;
		request->argument.missed += result;
		cond_resched();
	}
	return done;
}

static void rc_shunt_request_sum(struct rc_shunt_request *request)
{
	struct rc_queue_shunted sum;

	rc_queue_shunted(request->shunts->queue, &sum);
	request->argument.shunted = sum.packets;
	request->argument.shunted_bytes = sum.bytes;
}

static long rc_shunt_request_with(struct rc_shunt_request *request, const struct rc_shunt_verb *verb)
{
	long done;

	request->argument.missed = 0;
	request->argument.lost = 0;
	request->nr_gone = 0;
	rc_shunt_list_init(&request->gone);
	done = rc_shunt_request_all(request, verb);
	rc_shunt_request_record(request);
	if (verb->sums)
		rc_shunt_request_sum(request);
	return done;
}

long rc_shunt_request_run(struct rc_queue *queue, unsigned int cmd, struct ringcap_shunts __user *to)
{
	struct rc_shunt_request request;
	long done;

	if (READ_ONCE(queue->dead))
		return -ENODEV;
	if (cmd == RINGCAP_IOC_SHUNT && !READ_ONCE(queue->shunt_quota))
		return -EPERM;
	if (copy_from_user(&request.argument, to, sizeof(request.argument)))
		return -EFAULT;
	request.shunts = rc_shunt_request_get(queue);
	if (IS_ERR(request.shunts))
		return PTR_ERR(request.shunts);
	done = rc_shunt_request_with(&request, rc_shunt_verb(cmd));
	rc_shunts_put(request.shunts);
	if (copy_to_user(to, &request.argument, sizeof(request.argument)) && done >= 0)
		done = -EFAULT;
	return done;
}
