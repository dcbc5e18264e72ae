/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers on command lines. */
#ifndef NUMBER_H
#define NUMBER_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* Parses all of text as a number from 0 to max. */
static inline bool parse_number(const char *text, double max, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	return !errno && end != text && !*end && *out >= 0 && *out <= max;
}

#endif
