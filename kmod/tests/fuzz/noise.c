// SPDX-License-Identifier: GPL-2.0-only
/* Bytes on a netlink socket: headers that lie, many messages at once, dumps that nobody reads to their end. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../control.h"

static u32 rf_fill(u64 *seed, u8 *bytes, u32 room)
{
	u32 at = 0, n = 1 + rf_below(seed, 5), i;

	for (i = 0; i < n && at + 600 < room; i++) {
		struct nlmsghdr *header = (struct nlmsghdr *)(bytes + at);
		u32 len = NLMSG_LENGTH(GENL_HDRLEN) + rf_below(seed, 500);

		rf_bytes(seed, header, len);
		header->nlmsg_len = rf_one_in(seed, 8) ? rf_number(seed) : len;
		header->nlmsg_type = rt_control_family();
		header->nlmsg_flags = NLM_F_REQUEST | (rf_one_in(seed, 3) ? (u16)rf_number(seed) : 0);
		((struct genlmsghdr *)NLMSG_DATA(header))->cmd = (u8)(rf_below(seed, RINGCAP_CMD_MAX + 3));
		if (rf_one_in(seed, 4))
			header->nlmsg_flags |= NLM_F_DUMP;
		at += NLMSG_ALIGN(len);
	}
	return at;
}

/* Begins a dump and leaves, or goes on in pieces too small for it. */
static void rf_dump_partly(int fd, u64 *seed)
{
	static const u8 dumps[] = { RINGCAP_CMD_CLUSTER_GET, RINGCAP_CMD_RING_GET, RINGCAP_CMD_QUEUE_GET, RINGCAP_CMD_RULES_GET };
	static struct rt_message message;
	char name[RINGCAP_NAME_MAX + 1];
	u8 cmd = dumps[rf_below(seed, 4)], small[64];
	u32 reads = rf_below(seed, 4);

	rt_message_init(&message, cmd, NLM_F_DUMP);
	if (cmd == RINGCAP_CMD_RULES_GET || rf_one_in(seed, 2)) {
		if (cmd == RINGCAP_CMD_RULES_GET)
			rf_ring_name(seed, name, sizeof(name));
		else
			rf_cluster_name(seed, name, sizeof(name));
		rt_message_put_name(&message, RINGCAP_A_NAME, name);
	}
	((struct nlmsghdr *)message.bytes)->nlmsg_len = message.len;
	send(fd, message.bytes, message.len, 0);
	while (reads--)
		recv(fd, small, sizeof(small), rf_one_in(seed, 2) ? MSG_TRUNC : 0);
}

void rf_act_noise(u64 seed)
{
	static u8 bytes[8192] __attribute__((aligned(8)));
	int fd = rf_netlink_open();
	u32 steps, len;

	for (steps = 0; rf_go_on(steps); steps++) {
		rf_count(noise);
		if (rf_one_in(&seed, 3)) {
			rf_dump_partly(fd, &seed);
		} else {
			len = rf_fill(&seed, bytes, sizeof(bytes));
			send(fd, bytes, len, 0);
		}
		if (rf_one_in(&seed, 4)) {
			close(fd);
			fd = rf_netlink_open();
		} else {
			while (recv(fd, bytes, sizeof(bytes), MSG_TRUNC) > 0)
				;
		}
	}
	close(fd);
}
