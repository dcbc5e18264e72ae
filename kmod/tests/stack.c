// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "stack.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include "traffic.h"

int rt_stack_open(const char *interface)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
				       .sll_ifindex = interface ? (int)rt_ifindex(interface) : 0 };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1;

	RT_CHECK(fd >= 0, "%m");
	RT_CHECK(!setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)), "%m");
	RT_CHECK(!bind(fd, (struct sockaddr *)&address, sizeof(address)), "%m");
	return fd;
}

u64 rt_stack_count(int stack)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);

	/* The stack gets a packet after the ring. */
	rt_settle();
	RT_CHECK(!getsockopt(stack, SOL_PACKET, PACKET_STATISTICS, &stats, &len), "%m");
	return stats.tp_packets;
}
