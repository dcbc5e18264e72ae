/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A TCP connection between two hosts, each a network namespace of its own with one of the case's interfaces. Its packets are large
 * ones that are still to be taken apart, with checksums that are still to be computed.
 */
#ifndef RT_TCP_H
#define RT_TCP_H

#include "test.h"

struct rt_tcp {
	int there[2];	/* the namespaces */
	int client, server;
};

/* Moves interfaces @from and @to to the two hosts, and connects them. */
void rt_tcp_open(struct rt_tcp *tcp, const char *from, const char *to);

/* Sends 2 MiB; each byte must arrive. */
void rt_tcp_run(struct rt_tcp *tcp);
void rt_tcp_close(struct rt_tcp *tcp);

#endif /* RT_TCP_H */
