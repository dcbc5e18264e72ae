/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the interfaces whose numbers are with packets, from the file that the node's agent writes for consumers. */
#ifndef IFNAME_H
#define IFNAME_H

#include <stdint.h>

struct ifname {
	char interface[32];	/* empty = not known */
	char pod[320];		/* NAMESPACE/NAME, empty for an interface that is no pod's */
};

/*
 * Looks up interface ifindex among those whose packets the queues called name get or got: in the file interfaces/names
 * beside them, in which the agent has a line for each, also after it is gone.
 */
void ifname_find(struct ifname *found, const char *name, uint32_t ifindex);

#endif
