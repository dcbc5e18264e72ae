// SPDX-License-Identifier: Apache-2.0
/* libpcap's readers. Both use our libpcap; its AF_PACKET part is the same as the distribution's. */
#include "readers.h"

#include <stdio.h>

#include <pcap/pcap.h>

static void on_packet(u_char *mine, const struct pcap_pkthdr *header, const u_char *packet)
{
	struct progress *its = (struct progress *)(void *)mine;

	its->touched += packet[12];
	its->bytes += header->len;
}

static void read_pcap(unsigned int reader, const char *device)
{
	char why[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_create(device, why);

	if (!p)
		fail_with(device, why);
	pcap_set_buffer_size(p, (int)reader_memory);
	pcap_set_timeout(p, WAKE_MS);
	if (pcap_activate(p) < 0)
		fail_with(device, pcap_geterr(p));
	reader_ready(reader);
	pcap_loop(p, -1, on_packet, (u_char *)&progress[reader]);
	fail_with(device, pcap_geterr(p));
}

void read_pcap_ringcap(unsigned int reader)
{
	char name[32];

	snprintf(name, sizeof(name), "ringcap:bench@%u", reader);
	read_pcap(reader, name);
}

void read_pcap_tpacket(unsigned int reader)
{
	read_pcap(reader, "vb");
}
