/* SPDX-License-Identifier: Apache-2.0 */
/* The greatest rate at which the card, the kernel and the readers of an experiment together lose nothing. */
#ifndef RB_RATE_H
#define RB_RATE_H

#include "measure.h"

/* The machine is "idle" or "busy". The PCI addresses of the card that sends and of the one that receives. */
void rate_open(const char *load, const char *sender, const char *receiver);

/*
 * Prints a line "trial ..." for each rate that is tried, and "rate CASE WHO QUEUES SIZE LOAD RATE BOUND": packets a second;
 * BOUND is "lower" where the sender could not send faster, else "exact". A packet that nobody accounts
 * for ends the program.
 */
void rate_find(const struct experiment *e, unsigned int size);

#endif /* RB_RATE_H */
