/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ad hoc captures: a ring and, unless it joins one, a cluster that the module has for this handle and takes away when it
 * is closed, or its process ends.
 */
#ifndef RINGCAP_ADHOC_H
#define RINGCAP_ADHOC_H

#include <ringcap/ringcap.h>

#include "control.h"

struct adhoc {
	char name[RINGCAP_NAME_MAX + 1];	/* of the ring, and of the cluster unless it joined another's */
	char cluster[RINGCAP_NAME_MAX + 1];
	uint32_t ifindex;
	bool made_nodes;			/* the device nodes are ours: the module's are not in this /dev */
	struct ringcap_capture how;		/* without its pointers */
	struct control control;
};

/* Makes the ring and its cluster. NULL and errno when that fails, with the reason in errbuf. */
struct adhoc *adhoc_open(const char *interface, const struct ringcap_capture *how, char *errbuf);
void adhoc_close(struct adhoc *a);

#endif
