/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the interfaces of packets, by number, from the file that the node agent writes for consumers. */
#ifndef IFNAME_H
#define IFNAME_H

#include <stdint.h>

struct ifname {
	char interface[32];	/* empty = unknown */
	char pod[320];		/* NAMESPACE/NAME, empty if the interface belongs to no pod */
};

/*
 * Looks up interface ifindex among the interfaces from which the queues called name get or got packets. It searches the
 * file interfaces/names next to the queues. The agent keeps a line there for each interface, even after it is gone.
 */
void ifname_find(struct ifname *found, const char *name, uint32_t ifindex);

#endif
