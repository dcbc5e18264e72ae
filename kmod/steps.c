// SPDX-License-Identifier: GPL-2.0-only

#include "steps.h"

enum rc_fate rc_steps_run(struct rc_ring *ring, const struct rc_ring_config *config, struct rc_packet *pkt)
{
	return RC_FATE_PASSED;
}
