// SPDX-License-Identifier: GPL-2.0-only

#include "receive.h"

#include "defrag.h"

enum rc_fate rc_ring_decide(struct rc_ring *ring, const struct rc_ring_config *config, struct sk_buff *skb,
			    u32 wire_len, u32 ifindex)
{
	struct rc_packet pkt rc_uninitialized;
	enum rc_fate fate = RC_FATE_PASSED;

	rc_packet_init(&pkt, skb, wire_len, config->snaplen, ifindex);
	if (rc_steps_any(config)) {
		if (config->defrag && rc_defrag_wants(&pkt))
			return rc_defrag_receive(ring, config, &pkt);
		fate = rc_steps_run(ring, config, &pkt);
	}
	if (fate == RC_FATE_PASSED)
		rc_ring_deliver(config, &pkt);
	return fate;
}
