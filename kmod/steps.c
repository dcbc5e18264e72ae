// SPDX-License-Identifier: GPL-2.0-only

#include "steps.h"

#include "plugin.h"
#include "sample.h"
#include "vlans.h"

enum rc_fate rc_steps_run(struct rc_ring *ring, const struct rc_ring_config *config, struct rc_packet *pkt)
{
	if (config->hwtstamp)
		rc_packet_device_time(pkt);
	if (config->vlans && !rc_vlans_pass(config->vlans, pkt))
		return RC_FATE_FILTERED;
	if (config->plugins && !rc_plugins_pass(config->plugins, pkt))
		return RC_FATE_FILTERED;
	if (config->sample.n > 1 && !rc_sample_keep(&config->sample, pkt))
		return RC_FATE_SAMPLED_OUT;
	return RC_FATE_PASSED;
}
