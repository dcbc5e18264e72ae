/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stages: what a ring does to a packet between its BPF filter and its clusters, in the order of THE WAY OF A PACKET in
 * linux/ringcap.h. Most rings have no stages; they pay one test for all of them.
 */
#ifndef RC_STAGES_H
#define RC_STAGES_H

#include "account.h"
#include "packet.h"
#include "ring.h"
#include "verdict.h"

/* Notes in @config, which is new, whether a ring has any stages. Under rc_net.control. */
void rc_stages_note(const struct rc_ring *ring, struct rc_ring_config *config);

/* The same for the configuration that packets see, after the ring has got or lost a rule set. Under rc_net.control. */
void rc_stages_update(struct rc_ring *ring);

static __always_inline bool rc_stages_any(const struct rc_ring_config *config)
{
	return READ_ONCE(config->has_stages);
}

/*
 * Decides on @pkt, and collects in it the data that this needs. A packet that is not PASSED needs no more work: it was
 * sent, put into the queue that a rule names, or kept. Bottom halves off, under RCU.
 */
enum rc_fate rc_stages_run(struct rc_ring *ring, const struct rc_ring_config *config, struct rc_packet *pkt);

/* The same for a packet of a ring that has no stages besides @rules, which have decided. */
enum rc_fate rc_stages_obey(struct rc_ring *ring, const struct rc_rules *rules, struct rc_verdict verdict,
			    struct rc_packet *pkt);

#endif /* RC_STAGES_H */
