/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fragments that stay with their flow (RINGCAP_FRAGMENTS_WITH_FLOW). Only a datagram's first fragment has ports; a
 * table of fixed size remembers them for the others:
 *
 *	first fragment, nothing known yet	goes with its flow, and so will the others
 *	later fragment, nothing known yet	goes by addresses (and protocol), and so will the others, the first too
 *	either, something known			goes where the others went
 *
 * So all fragments of a datagram are in one queue, and in that of its flow if the first comes first, on whatever CPUs
 * they come: who comes first decides under the lock of the datagram's bucket. What is known is forgotten after
 * RC_FRAGMENT_SECONDS, when a bucket is full of younger datagrams, or when a first fragment follows the last byte: then
 * another datagram has the same identification.
 */
#ifndef RC_FRAGMENT_H
#define RC_FRAGMENT_H

#include "packet.h"

#define RC_FRAGMENT_SECONDS	30	/* what the stack itself waits for the rest of an IPv4 datagram */
#define RC_FRAGMENT_BUCKETS	512
#define RC_FRAGMENT_WAYS	8	/* datagrams of a bucket */

struct rc_fragments;

/* A table, or NULL without memory. One table is one cluster's, so that others cannot crowd out its datagrams. */
struct rc_fragments *rc_fragments_create(void);
void rc_fragments_destroy(struct rc_fragments *fragments);
u64 rc_fragments_memory(const struct rc_fragments *fragments);

/*
 * Makes of @flow, a fragment's in @pkt (the packet itself or one inside), what it would be if the datagram were whole,
 * and returns true; or false where it goes by what fragments have in common. Bottom halves off.
 */
bool rc_fragments_complete(struct rc_fragments *fragments, const struct rc_packet *pkt, struct rc_flow *flow);

#endif /* RC_FRAGMENT_H */
