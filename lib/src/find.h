/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues that this process was given, as device nodes and hand-over sockets. */
#ifndef RINGCAP_FIND_H
#define RINGCAP_FIND_H

#include <limits.h>
#include <stddef.h>

#include "name.h"

enum origin { ORIGIN_DEV, ORIGIN_RUN };

struct found {
	char name[RINGCAP_NAME_MAX + 1];
	int queue;
	enum origin origin;
};

/* The folder of an origin's queues: RINGCAP_DEV_DIR or RINGCAP_RUN_DIR of the environment, or its usual one. */
const char *find_base(enum origin origin);

/* Writes the path of a queue's device node or hand-over socket; 0 or -ENAMETOOLONG. */
int find_path(const struct found *found, char *path, size_t size);

/*
 * Lists queues in order of name and queue, those of one name when name is not NULL. Returns their number and the list,
 * which the caller frees, or -ENOMEM. A queue of both origins is listed once, as a device. Folders that cannot be read
 * count as empty.
 */
int find_queues(const char *name, struct found **list);

#endif
