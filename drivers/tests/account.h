/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ring on a network card under traffic, from the card's first packet to its last, through every change in between.
 * All counters must add up then.
 */
#ifndef RT_ACCOUNT_H
#define RT_ACCOUNT_H

#include "consumer.h"
#include "flood.h"
#include "test.h"

/* What a driver's count of received packets covers. */
enum rt_counter {
	RT_COUNTER_EXACT,	/* those that the driver had in its hands: as many as the ring has seen */
	RT_COUNTER_DEVICE,	/* those that the device took, of which a reset may lose some; read while there is a link */
	RT_COUNTER_RESET,	/* it starts again with each reset */
};

/**
 * struct rt_account - a ring and what there is to compare it with
 * @interface: where the ring is; a case that renames it changes this
 * @counter: what its driver counts
 * @mode: the ring's transparent mode, 0 = it changed on the way
 * @cluster, @queue: where the ring's packets go
 * @stack: counts what the stack gets, on all interfaces of this namespace
 * @watch: see watch.h
 * @before: packets that the driver had counted before
 */
struct rt_account {
	const char *interface;
	enum rt_counter counter;
	u32 mode;
	char cluster[32];
	struct rt_queue queue;
	struct rt_flood flood;
	int stack;
	int watch;
	u64 before;
};

/* Puts the ring on @interface, which is up and gets what @peer sends; one account at a time. */
void rt_account_open(struct rt_account *account, const char *interface, enum rt_counter counter, u32 mode, const char *peer);

/* Changes the ring's mode under traffic. */
void rt_account_change_mode(struct rt_account *account, u32 mode);

/* Waits until the ring has seen some more packets. */
void rt_account_wait(const struct rt_account *account);

/* Before the interface goes: waits for its carrier, without which drivers don't add up what they have received. */
void rt_account_leave(const struct rt_account *account);

/* Compares all accounts, and takes the ring away. The interface has gone, or is taken down. */
void rt_account_close_gone(struct rt_account *account);
void rt_account_close(struct rt_account *account);

#endif /* RT_ACCOUNT_H */
