/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The senders. One is the workload itself. Several are processes, each on a processor of its own, which also receives what
 * it sends: a flow is always on one processor, as with a card that has a receive queue for each.
 */
#ifndef RB_PRODUCERS_H
#define RB_PRODUCERS_H

#define PRODUCERS_MAX	8

/* How many; a power of two. Several are on the first processors, and as many others are the readers'. */
extern unsigned int nr_producers;

/* From now on the calling process is on that processor, if there are several producers. */
void pin(unsigned int processor);

/* Starts them: what traffic_build made can be sent, in packets of that size, until producers_stop. */
void producers_start(unsigned int size);
void producers_stop(void);

/* Sends count packets in all, a multiple of BURST, and lets readers run after each burst. */
void producers_send(unsigned int count);

#endif /* RB_PRODUCERS_H */
