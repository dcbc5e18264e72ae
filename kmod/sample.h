/* SPDX-License-Identifier: GPL-2.0-only */
/* Sampling: one packet, or one flow, in so many. */
#ifndef RC_SAMPLE_H
#define RC_SAMPLE_H

#include <linux/random.h>
#include <linux/ringcap.h>

#include "packet.h"

struct netlink_ext_ack;
struct nlattr;

/**
 * struct rc_sample - which packets are in a sample
 * @n: one in so many, 0 and 1 = all
 * @by: enum ringcap_sample
 * @key: of the hash of flows. The module's own, the same for all rings and for as long as it is loaded: rings that
 *	sample alike have the same flows, and the clusters' queues, which other keys choose, each get a share
 */
struct rc_sample {
	u32 n;
	u32 by;
	u64 key[2];
};

/* From RINGCAP_A_SAMPLE and _SAMPLE_BY, which may be NULL. Under rc_net.control. */
int rc_sample_init(struct rc_sample *sample, const struct nlattr *n, const struct nlattr *by,
		   struct netlink_ext_ack *extack);

/*
 * Fragments are flows of their own, by addresses and protocol, since only the first knows the ports. Whatever is not IP
 * is of the flow of its MAC addresses and ethertype.
 */
static inline bool rc_sample_keep(const struct rc_sample *sample, struct rc_packet *pkt)
{
	if (sample->by == RINGCAP_SAMPLE_RANDOM)
		return !get_random_u32_below(sample->n);
	if (pkt->parsed == RC_PARSED_NOTHING)
		rc_packet_parse(pkt);
	return !rc_queue(rc_flow_hash(&pkt->flow, RINGCAP_BALANCE_FIVE_TUPLE, sample->key), sample->n);
}

#endif /* RC_SAMPLE_H */
