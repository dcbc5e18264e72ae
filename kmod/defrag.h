/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Defragmentation (RINGCAP_A_DEFRAG): the kernel's own IPv4 reassembly on behalf of a ring. The limits of memory and
 * time (net.ipv4.ipfrag_*) are those of the ring's network namespace. The last half of the memory is left to the stack.
 * The stack reassembles the same fragments independently: it sees them as they came.
 *
 * A datagram may pass several taps, so each tap and direction reassembles independently. A fragment that waits counts
 * as absorbed. It remains absorbed if its datagram never becomes complete.
 */
#ifndef RC_DEFRAG_H
#define RC_DEFRAG_H

#include "account.h"
#include "packet.h"

struct rc_ring;
struct rc_ring_config;

int rc_defrag_module_init(void);
void rc_defrag_module_exit(void);

/* Parses @pkt, and returns whether it is a fragment of an IPv4 datagram. */
bool rc_defrag_wants(struct rc_packet *pkt);

/*
 * Processes such a fragment, and returns its fate. If it completes a datagram, that continues as one packet, and the
 * fate is that of the datagram. If memory is short, or half of the namespace's memory for fragments is used, the
 * fragment continues as it is. Bottom halves off, under RCU.
 */
enum rc_fate rc_defrag_receive(struct rc_ring *ring, const struct rc_ring_config *config, struct rc_packet *fragment);

#endif /* RC_DEFRAG_H */
