/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue of the eBPF engine: a BPF ring buffer that the agent handed over, and the connection to the agent. */
#ifndef RINGCAP_EBPF_H
#define RINGCAP_EBPF_H

#include <limits.h>

#include <ringcap/ringcap.h>

#include "records.h"

/*
 * The connection. It tells the agent that the queue is attended; the packets do not depend on it.
 *
 *   LINK_DOWN --a second passed, connected and asked--> LINK_ASKED --granted--> LINK_UP
 *       ^-----------------hung up, refused, or no answer------------'-----------'
 */
enum link_state { LINK_DOWN, LINK_ASKED, LINK_UP };

struct ebpf {
	char path[PATH_MAX];		/* of the hand-over socket */
	enum link_state link;
	int link_fd;			/* -1 when down */
	int timer_fd;			/* ticks once a second while the link is not up */
	unsigned int ticks_waited;	/* for the agent's answer, or since its socket is gone */
	int map_fd;
	int stats_fd;
	uint32_t map_id;
	uint32_t nr_stats;
	void *consumer_page;
	const void *producer_pages;	/* the producer's page, then the data twice */
	const struct ringcap_lane_stats *stats;
	struct records records;
};

/* Attaches the handle by the socket at path; 0, or -errno with the reason in errbuf and nothing left behind. */
int ebpf_open(struct ringcap *h, const char *path, char *errbuf);

#endif
