/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lanes of a queue: the producer's side of A QUEUE OF THE EBPF ENGINE in kmod/include/uapi/linux/ringcap.h. The letters
 * of barriers in this file are from there. The data map begins with this, before the lanes:
 *
 *	struct ringcap_lane_kernel for each lane	its first word in resv is LANE_RELEASED
 *	a cache line					its first word: how many CPUs have asked for a lane
 *	a byte for each CPU				its lane, plus 1; 0 = it has not asked yet
 *
 * If there are as many lanes as CPUs, each CPU has the lane of its number. Otherwise the first CPUs that ask get lanes
 * 1, 2, ... for as long as the map lives. The others share lane 0, under a lock. The lock is not in this map, because
 * consumers get the map. A lane's producer runs with bottom halves off, and nothing that it waits for does.
 */
#ifndef RC_LANE_H
#define RC_LANE_H

#include "doorbell.h"
#include "work.h"

enum lane_private {
	/*
	 * The position up to which the consumer was last seen to have released, in [its own last value, producer]. Only
	 * the producer writes it.
	 */
	LANE_RELEASED,
};

#define LANE_LINE	64		/* bytes of the line after the struct ringcap_lane_kernel of all lanes */
#define LANE_TRIES	(1U << 17)	/* looks at a lock, some 100 us: the holder may be a VM's stalled processor */

/* Bytes from one lane to the next. */
static __always_inline __u64 lane_stride(const volatile struct output *to)
{
	return (__u64)to->lane_size + RINGCAP_LANE_TAIL;
}

static __always_inline int lane_is_shared(const volatile struct output *to, __u64 number)
{
	return to->lanes < config.cpus && !number;
}

/* Assigns a lane to the CPU; needed at most once for a CPU and map. */
static __always_inline void lane_claim(void *line, __u8 *mine, __u32 lanes)
{
	__u64 number = __sync_fetch_and_add((__u64 *)line, 1) + 1;

	*mine = number < lanes ? number + 1 : 1;
}

/* The lane that the CPU puts packets into. It may not be below to->lanes if the memory has been corrupted. */
static __always_inline __u64 lane_number(void *data, const volatile struct output *to, __u64 cpu)
{
	void *line = data + to->lanes * sizeof(struct ringcap_lane_kernel);
	__u8 *mine;

	if (to->lanes >= config.cpus)
		return cpu;
	if (to->lanes == 1)
		return 0;
	cpu &= config.cpu_mask;
	mine = line + LANE_LINE + cpu;
	if (!*mine)
		lane_claim(line, mine, to->lanes);
	return (__u64)*mine - 1;
}

static long lane_try(__u32 i __attribute__((unused)), void *ctx)
{
	struct bell **bell = ctx;

	return !read_now((*bell)->lock) && !__sync_lock_test_and_set(&(*bell)->lock, 1);
}

/* Takes the lock of the queue's lane 0. Returns whether this CPU has it, until lane_unlock. */
static __always_inline int lane_lock(struct bell *bell)
{
	if (!__sync_lock_test_and_set(&bell->lock, 1))
		return 1;
	return bpf_loop(LANE_TRIES, lane_try, &bell, 0) < LANE_TRIES;
}

static __always_inline void lane_unlock(struct bell *bell)
{
	__sync_lock_test_and_set(&bell->lock, 0);
}

/*
 * The position up to which the consumer has released lane @number, with @producer published: (D) pairs with (C).
 * Invalid values are not used. A CPU that only looks at a lane may see an older value than the lane's producer has
 * written since.
 */
static __always_inline __u64 lane_released(const struct ringcap_lane_kernel *lane, const struct ringcap_consumer_page *page,
					   __u64 number, __u64 producer)
{
	__u64 last = read_now(lane->resv[LANE_RELEASED]), claimed;

	if ((__s64)(producer - last) < 0)
		return producer;
	if (number >= RINGCAP_LANES_MAX)
		return last;
	claimed = read_now(page->lane[number].released);
	return claimed % 8 || claimed - last > producer - last ? last : claimed;
}

/* Whether @size bytes fit. */
static __always_inline int lane_has_room(const struct ringcap_lane_kernel *lane, const struct ringcap_consumer_page *page,
					 const volatile struct output *to, __u64 number, __u64 size)
{
	__u64 producer = read_now(lane->producer);

	return producer + size - lane_released(lane, page, number, producer) <= to->lane_size;
}

/* The same for the lane's producer. It reads the consumer's page only when it has to, and remembers the value. */
static __always_inline int lane_make_room(struct ringcap_lane_kernel *lane, const struct ringcap_consumer_page *page,
					  const volatile struct output *to, __u64 number, __u64 size)
{
	__u64 end = lane->producer + size, released;

	if (end - lane->resv[LANE_RELEASED] <= to->lane_size)
		return 1;
	released = lane_released(lane, page, number, lane->producer);
	lane->resv[LANE_RELEASED] = released;
	return end - released <= to->lane_size;
}

/*
 * The slot at @position of lane @number. The verifier sees that RINGCAP_LANE_TAIL bytes from there on are in the map.
 */
static __always_inline struct ringcap_slot *lane_slot(void *data, const volatile struct output *to, __u64 number,
						      __u64 position)
{
	__u64 at = position & (to->lane_size - 8), stride = lane_stride(to);

	opaque(at);
	/* Linux 6.1 bounds a product if its second factor is known. */
	asm volatile("%0 *= %1" : "+r"(number) : "r"(stride));
	return data + (to->head_size + number + at);
}

#endif /* RC_LANE_H */
