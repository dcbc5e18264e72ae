// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "watch.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 30000

int rt_watch_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), room = 1 << 20;

	RT_CHECK(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) &&
		 !bind(fd, (struct sockaddr *)&address, sizeof(address)), "%m");
	return fd;
}

/* Returns true if the message says that @interface has gone, and reads its packet count. */
static bool rt_watch_is_end(const struct nlmsghdr *header, const char *interface, u64 *received)
{
	const struct rtattr *attr = (const void *)((const u8 *)header + NLMSG_SPACE(sizeof(struct ifinfomsg)));
	int rest = (int)(header->nlmsg_len - NLMSG_SPACE(sizeof(struct ifinfomsg)));
	bool named = false, counted = false;

	if (header->nlmsg_type != RTM_DELLINK)
		return false;
	for (; RTA_OK(attr, rest); attr = RTA_NEXT(attr, rest)) {
		if (attr->rta_type == IFLA_IFNAME) {
			named = !strcmp(RTA_DATA(attr), interface);
		} else if (attr->rta_type == IFLA_STATS64) {
			/* Not aligned. */
			memcpy(received, (const u8 *)RTA_DATA(attr) + offsetof(struct rtnl_link_stats64, rx_packets),
			       sizeof(*received));
			counted = true;
		}
	}
	return named && counted;
}

u64 rt_watch_received(int watch, const char *interface)
{
	static u8 message[32768] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct pollfd ready = { .fd = watch, .events = POLLIN };
	u64 received = 0;

	do {
		RT_CHECK(poll(&ready, 1, WAIT_MS) == 1, "%s is still there", interface);
		RT_CHECK(recv(watch, message, sizeof(message), 0) > 0, "%m");
	} while (!rt_watch_is_end((const struct nlmsghdr *)message, interface, &received));
	close(watch);
	return received;
}
