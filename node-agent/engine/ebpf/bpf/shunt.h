/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shunted flows: those that a queue's consumer needs no more packets of. They are counted instead of delivered.
 *
 * The agent makes a table for an attachment that shunts flows, and is the only one that adds and removes flows:
 * node-agent/engine/ebpf/shunttable.go. Programs look flows up, and count. A table is an array. Its first element has
 * the numbers of the hash. Each other element is a head of a list of flows, and also has room for a flow, which may be
 * in any list. Elements are known by their number, 0 = none. A flow that was removed stays as it is until all programs
 * that may still see it have ended.
 *
 * The hash is that of learnt.h. Nobody who does not know its secret numbers can choose flows of one list.
 */
#ifndef RC_SHUNT_H
#define RC_SHUNT_H

#include "queue.h"
#include "rules.h"

#define SHUNT_LIST_MAX	16	/* flows of a list; the agent refuses another one */
#define SHUNT_SECRETS	9

/**
 * struct shunt - an element of a table
 * @w: the flow's key, as in struct rc_exact_key; unused words are 0
 * @packets, @bytes: of the flow, on the wire
 * @last: when it had its last packet, or was shunted, by the coarse monotonic clock
 * @idle_s: for the agent alone, as in struct ringcap_exact
 * @next: the next flow of the list
 * @head: the first flow of the list of the element's number
 * @swapped: for the agent alone: the consumer named the flow the other way round
 */
struct shunt {
	__u64 w[RC_EXACT_WORDS_IPV6];
	__u64 packets;
	__u64 bytes;
	__u64 last;
	__u32 idle_s;
	__u32 next;
	__u32 head;
	__u32 swapped;
};

/**
 * struct shunt_hash - the first element
 * @shift: of the hash, which gives the list
 * @lost: for the agent alone: of the queue's shunting.lost when the attachment began to shunt, the lower half
 */
struct shunt_hash {
	__u64 secrets[SHUNT_SECRETS];
	__u32 shift;
	__u32 lost;
};

/**
 * struct shunting - what a queue has of shunted flows, by the queue's place
 * @packets, @bytes: of all flows that were ever shunted
 * @lost: flows whose end no consumer was told of; the agent's
 * @flows: how many are shunted now, 0 also while the consumer has no right to it: then nothing is looked up
 * @unread: flows that have ended, and whose end the consumer has not read yet; the agent's
 */
struct shunting {
	__u64 packets;
	__u64 bytes;
	__u64 lost;
	__u32 flows;
	__u32 unread;
};

/* There are QUEUES_MAX of these: see queue.h. */
struct shunting shunting SEC(".data.shunting");

/* The agent makes the tables larger. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(max_entries, 2);
		__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
		__uint(key_size, sizeof(__u32));
		__uint(value_size, sizeof(struct shunt));
	});
} rc_shunts SEC(".maps");

static __always_inline struct shunting *shunting_of(__u64 place)
{
	struct shunting *first = &shunting;

	opaque(first);
	opaque(place);
	place &= QUEUES_MAX - 1;
	return &first[place];
}

static __always_inline int shunting_has_flows(__u32 place)
{
	return *(volatile __u32 *)&shunting_of(place)->flows;
}

#define SHUNT_TIMES(hash, word, a, b) (((word) >> 32) + (hash)->secrets[a]) * ((__u32)(word) + (hash)->secrets[b])

/* The number of the element that has the list of flows with the key @w. */
static __always_inline __u32 shunt_head(const struct shunt_hash *hash, const __u64 w[RC_EXACT_WORDS_IPV6])
{
	__u64 sum = SHUNT_TIMES(hash, w[0], 0, 1) + SHUNT_TIMES(hash, w[1], 2, 3);

	if (w[0] >> 60)
		sum += SHUNT_TIMES(hash, w[2], 4, 5) + SHUNT_TIMES(hash, w[3], 6, 7) + SHUNT_TIMES(hash, w[4], 8, 0);
	return ((sum ^ sum >> 32) * 0x9e3779b97f4a7c15ULL >> hash->shift) + 1;
}

static __always_inline int shunt_is(const struct shunt *shunt, const __u64 w[RC_EXACT_WORDS_IPV6])
{
	return shunt->w[0] == w[0] && shunt->w[1] == w[1] && shunt->w[2] == w[2] && shunt->w[3] == w[3] &&
	       shunt->w[4] == w[4];
}

/* The flow with the key @w in the table of the queue at @place, or NULL. */
static __always_inline struct shunt *shunt_find(__u32 place, const __u64 w[RC_EXACT_WORDS_IPV6])
{
	void *table = bpf_map_lookup_elem(&rc_shunts, &place);
	__u32 at = 0;
	struct shunt_hash *hash;
	struct shunt *shunt;

	if (!table)
		return NULL;
	hash = bpf_map_lookup_elem(table, &at);
	if (!hash)
		return NULL;
	at = shunt_head(hash, w);
	shunt = bpf_map_lookup_elem(table, &at);
	if (!shunt)
		return NULL;
	at = *(volatile __u32 *)&shunt->head;
	for (__u32 i = 0; at && i < SHUNT_LIST_MAX; i++) {
		shunt = bpf_map_lookup_elem(table, &at);
		if (!shunt)
			return NULL;
		if (shunt_is(shunt, w))
			return shunt;
		at = *(volatile __u32 *)&shunt->next;
	}
	return NULL;
}

static __always_inline void shunt_count(struct shunt *shunt, __u32 place, __u64 len)
{
	struct shunting *queue = shunting_of(place);
	__u64 now = bpf_ktime_get_coarse_ns();

	__sync_fetch_and_add(&shunt->packets, 1);
	__sync_fetch_and_add(&shunt->bytes, len);
	if (read_now(shunt->last) != now) /* this changes with the timer's tick */
		shunt->last = now;
	__sync_fetch_and_add(&queue->packets, 1);
	__sync_fetch_and_add(&queue->bytes, len);
}

/* Whether the consumer of the queue at @place has shunted the packet's flow. @count: count it then. */
__attribute__((noinline)) int shunt_takes(__u32 place, __u32 count)
{
	struct work *work = this_work();
	struct shunt *shunt;

	if (!work || !(config.flags & CONFIG_SHUNTS) || !shunting_has_flows(place) || !rules_make_exact_key(work))
		return 0;
	shunt = shunt_find(place, work->exact.w);
	if (!shunt)
		return 0;
	if (count)
		shunt_count(shunt, place, work->len);
	return 1;
}

/* The same for a packet of @len bytes that plain_parse has parsed. It is counted. */
__attribute__((noinline)) int shunt_takes_ipv4(__u32 place, __u64 first, __u64 second, __u32 len)
{
	const __u64 w[RC_EXACT_WORDS_IPV6] = { first, second };
	struct shunt *shunt = shunt_find(place, w);

	if (shunt)
		shunt_count(shunt, place, len);
	return shunt != NULL;
}

#endif /* RC_SHUNT_H */
