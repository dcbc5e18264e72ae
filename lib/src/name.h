/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of queues as users write them: "NAME" or "NAME@QUEUE". */
#ifndef RINGCAP_NAME_H
#define RINGCAP_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/ringcap.h>

#define QUEUE_ANY (-1)

struct queue_name {
	char name[RINGCAP_NAME_MAX + 1];
	int queue;	/* QUEUE_ANY or 0 .. RINGCAP_QUEUES_MAX - 1 */
};

/* Whether the n bytes are a ring's or cluster's name. */
bool name_valid(const char *name, size_t n);

/* A queue's number: decimal digits only, no leading zeros, in range; -1 otherwise. */
int queue_number(const char *text);

/* Takes text apart; returns 0, or -EINVAL with a reason (a constant string). */
int name_parse(const char *text, struct queue_name *out, const char **why);

#endif
