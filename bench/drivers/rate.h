/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the greatest rate at which the card, the kernel and the readers of an experiment together lose nothing. */
#ifndef RB_RATE_H
#define RB_RATE_H

#include "measure.h"

/* load is "idle" or "busy", for the machine. sender and receiver are the PCI addresses of the two cards. */
void rate_open(const char *load, const char *sender, const char *receiver);

/*
 * Prints a line "trial ..." for each rate that it tries, and "rate CASE WHO QUEUES SIZE LOAD RATE BOUND". RATE is in
 * packets per second. BOUND is "lower" if the sender could not send faster, else "exact". The program ends if any
 * packet is not accounted for.
 */
void rate_find(const struct experiment *e, unsigned int size);

#endif /* RB_RATE_H */
