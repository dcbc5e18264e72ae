/* SPDX-License-Identifier: Apache-2.0 */
/* Sends packets at a rate on a machine that may be busy, and finds the greatest rate of a ladder without loss. */
#ifndef RB_LOAD_H
#define RB_LOAD_H

#include <stdbool.h>
#include <sys/types.h>

#define HOG_PERIOD_US	250000
#define HOG_BUSY_US	200000		/* of a period */
#define STEP_PERCENT	112		/* from one rate of the ladder to the next */

/* Gives this process, the sender, a real-time priority above the hog's. Its child processes have normal priority. */
void load_prefer(void);

/*
 * Sets the priority of the kernel thread that takes the packets that interrupts leave: above the hog, or normal. If it
 * is not above the hog, the hog keeps packets in the card, whichever reader runs.
 */
void softirqs_prefer(bool above);

/* Starts a real-time process that uses its CPU for HOG_BUSY_US of each period. hog_end ends it. */
pid_t hog_start(void);
void hog_end(pid_t hog);

/* Returns when the hog's busy time has just ended, or would have ended. */
void hog_await(void);

/* Sends count packets at rate per second: every tick_us, those that are due. Returns true if it took a tenth longer. */
bool send_paced(unsigned int rate, unsigned int count, unsigned int tick_us, void (*send)(unsigned int count));

/* Returns step i, in packets per second, of the ladder that starts with first. */
unsigned int ladder_rate(unsigned int first, unsigned int i);

/* Returns the greatest good step, found by bisection or near guess. -1 as guess: no guess; as result: no good step. */
int ladder_climb(unsigned int steps, int guess, bool (*good)(unsigned int step, void *arg), void *arg);

#endif /* RB_LOAD_H */
