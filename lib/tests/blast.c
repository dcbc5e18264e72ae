// SPDX-License-Identifier: BSD-2-Clause
/*
 * blast INTERFACE COUNT [LENGTH [GAP_US]]: sends COUNT UDP packets of LENGTH bytes (100) on an interface, from
 * 192.0.2.1 to 192.0.2.2. Packets with even numbers go to port 53, others to port 80. Sleeps GAP_US after every 50
 * packets.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LENGTH_MIN = 60, LENGTH_MAX = 1514 };

static void build(uint8_t *packet, size_t length)
{
	struct ethhdr *eth = (struct ethhdr *)packet;
	struct iphdr *ip = (struct iphdr *)(eth + 1);
	struct udphdr *udp = (struct udphdr *)(ip + 1);

	memset(packet, 0, length);
	memset(eth->h_dest, 0xff, sizeof(eth->h_dest));
	eth->h_source[5] = 1;
	eth->h_proto = htons(ETH_P_IP);
	ip->version = 4;
	ip->ihl = 5;
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->tot_len = htons((uint16_t)(length - sizeof(*eth)));
	ip->saddr = htonl(0xc0000201);
	ip->daddr = htonl(0xc0000202);
	udp->source = htons(1234);
	udp->len = htons((uint16_t)(length - sizeof(*eth) - sizeof(*ip)));
}

int main(int argc, char **argv)
{
	uint8_t packet[LENGTH_MAX];
	struct udphdr *udp = (struct udphdr *)(packet + sizeof(struct ethhdr) + sizeof(struct iphdr));
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, i;
	size_t length = argc > 3 ? strtoul(argv[3], NULL, 10) : 100;
	unsigned int gap_us = argc > 4 ? (unsigned int)strtoul(argv[4], NULL, 10) : 0;
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = ETH_ALEN };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (argc < 3 || length < LENGTH_MIN || length > LENGTH_MAX) {
		fprintf(stderr, "usage: blast INTERFACE COUNT [LENGTH [GAP_US]]\n");
		return 2;
	}
	to.sll_ifindex = (int)if_nametoindex(argv[1]);
	build(packet, length);
	for (i = 0; i < count; i++) {
		udp->dest = htons(i % 2 ? 80 : 53);
		while (sendto(fd, packet, length, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
			usleep(1000);
		if (gap_us && i % 50 == 49)
			usleep(gap_us);
	}
	return 0;
}
