// SPDX-License-Identifier: Apache-2.0
/*
 * pcapdump DEVICE FILE: writes what comes to a capture, until it is killed. It knows nothing of ringcap: a stand-in for any
 * program that was built for an image's own libpcap.
 */
#include <pcap/pcap.h>
#include <stdio.h>

static pcap_dumper_t *file;

static void dump(unsigned char *user, const struct pcap_pkthdr *header, const unsigned char *bytes)
{
	(void)user;
	pcap_dump((unsigned char *)file, header, bytes);
	pcap_dump_flush(file);
}

int main(int argc, char **argv)
{
	char why[PCAP_ERRBUF_SIZE] = "usage: pcapdump DEVICE FILE";
	pcap_t *device = argc == 3 ? pcap_open_live(argv[1], 65535, 1, 10, why) : NULL;

	if (!device) {
		fprintf(stderr, "pcapdump: %s\n", why);
		return 1;
	}
	file = pcap_dump_open(device, argv[2]);
	if (!file || pcap_loop(device, -1, dump, NULL)) {
		fprintf(stderr, "pcapdump: %s\n", pcap_geterr(device));
		return 1;
	}
	return 0;
}
