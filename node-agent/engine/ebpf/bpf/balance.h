/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chooses a cluster's queue for a packet: kmod/balance.c for eBPF. If a queue cannot take a packet, rendezvous hashing
 * chooses a stand-in: of the other attended queues, the one with the greatest weight. The weight is mixed from queue
 * and flow.
 *
 * For the packet's current copy, work->home is the queue that it belongs to. work->seed stands for its flow.
 * work->except is the queue that has the other copy. Nothing is delivered here: work->goes are the queues that get a
 * copy, or NOWHERE, and work->hashes are the hashes for their slots.
 */
#ifndef RC_BALANCE_H
#define RC_BALANCE_H

#include "fragment.h"
#include "shunt.h"
#include "table.h"

#define BALANCE_TRIES	4	/* stand-ins that may turn out to be full before a packet is dropped */
#define NOWHERE		(~0U)	/* no queue */

/* The next queue of a round robin cluster, by the place of the cluster's queue 0. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} rc_round_robin SEC(".maps");

/* The queue with the greatest weight below work->bound; work->bound becomes this weight. NOWHERE if there is none. */
__attribute__((noinline)) int balance_stand_in(__u32 base, __u32 queues)
{
	struct work *work = this_work();
	__u64 most = 0, weight;
	__u32 i;

	if (!work)
		return NOWHERE;
	work->found = NOWHERE;
	for (i = 0; i < RINGCAP_QUEUES_MAX && i < queues; i++) {
		if (i == work->home || !queue_is_attended(base + i))
			continue;
		weight = rc_mix((__u64)work->seed << 32 | (i + 1));
		if (weight < most || weight >= work->bound)
			continue;
		most = weight;
		work->found = i;
	}
	work->bound = most;
	return work->found;
}

static __always_inline void balance_count_spread(__u32 base)
{
	struct balance_account *account = bpf_map_lookup_elem(&rc_balance, &base);

	if (account)
		account->spread++;
}

/* Whether the consumer of queue @queue has shunted the flow, which then needs no room. */
static __always_inline int balance_is_shunted(const volatile struct output *output, __u32 queue)
{
	return config.flags & CONFIG_SHUNTS && output->shunts && shunt_takes(output->base + queue, 0);
}

/*
 * A stand-in for output @number's queue, or NOWHERE. If that is because of the other copy, work->found is that copy's
 * queue.
 */
static __always_inline __u32 balance_spread(struct work *work, __u32 number)
{
	const volatile struct output *output = config_element(outputs, number);
	__u32 base = output->base, queues = output->queues, index;
	int last = output->when_full == RINGCAP_POLICY_DROP;

	work->bound = ~0ULL;
	for (int tries = 0; tries < BALANCE_TRIES; tries++) {
		index = balance_stand_in(base, queues);
		if (index == NOWHERE || index == work->except)
			return NOWHERE;
		if (last || balance_is_shunted(output, index) || table_has_room(number, index)) {
			balance_count_spread(base);
			return index;
		}
	}
	return NOWHERE;
}

/* The queue that gets the copy, or that counts it as dropped. NOWHERE if the queue's stand-in has the other copy. */
__attribute__((noinline)) int balance_give(__u32 number)
{
	struct work *work = this_work();
	const volatile struct output *output;
	__u32 policy, took;
	int attended;

	if (!work)
		return NOWHERE;
	output = config_element(outputs, number);
	attended = queue_is_attended(output->base + work->home);
	policy = attended ? output->when_full : output->when_unattended;
	if (policy != RINGCAP_POLICY_SPREAD || balance_is_shunted(output, work->home) ||
	    (attended && table_has_room(number, work->home)))
		return work->home;
	took = balance_spread(work, number);
	if (took == NOWHERE && (work->found == NOWHERE || work->found != work->except))
		return work->home;
	return took;
}

/* ---- hashing ---- */

/*
 * The flow that the cluster hashes by: that of the packet, or of the packet inside it; for a fragment that of its
 * datagram.
 */
static __always_inline const struct rc_flow *balance_flow(struct work *work, const volatile struct output *output)
{
	const struct rc_flow *flow = output->inner && work_look_inside() ? &work->inner.found.flow : &work->flow;

	if (!output->fragments || !(flow->flags & RINGCAP_SLOT_FRAGMENT))
		return flow;
	work->whole = *flow;
	return fragment_complete(output->base) ? &work->whole : flow;
}

__attribute__((noinline)) int balance_both_ends(__u32 number)
{
	struct work *work = this_work();
	const volatile struct output *output;
	struct balance_account *account;
	__u32 hashes[2], took, base;
	__u64 key[2];

	if (!work)
		return 0;
	output = config_element(outputs, number);
	base = output->base;
	key[0] = output->key[0];
	key[1] = output->key[1];
	rc_end_hashes(balance_flow(work, output), key, hashes);
	work->hashes[0] = work->seed = hashes[0];
	work->home = rc_queue(hashes[0], output->queues);
	took = balance_give(number);
	work->goes[0] = took;
	work->home = rc_queue(hashes[1], output->queues);
	if (work->home == took || work->home == rc_queue(hashes[0], output->queues))
		return 0;
	work->hashes[1] = work->seed = hashes[1];
	work->except = took;
	work->goes[1] = balance_give(number);
	if (work->goes[1] == NOWHERE)
		return 0;
	account = bpf_map_lookup_elem(&rc_balance, &base);
	if (account)
		account->duplicated++;
	return 0;
}

/* The hash for a slot; the hash of FLOW if the cluster does not choose queues by hashes. */
static __always_inline __u32 balance_hash(struct work *work, const volatile struct output *output)
{
	const struct rc_flow *flow = balance_flow(work, output);
	__u64 key[2] = { output->key[0], output->key[1] };

	return rc_flow_hash(flow, rc_flow_balance(flow, output->balance), key);
}

/* Chooses the copy's queue. */
static __always_inline void balance_choose(struct work *work, const volatile struct output *output)
{
	__u32 base = output->base, queues = output->queues, *next;

	work->seed = work->hashes[0];
	if (output->balance == RINGCAP_BALANCE_ROUND_ROBIN) {
		next = bpf_map_lookup_elem(&rc_round_robin, &base);
		work->seed = next ? __sync_fetch_and_add(next, 1) + 1 : 0;
		work->home = queues ? work->seed % queues : 0;
	} else if (output->balance == RINGCAP_BALANCE_RX_QUEUE) {
		work->seed = work->rx_queue;
		work->home = queues ? work->seed % queues : 0;
	} else {
		work->home = rc_queue(work->seed, queues);
	}
}

/* Finds the queues of the ring's output @number. */
__attribute__((noinline)) int balance_output(__u32 number)
{
	struct work *work = this_work();
	const volatile struct output *output;

	if (!work)
		return 0;
	output = config_element(outputs, number);
	work->except = work->goes[0] = work->goes[1] = NOWHERE;
	if (output->balance == RINGCAP_BALANCE_BOTH_ENDS) {
		balance_both_ends(number);
		return 0;
	}
	work->hashes[0] = balance_hash(work, output);
	balance_choose(work, output);
	work->goes[0] = balance_give(number);
	return 0;
}

/* Computes the hash for a slot in the queue that a rule names. */
__attribute__((noinline)) int balance_direct(__u32 number)
{
	struct work *work = this_work();
	const volatile struct output *target;
	__u64 key[2];

	if (!work)
		return 0;
	target = config_element(targets, number);
	key[0] = target->key[0];
	key[1] = target->key[1];
	work->hashes[0] = rc_flow_hash(&work->flow, target->balance, key);
	return 0;
}

#endif /* RC_BALANCE_H */
