/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fragments that stay with their flow (RINGCAP_FRAGMENTS_WITH_FLOW). Only the first fragment of a datagram has ports. A
 * table of fixed size stores them for the other fragments:
 *
 *	first fragment, datagram unknown	goes with its flow, and so will the others
 *	later fragment, datagram unknown	goes by addresses (and protocol), and so will the others, the first too
 *	any fragment, datagram known		goes where the others went
 *
 * So all fragments of a datagram go to one queue. If the first fragment comes first, this is the queue of the flow. It
 * does not matter on which CPUs they come: the fragment that comes first decides, under the lock of the datagram's
 * bucket.
 *
 * A datagram is forgotten after RC_FRAGMENT_SECONDS, or when its bucket is full of younger datagrams. It is also
 * forgotten when all its bytes have come and another first fragment follows: then another datagram has the same
 * identification.
 */
#ifndef RC_FRAGMENT_H
#define RC_FRAGMENT_H

#include "packet.h"

#define RC_FRAGMENT_SECONDS	30	/* as long as the stack itself waits for the rest of an IPv4 datagram */
#define RC_FRAGMENT_BUCKETS	512
#define RC_FRAGMENT_WAYS	8	/* datagrams per bucket */

struct rc_fragments;

/* A table, or NULL without memory. Each cluster has its own, so that other clusters cannot displace its datagrams. */
struct rc_fragments *rc_fragments_create(void);
void rc_fragments_destroy(struct rc_fragments *fragments);
u64 rc_fragments_memory(const struct rc_fragments *fragments);

/*
 * @flow is that of a fragment: @pkt itself, or a packet inside it. Changes @flow to the flow of the whole datagram, and
 * returns true. Returns false if the fragment goes by the fields that all fragments have. Bottom halves off.
 */
bool rc_fragments_complete(struct rc_fragments *fragments, const struct rc_packet *pkt, struct rc_flow *flow);

#endif /* RC_FRAGMENT_H */
