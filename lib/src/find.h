/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the queues that this process was given, as device nodes and hand-over sockets. */
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

/* Returns the folder of an origin's queues: RINGCAP_DEV_DIR or RINGCAP_RUN_DIR in the environment, or the default. */
const char *find_base(enum origin origin);

/* Writes the path of a queue's device node or hand-over socket. Returns 0 or -ENAMETOOLONG. */
int find_path(const struct found *found, char *path, size_t size);

/*
 * Lists queues, sorted by name and queue. If name is not NULL, lists only the queues of that name. Returns their number
 * or -ENOMEM. The caller frees the list. A queue of both origins is listed once, as a device. Folders that cannot be
 * read count as empty.
 */
int find_queues(const char *name, struct found **list);

#endif
