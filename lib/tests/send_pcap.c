// SPDX-License-Identifier: BSD-2-Clause
/* send_pcap DEVICE N: sends N packets by pcap_sendpacket. Checks that they are sent and that invalid ones are not. */
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	static unsigned char packet[100000] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45 };
	char errbuf[PCAP_ERRBUF_SIZE];
	pcap_t *p;

	if (argc != 3)
		return 2;
	p = pcap_open_live(argv[1], 65535, 0, 100, errbuf);
	if (!p) {
		fprintf(stderr, "send_pcap: %s\n", errbuf);
		return 1;
	}
	for (int i = 0; i < atoi(argv[2]); i++) {
		if (pcap_sendpacket(p, packet, 60)) {
			fprintf(stderr, "send_pcap: %s\n", pcap_geterr(p));
			return 1;
		}
	}
	if (pcap_inject(p, packet, 60) != 60 || pcap_inject(p, packet, 13) != PCAP_ERROR ||
	    pcap_inject(p, packet, sizeof(packet)) != PCAP_ERROR) {
		fprintf(stderr, "send_pcap: %s\n", pcap_geterr(p));
		return 1;
	}
	pcap_close(p);
	return 0;
}
