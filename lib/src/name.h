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

/* Returns true if the n bytes are a valid name of a ring or cluster. */
bool name_valid(const char *name, size_t n);

/* Returns a queue's number, or -1 unless text is decimal digits only, without leading zeros, and in range. */
int queue_number(const char *text);

/* Parses text. Returns 0, or -EINVAL with a reason (a constant string). */
int name_parse(const char *text, struct queue_name *out, const char **why);

#endif
