/* SPDX-License-Identifier: Apache-2.0 */
/* Packets at a rate, on a machine that may be busy, and the greatest rate of a ladder that something can bear. */
#ifndef RB_LOAD_H
#define RB_LOAD_H

#include <stdbool.h>
#include <sys/types.h>

#define HOG_PERIOD_US	250000
#define HOG_BUSY_US	200000		/* of a period */
#define STEP_PERCENT	112		/* from one rate of the ladder to the next */

/* This process sends: at a real-time priority above the hog's; the processes that it starts are ordinary ones. */
void load_prefer(void);

/*
 * The kernel thread that takes packets when interrupts leave them is above the hog, or an ordinary one. Where it is not above,
 * the hog keeps packets in the card, whichever reader runs.
 */
void softirqs_prefer(bool above);

/* A process that takes its processor at a real-time priority for HOG_BUSY_US of each period; to be ended by hog_end. */
pid_t hog_start(void);
void hog_end(pid_t hog);

/* Returns when the hog has just had its time, or would have. */
void hog_await(void);

/* Sends count packets at rate a second, each tick_us what is due; whether it took a tenth longer than that. */
bool send_paced(unsigned int rate, unsigned int count, unsigned int tick_us, void (*send)(unsigned int count));

/* Step i of the ladder that begins with first, packets a second. */
unsigned int ladder_rate(unsigned int first, unsigned int i);

/* The greatest step of steps that is good, by bisection, or near the step that is guessed; -1 = none is, or no guess. */
int ladder_climb(unsigned int steps, int guess, bool (*good)(unsigned int step, void *arg), void *arg);

#endif /* RB_LOAD_H */
