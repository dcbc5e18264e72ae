/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue of the eBPF engine: the BPF maps that the agent handed over, and the connection to the agent. */
#ifndef RINGCAP_EBPF_H
#define RINGCAP_EBPF_H

#include <limits.h>

#include <ringcap/ringcap.h>

#include "doorbell.h"
#include "lanes.h"
#include "shunt_socket.h"

/*
 * The connection to the agent. It tells the agent that the queue is attended. Packets arrive without it too.
 *
 *   LINK_DOWN --a second passed, connected and asked--> LINK_ASKED --granted--> LINK_UP
 *       ^-----------------hung up, refused, or no answer------------'-----------'
 */
enum link_state { LINK_DOWN, LINK_ASKED, LINK_UP };

struct ebpf {
	char path[PATH_MAX];		/* path of the hand-over socket */
	enum link_state link;
	int link_fd;			/* -1 when down */
	int timer_fd;			/* ticks once a second while the link is not up */
	unsigned int ticks_waited;	/* ticks spent waiting for the agent's answer, or since its socket was gone */
	uint32_t map_id;		/* of the data map */
	int bell_fd;
	struct shunt_socket shunts;
	const struct ringcap_lane_kernel *kernel;	/* the data map: heads of lanes, then the lanes */
	size_t data_size;
	struct ringcap_consumer_page *consumer;
	void *bell_consumer;		/* the ring buffer's pages with the consumer's position */
	const void *bell_producer;	/* the pages with the producer's position */
	struct doorbell doorbell;
	struct lanes lanes;
};

/* Attaches the handle through the socket at path. Returns 0 or, after cleaning up, -errno with the reason in errbuf. */
int ebpf_open(struct ringcap *h, const char *path, char *errbuf);

#endif
