// SPDX-License-Identifier: GPL-2.0-only
/*
 * Without rings, an aware driver behaves like the stock driver. Every packet reaches the stack once, whole, and with
 * its VLAN tag, and is counted as before. The packets are small, large and tagged ones, and jumbo frames in several
 * pieces.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nic.h"
#include "traffic.h"

#define COUNT		200U
#define QUIET_MS	5000

static const struct rt_traffic kinds[] = {
	{ .flows = 16, .min_len = 60, .max_len = 1514 },
	{ .flows = 16, .min_len = 64, .max_len = 1400, .tpid = { 0x8100 }, .tci = { 42 } },
	{ .flows = 16, .min_len = 1600, .max_len = 8000 },
};

static int listen_on(const char *interface)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
				       .sll_ifindex = (int)rt_ifindex(interface) };
	struct packet_mreq all = { .mr_ifindex = address.sll_ifindex, .mr_type = PACKET_MR_PROMISC };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1, room = 8 << 20;

	RT_CHECK(fd >= 0 && !setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)) &&
		 !setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) &&
		 !setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) &&
		 !bind(fd, (struct sockaddr *)&address, sizeof(address)), "%s: %m", interface);
	return fd;
}

/* Receives the next packet as it was on the wire. Returns 0 when no more packets come. */
static u32 receive(int fd, u8 bytes[RT_PACKET_MAX])
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	struct iovec vector = { bytes, RT_PACKET_MAX };
	struct tpacket_auxdata aux = {};
	u8 control[CMSG_SPACE(sizeof(aux))] __attribute__((aligned(8)));
	struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header;
	ssize_t len;

	if (poll(&ready, 1, QUIET_MS) <= 0)
		return 0;
	len = recvmsg(fd, &message, 0);
	RT_CHECK(len > 0 && len <= RT_PACKET_MAX - 4, "%m");
	header = CMSG_FIRSTHDR(&message);
	RT_CHECK(header && header->cmsg_type == PACKET_AUXDATA);
	memcpy(&aux, CMSG_DATA(header), sizeof(aux));
	if (aux.tp_status & TP_STATUS_VLAN_VALID) {
		u16 tag[2] = { htons(aux.tp_vlan_tpid), htons(aux.tp_vlan_tci) };

		memmove(bytes + 16, bytes + 12, (size_t)len - 12);
		memcpy(bytes + 12, tag, 4);
		len += 4;
	}
	return (u32)len;
}

/* Checks that each of COUNT packets comes once and whole, and that the driver counted them. Ignores other packets. */
static void expect_all(const char *driver, u32 kind, int fd, int sender, const char *interface)
{
	static u8 bytes[RT_PACKET_MAX], wanted[RT_PACKET_MAX];
	const struct rt_traffic *traffic = &kinds[kind];
	u32 first = kind * COUNT, len, number, count = 0;
	u64 before = rt_nic_received(interface), others = 0;
	u8 seen[COUNT] = {};

	rt_send(sender, traffic, first, COUNT);
	while (count < COUNT && (len = receive(fd, bytes))) {
		number = rt_packet_number(bytes, len);
		if (number < first || number >= first + COUNT) {
			others++;
			continue;
		}
		RT_CHECK(!seen[number - first]++, "%s: packet %u of kind %u came twice", driver, number, kind);
		RT_CHECK(len == rt_packet_build(traffic, number, wanted) && !memcmp(bytes, wanted, len),
			 "%s: packet %u of kind %u has changed", driver, number, kind);
		count++;
	}
	RT_CHECK(count == COUNT, "%s: %u of %u packets of kind %u came", driver, count, COUNT, kind);
	/* Some drivers update their counters only from time to time. */
	RT_EVENTUALLY(rt_nic_received(interface) - before >= COUNT, 5000);
	RT_CHECK(rt_nic_received(interface) - before <= COUNT + others + 2, "%s has counted too many", driver);
}

static void compare(u32 slot, const char *stock, u32 peer_slot, const char *peer_stock)
{
	struct rt_nic nic, peer;
	u32 kind, which;

	rt_nic_find(&nic, slot, stock);
	rt_nic_find(&peer, peer_slot, peer_stock);
	for (which = 0; which < 2; which++) {
		char driver[32];
		int fd, sender;

		snprintf(driver, sizeof(driver), "%s%s", stock, which ? "_ringcap" : "");
		rt_nic_take(&peer, peer_stock, "peer");
		rt_nic_take(&nic, driver, "nic");
		rt_nic_set_mtu("peer", 9000);
		sender = rt_sender_open("peer");
		for (kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
			if (kinds[kind].max_len > 1514)
				rt_nic_set_mtu("nic", 9000);
			rt_nic_wait_for_link("peer", "nic");
			fd = listen_on("nic");
			expect_all(driver, kind, fd, sender, "nic");
			close(fd);
		}
		close(sender);
		rt_nic_release(&nic);
		rt_nic_release(&peer);
	}
}

RT_CASE(stock_igb)
{
	compare(1, "igb", 2, "e1000e");
}

RT_CASE(stock_e1000e)
{
	compare(2, "e1000e", 1, "igb");
}

RT_CASE(stock_virtio_net)
{
	compare(3, "virtio_net", 4, "vmxnet3");
}

RT_CASE(stock_vmxnet3)
{
	compare(4, "vmxnet3", 3, "virtio_net");
}
