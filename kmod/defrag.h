/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Defragmentation (RINGCAP_A_DEFRAG): the kernel's own reassembly of IPv4 on behalf of a ring, with its limits of
 * memory and time (net.ipv4.ipfrag_*) in the ring's network namespace, of which the last half of the memory is left to
 * the stack. What that does with the same fragments it does for itself: it sees them as they came.
 *
 * Each tap and direction reassembles for itself, for a datagram may pass several. What waits is absorbed; what never
 * becomes complete stays so.
 */
#ifndef RC_DEFRAG_H
#define RC_DEFRAG_H

#include "account.h"
#include "packet.h"

struct rc_ring;
struct rc_ring_config;

int rc_defrag_module_init(void);
void rc_defrag_module_exit(void);

/* @pkt is a fragment of an IPv4 datagram. Parses it. */
bool rc_defrag_wants(struct rc_packet *pkt);

/*
 * What becomes of such a fragment, or of the datagram that it completes, which goes the rest of the way as one packet.
 * Where memory is short, or half of the namespace's for fragments is used, the fragment goes on as it is. Bottom halves
 * off, under RCU.
 */
enum rc_fate rc_defrag_receive(struct rc_ring *ring, const struct rc_ring_config *config, struct rc_packet *fragment);

#endif /* RC_DEFRAG_H */
