// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "traffic.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"

#define RT_NUMBER_MAGIC 0x52434e4fU

void rt_ip(const char *format, ...)
{
	char arguments[256], command[320];
	va_list args;

	va_start(args, format);
	vsnprintf(arguments, sizeof(arguments), format, args);
	va_end(args);
	snprintf(command, sizeof(command), "/sbin/ip %s", arguments);
	RT_CHECK(!system(command), "%s", command);
}

bool rt_pair_is_aware(void)
{
	return getenv("RT_AWARE");
}

void rt_veth_create(const char *a, const char *b)
{
	int err = rt_pair_is_aware() ? rt_link_add_aware(a, b) : rt_link_add_veth(a, b);

	RT_CHECK(!err, "%s and %s: %s", a, b, strerror(-err));
	/* Until a worker of the kernel has seen the carrier, packets are dropped without a report. */
	RT_EVENTUALLY(rt_link_is_ready(a) && rt_link_is_ready(b), 30000);
}

void rt_link_delete(const char *name)
{
	rt_ip("link del %s", name);
}

u32 rt_ifindex(const char *name)
{
	u32 ifindex = if_nametoindex(name);

	RT_CHECK(ifindex, "%s: %m", name);
	return ifindex;
}

/* ---- packets ---- */

static u32 rt_put16(u8 *at, u16 value)
{
	at[0] = (u8)(value >> 8);
	at[1] = (u8)value;
	return 2;
}

static u32 rt_put32(u8 *at, u32 value)
{
	rt_put16(at, (u16)(value >> 16));
	rt_put16(at + 2, (u16)value);
	return 4;
}

u32 rt_packet_flow(const struct rt_traffic *traffic, u32 number)
{
	return traffic->flows > 1 ? number % traffic->flows : 0;
}

static u32 rt_packet_len(const struct rt_traffic *traffic, u32 number)
{
	u32 min = traffic->min_len ? traffic->min_len : 60;
	u64 seed = number * 77777ULL;

	return traffic->max_len > min ? min + rt_random(&seed) % (traffic->max_len - min + 1) : min;
}

static u32 rt_put_ethernet(const struct rt_traffic *traffic, u8 *bytes)
{
	static const u8 macs[12] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 };
	u32 at = sizeof(macs), i;

	memcpy(bytes, macs, sizeof(macs));
	for (i = 0; i < 2 && traffic->tpid[i]; i++) {
		at += rt_put16(bytes + at, traffic->tpid[i]);
		at += rt_put16(bytes + at, traffic->tci[i]);
	}
	return at + rt_put16(bytes + at, 0x0800);
}

static u32 rt_put_ip_udp(const struct rt_traffic *traffic, u32 flow, u8 *ip, u32 len)
{
	u32 client = 0x0a000001 + flow / 7, server = 0x0a010001 + flow % 7;
	u16 client_port = (u16)(RT_CLIENT_PORT + flow), server_port = (u16)(RT_SERVER_PORT + flow % 2);
	u32 sum = 0, i;

	memset(ip, 0, 20);
	ip[0] = 0x45;
	rt_put16(ip + 2, (u16)len);
	ip[8] = 64;
	ip[9] = 17;
	rt_put32(ip + 12, traffic->reverse ? server : client);
	rt_put32(ip + 16, traffic->reverse ? client : server);
	for (i = 0; i < 20; i += 2)
		sum += (u32)(ip[i] << 8 | ip[i + 1]);
	rt_put16(ip + 10, (u16)~((sum & 0xffff) + (sum >> 16)));
	rt_put16(ip + 20, traffic->reverse ? server_port : client_port);
	rt_put16(ip + 22, traffic->reverse ? client_port : server_port);
	rt_put16(ip + 24, (u16)(len - 20));
	rt_put16(ip + 26, 0);
	return 28;
}

u32 rt_packet_build(const struct rt_traffic *traffic, u32 number, u8 *bytes)
{
	u32 len = rt_packet_len(traffic, number), at = rt_put_ethernet(traffic, bytes);
	u64 seed = number;

	at += rt_put_ip_udp(traffic, rt_packet_flow(traffic, number), bytes + at, len - at);
	while (at < len - 8)
		bytes[at++] = (u8)rt_random(&seed);
	rt_put32(bytes + len - 8, RT_NUMBER_MAGIC);
	rt_put32(bytes + len - 4, number);
	return len;
}

u32 rt_packet_number(const u8 *bytes, u32 len)
{
	u32 magic, number;

	if (len < 60)
		return UINT32_MAX;
	memcpy(&magic, bytes + len - 8, 4);
	memcpy(&number, bytes + len - 4, 4);
	return ntohl(magic) == RT_NUMBER_MAGIC ? ntohl(number) : UINT32_MAX;
}

/* ---- sending ---- */

int rt_sender_open(const char *interface)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_ifindex = (int)rt_ifindex(interface) };
	/* Protocol 0: it receives nothing. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	RT_CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)), "%s: %m", interface);
	return fd;
}

void rt_send(int sender, const struct rt_traffic *traffic, u32 from, u32 count)
{
	static __thread u8 bytes[RT_PACKET_MAX];
	u32 number, len;

	for (number = from; number < from + count; number++) {
		len = rt_packet_build(traffic, number, bytes);
		while (send(sender, bytes, len, 0) != (ssize_t)len)
			RT_CHECK(errno == ENOBUFS || errno == EAGAIN, "sending: %m");
	}
}

u64 rt_traffic_bytes(const struct rt_traffic *traffic, u32 from, u32 count)
{
	u64 bytes = 0;
	u32 number;

	for (number = from; number < from + count; number++)
		bytes += rt_packet_len(traffic, number);
	return bytes;
}
