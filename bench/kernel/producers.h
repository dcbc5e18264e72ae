/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The senders. A single sender is the workload itself. Several senders are processes, each on its own CPU. That CPU
 * also receives what the process sends. So each flow stays on one CPU, as with a card with a receive queue per CPU.
 */
#ifndef RB_PRODUCERS_H
#define RB_PRODUCERS_H

#define PRODUCERS_MAX	8

/* The number of senders, a power of two. Several use the first CPUs; readers use the same number of other CPUs. */
extern unsigned int nr_producers;

/* Binds the calling process to that CPU, if there are several producers. */
void pin(unsigned int processor);

/* Starts the senders. Until producers_stop, they can send the packets of traffic_build, in that size. */
void producers_start(unsigned int size);
void producers_stop(void);

/* Sends count packets in all and lets readers run after each burst. count is a multiple of BURST. */
void producers_send(unsigned int count);

#endif /* RB_PRODUCERS_H */
