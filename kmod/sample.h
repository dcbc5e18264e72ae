/* SPDX-License-Identifier: GPL-2.0-only */
/* Sampling: selects one in N packets, or one in N flows. */
#ifndef RC_SAMPLE_H
#define RC_SAMPLE_H

#include <linux/random.h>
#include <linux/ringcap.h>

#include "packet.h"

struct netlink_ext_ack;
struct nlattr;

/**
 * struct rc_sample - selects the packets of a sample
 * @n: one in N, 0 and 1 = all
 * @by: enum ringcap_sample
 * @key: of the hash of flows. The module has one key for all rings and for as long as it is loaded. So rings that
 *	sample alike have the same flows. The clusters choose queues by other keys, so each queue gets a share of a
 *	sample
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
 * A fragment belongs to a flow of its own, by addresses and protocol, because only the first one knows the ports. A
 * packet that is not IP belongs to the flow of its MAC addresses and ethertype.
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
