// SPDX-License-Identifier: BSD-2-Clause
#include "name.h"

#include <errno.h>
#include <string.h>

static bool alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool name_valid(const char *name, size_t n)
{
	if (n < 1 || n > RINGCAP_NAME_MAX || !alphanumeric(name[0]) || !alphanumeric(name[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!alphanumeric(name[i]) && name[i] != '-' && name[i] != '.')
			return false;
	return true;
}

int queue_number(const char *text)
{
	size_t n = strlen(text);
	int v = 0;

	if (n < 1 || n > 3 || (n > 1 && text[0] == '0'))
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		v = v * 10 + (*text - '0');
	}
	return v < RINGCAP_QUEUES_MAX ? v : -1;
}

int name_parse(const char *text, struct queue_name *out, const char **why)
{
	const char *at = strchr(text, '@');
	size_t n = at ? (size_t)(at - text) : strlen(text);

	if (!name_valid(text, n)) {
		*why = "a name is 1 to 63 of a-z, 0-9, '-' and '.', and begins and ends with a letter or digit";
		return -EINVAL;
	}
	memcpy(out->name, text, n);
	out->name[n] = '\0';
	out->queue = QUEUE_ANY;
	if (!at)
		return 0;
	out->queue = queue_number(at + 1);
	if (out->queue < 0) {
		*why = "what follows '@' is a queue's number, 0 to 255";
		return -EINVAL;
	}
	return 0;
}
