// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suricata's counters, each since the queue was opened:
 *
 *     capture.kernel_packets           packets for the queue, the lost ones among them, as with Suricata's own methods
 *     capture.kernel_drops             lost ones, the sum of
 *     capture.ringcap.drops.REASON     those lost for one reason
 *     capture.ringcap.filtered         packets that Suricata's own filter rejected
 *     capture.ringcap.shunted          packets of bypassed flows that the kernel module kept away, in no other counter
 *     capture.ringcap.shunted_bytes    their bytes on the wire
 *     capture.ringcap.unshunted        bypassed flows that were not shunted, for whatever reason
 */
#include "capture.h"

enum { PACKETS, DROPS, FILTERED, SHUNTED, SHUNTED_BYTES, UNSHUNTED, REASONS };

static const char *const names[] = {
	[PACKETS] = "capture.kernel_packets",
	[DROPS] = "capture.kernel_drops",
	[FILTERED] = "capture.ringcap.filtered",
	[SHUNTED] = "capture.ringcap.shunted",
	[SHUNTED_BYTES] = "capture.ringcap.shunted_bytes",
	[UNSHUNTED] = "capture.ringcap.unshunted",
	[REASONS + RINGCAP_DROP_FULL] = "capture.ringcap.drops.full",
	[REASONS + RINGCAP_DROP_UNATTENDED] = "capture.ringcap.drops.unattended",
	[REASONS + RINGCAP_DROP_NOMEM] = "capture.ringcap.drops.nomem",
};

#define NAMED (sizeof(names) / sizeof(*names))

_Static_assert(NAMED == sizeof(((struct reader *)0)->counters) / sizeof(uint16_t), "each has a number");

void stats_register(struct reader *reader)
{
	for (size_t i = 0; i < NAMED; i++)
		reader->counters[i] = StatsRegisterCounter(names[i], reader->tv);
}

static void tell(struct reader *reader, size_t counter, uint64_t value)
{
	StatsSetUI64(reader->tv, reader->counters[counter], value);
}

static void tell_device(struct reader *reader, uint64_t drops)
{
	compat_count(reader->device, reader->read - reader->told_read, drops - reader->told_drops);
	reader->told_read = reader->read;
	reader->told_drops = drops;
}

static void tell_shunted(struct reader *reader)
{
	struct ringcap_shunt_stats sum = shunts_stats(&reader->shunts, reader->queue);
	uint64_t refused = 0;

	for (int i = 0; i < SHUNTS_REFUSALS; i++)
		refused += reader->shunts.refused[i];
	tell(reader, SHUNTED, sum.shunted);
	tell(reader, SHUNTED_BYTES, sum.shunted_bytes);
	tell(reader, UNSHUNTED, refused);
}

void stats_tell(struct reader *reader)
{
	uint64_t arrived, read = reader->read + reader->filtered, drops = 0;
	struct ringcap_stats now;

	if (ringcap_stats(reader->queue, &now))
		return;
	for (size_t i = 0; i < RINGCAP_DROP_REASONS; i++) {
		uint64_t dropped = now.dropped[i] - reader->start.dropped[i];

		if (REASONS + i < NAMED)
			tell(reader, REASONS + i, dropped);
		drops += dropped;
	}
	/* More were read than arrived if an earlier consumer had left some. */
	arrived = now.delivered - reader->start.delivered;
	tell(reader, PACKETS, (arrived > read ? arrived : read) + drops);
	tell(reader, DROPS, drops);
	tell(reader, FILTERED, reader->filtered);
	tell_shunted(reader);
	tell_device(reader, drops);
}
