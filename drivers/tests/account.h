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

/* The packets that a driver's receive counter covers. */
enum rt_counter {
	RT_COUNTER_EXACT,	/* packets that the driver handled: as many as the ring has seen */
	RT_COUNTER_DEVICE,	/* packets that the device took; a reset may lose some; read while there is a link */
	RT_COUNTER_RESET,	/* the counter starts at 0 again with each reset */
};

/**
 * struct rt_account - a ring and the counters with which it is compared
 * @interface: the ring's interface; a case that renames the interface changes this
 * @counter: what the driver counts
 * @mode: the ring's transparent mode, 0 = the mode changed meanwhile
 * @cluster, @queue: the destination of the ring's packets
 * @stack: counts the packets that the stack gets, on all interfaces of this namespace
 * @watch: see watch.h
 * @before: packets that the driver had counted before the start
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

/* Puts the ring on @interface. The interface is up and gets the packets that @peer sends. One account at a time. */
void rt_account_open(struct rt_account *account, const char *interface, enum rt_counter counter, u32 mode, const char *peer);

/* Changes the ring's mode under traffic. */
void rt_account_change_mode(struct rt_account *account, u32 mode);

/* Waits until the ring has seen some more packets. */
void rt_account_wait(const struct rt_account *account);

/* Called before the interface goes. Waits for its carrier: without it, drivers do not add up received packets. */
void rt_account_leave(const struct rt_account *account);

/* Compares all counters, and removes the ring. The interface has gone, or is set down. */
void rt_account_close_gone(struct rt_account *account);
void rt_account_close(struct rt_account *account);

#endif /* RT_ACCOUNT_H */
