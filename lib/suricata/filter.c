// SPDX-License-Identifier: GPL-2.0-only
/* Filters, run here on the packet as it was on the wire. The ring's own filter did its work before. */
#include "capture.h"

#include "metadata.h"

const char *filter_set(struct reader *reader, const char *expression)
{
	static char reason[PCAP_ERRBUF_SIZE];
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, RINGCAP_SNAPLEN_MAX);

	if (!dead)
		return "out of memory";
	*reason = '\0';
	if (pcap_compile(dead, &reader->filter, expression, 1, PCAP_NETMASK_UNKNOWN))
		snprintf(reason, sizeof(reason), "%s", pcap_geterr(dead));
	else
		metadata_mark(&reader->filter, &reader->metadata);
	pcap_close(dead);
	return *reason ? reason : NULL;
}

bool filter_passes(struct reader *reader, const struct ringcap_slot *slot)
{
	if (!reader->filter.bf_insns)
		return true;
	metadata_tell(&reader->filter, &reader->metadata, slot);
	return bpf_filter(reader->filter.bf_insns, ringcap_data(slot), slot->len, slot->caplen);
}
