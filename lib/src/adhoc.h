/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ad hoc captures. The module creates a ring for the handle and, unless the ring joins a cluster, a cluster.
 * It deletes them when the handle is closed or the process ends.
 */
#ifndef RINGCAP_ADHOC_H
#define RINGCAP_ADHOC_H

#include <ringcap/ringcap.h>

#include "control.h"

struct adhoc {
	char name[RINGCAP_NAME_MAX + 1];	/* the ring's name, and the cluster's unless the ring joined another */
	char cluster[RINGCAP_NAME_MAX + 1];
	uint32_t ifindex;
	bool made_nodes;			/* we created the device nodes: this /dev has none */
	struct ringcap_capture how;		/* without its pointers */
	struct control control;
};

/* Creates the ring and its cluster. On failure, returns NULL, sets errno, and puts the reason into errbuf. */
struct adhoc *adhoc_open(const char *interface, const struct ringcap_capture *how, char *errbuf);
void adhoc_close(struct adhoc *a);

#endif
