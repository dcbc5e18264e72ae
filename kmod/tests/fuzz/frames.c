// SPDX-License-Identifier: GPL-2.0-only
/* Packets of all kinds that parsers, rules, fragments' tables and plugins look into, more or less damaged. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#define RF_FRAME_MAX 1600

struct rf_frame {
	u8 bytes[RF_FRAME_MAX];
	u32 len;
};

static void rf_add(struct rf_frame *frame, const void *bytes, u32 len)
{
	if (frame->len + len > RF_FRAME_MAX)
		return;
	memcpy(frame->bytes + frame->len, bytes, len);
	frame->len += len;
}

static void rf_add16(struct rf_frame *frame, u32 value)
{
	const u8 bytes[2] = { (u8)(value >> 8), (u8)value };

	rf_add(frame, bytes, 2);
}

static void rf_add32(struct rf_frame *frame, u32 value)
{
	rf_add16(frame, value >> 16);
	rf_add16(frame, value);
}

static void rf_add_ethernet(struct rf_frame *frame, u64 *seed)
{
	static const u16 tags[] = { 0x8100, 0x88a8, 0x9100 };
	u32 i, n = rf_one_in(seed, 4) ? rf_below(seed, 4) : 0;

	rf_add(frame, "\x02\0\0\0\0\2\x02\0\0\0\0\1", 12);
	for (i = 0; i < n; i++) {
		rf_add16(frame, tags[rf_below(seed, 3)]);
		rf_add16(frame, rf_below(seed, 3));
	}
}

static void rf_add_payload(struct rf_frame *frame, u64 *seed)
{
	static const char texts[][64] = {
		"GET /index.html HTTP/1.1\r\nHost: www.example.org\r\n\r\n", "aaaaaaaaaaaaaaaaaab",
		"\x12\x34\x01\0\0\1\0\0\0\0\0\0\7example\3org\0\0\1\0\1", "POST / HTTP/1.0\r\nhost:x\r\n",
	};
	const char *text = texts[rf_below(seed, 4)];
	u8 bytes[1400];
	u32 len = rf_below(seed, rf_one_in(seed, 4) ? sizeof(bytes) : 60);

	if (rf_one_in(seed, 2)) {
		rf_add(frame, text, 40 + rf_below(seed, 20));
	} else {
		rf_bytes(seed, bytes, len);
		rf_add(frame, bytes, len);
	}
}

static void rf_add_ip(struct rf_frame *frame, u64 *seed, u32 depth);

static void rf_add_tunnel(struct rf_frame *frame, u64 *seed, u32 port, u32 depth)
{
	if (port == 2152) {
		rf_add(frame, "\x30\xff\0\x40\0\0\0\1", 8);	/* GTP-U */
		rf_add_ip(frame, seed, depth + 1);
		return;
	}
	/* VXLAN and Geneve. */
	rf_add(frame, port == 4789 ? "\x08\0\0\0\0\0\1\0" : "\0\0\x65\x58\0\0\1\0", 8);
	rf_add_ethernet(frame, seed);
	rf_add16(frame, 0x0800);
	rf_add_ip(frame, seed, depth + 1);
}

static void rf_add_transport(struct rf_frame *frame, u64 *seed, u32 protocol, u32 depth)
{
	static const u16 ports[] = { 53, 80, 4789, 6081, 2152, 10000, 10001 };
	u32 port = ports[rf_below(seed, 7)];

	switch (protocol) {
	case 4:
	case 41:
		rf_add_ip(frame, seed, depth + 1);
		return;
	case 47:
		/* GRE with a key, or ERSPAN. */
		rf_add32(frame, rf_one_in(seed, 2) ? 0x20000800 : 0x100088be);
		rf_add32(frame, rf_below(seed, 3));
		rf_add_ip(frame, seed, depth + 1);
		return;
	}
	rf_add16(frame, rf_one_in(seed, 2) ? 10000 + rf_below(seed, 8) : rf_number(seed));
	rf_add16(frame, port);
	if (protocol == 6) {
		rf_add32(frame, rf_number(seed));
		rf_add32(frame, rf_number(seed));
		rf_add16(frame, (rf_one_in(seed, 8) ? rf_below(seed, 16) : 5) << 12 | rf_below(seed, 64));
		rf_add16(frame, 1000);
		rf_add32(frame, 0);
	} else {
		rf_add32(frame, 0x00400000);
		if (depth < 2 && (port == 4789 || port == 6081 || port == 2152)) {
			rf_add_tunnel(frame, seed, port, depth);
			return;
		}
	}
	rf_add_payload(frame, seed);
}

static u32 rf_protocol(u64 *seed, u32 depth)
{
	static const u8 protocols[] = { 17, 6, 17, 6, 1, 132, 47, 4, 41, 58 };

	return rf_one_in(seed, 20) ? rf_below(seed, 256) : protocols[rf_below(seed, depth < 2 ? 10 : 6)];
}

static void rf_add_ip4(struct rf_frame *frame, u64 *seed, u32 depth)
{
	u32 at = frame->len, protocol = rf_protocol(seed, depth), fragment = 0, len, i, sum = 0;

	/* Few datagrams, so that some are completed and many are not. */
	if (rf_one_in(seed, 4))
		fragment = rf_below(seed, 4) | (rf_one_in(seed, 2) ? 0x2000 : 0);
	if (rf_one_in(seed, 40))
		fragment = rf_number(seed);
	rf_add16(frame, 0x4500 | rf_below(seed, 2));
	rf_add16(frame, 0);
	rf_add16(frame, rf_below(seed, 5));
	rf_add16(frame, fragment);
	rf_add16(frame, 64 << 8 | protocol);
	rf_add16(frame, 0);
	rf_add32(frame, 0x0a000000 + rf_below(seed, 4));
	rf_add32(frame, 0x0a000000 + rf_below(seed, 4));
	if (fragment & 0x1fff)
		rf_add(frame, "01234567890123456789abcd", 8 * (1 + rf_below(seed, 3)));
	else
		rf_add_transport(frame, seed, protocol, depth);
	if (frame->len < at + 20)
		return;
	len = frame->len - at;
	/* A multiple of 8 where more follows, as it must be. */
	if (fragment & 0x2000)
		len = 20 + ((len - 20) & ~7U);
	frame->bytes[at + 2] = (u8)(len >> 8);
	frame->bytes[at + 3] = (u8)len;
	for (i = 0; i < 20; i += 2)
		sum += (u32)(frame->bytes[at + i] << 8 | frame->bytes[at + i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~(sum + (sum >> 16));
	frame->bytes[at + 10] = (u8)(sum >> 8);
	frame->bytes[at + 11] = (u8)sum;
}

static void rf_add_ip6(struct rf_frame *frame, u64 *seed, u32 depth)
{
	static const u8 headers[] = { 0, 43, 60, 44, 51 };
	u8 address[16] = { 0xfd };
	u32 protocol = rf_protocol(seed, depth), i, n = rf_one_in(seed, 3) ? rf_below(seed, 5) : 0;
	u32 next = n ? headers[rf_below(seed, 5)] : protocol;

	rf_add32(frame, 0x60000000);
	rf_add16(frame, rf_below(seed, 1400));
	rf_add16(frame, next << 8 | 64);
	for (i = 0; i < 2; i++) {
		address[3] = (u8)rf_below(seed, 4);
		rf_add(frame, address, 16);
	}
	for (i = 0; i < n; i++) {
		next = i + 1 < n ? headers[rf_below(seed, 5)] : protocol;
		rf_add16(frame, next << 8 | (rf_one_in(seed, 6) ? rf_below(seed, 256) : 0));
		rf_add16(frame, rf_below(seed, 64) << 3 | rf_below(seed, 2));
		rf_add32(frame, rf_below(seed, 4));
	}
	rf_add_transport(frame, seed, protocol, depth);
}

static void rf_add_ip(struct rf_frame *frame, u64 *seed, u32 depth)
{
	if (depth > 4 || rf_one_in(seed, 4))
		rf_add_ip6(frame, seed, depth > 4 ? 2 : depth);
	else
		rf_add_ip4(frame, seed, depth);
}

static void rf_build_frame(struct rf_frame *frame, u64 *seed)
{
	u32 i, flips;

	frame->len = 0;
	rf_add_ethernet(frame, seed);
	i = rf_below(seed, 20);
	if (!i) {
		rf_add16(frame, rf_number(seed));
		rf_add_payload(frame, seed);
	} else if (i < 5) {
		rf_add16(frame, 0x86dd);
		rf_add_ip6(frame, seed, 0);
	} else {
		rf_add16(frame, i == 5 ? 0x8847 : 0x0800);
		if (i == 5)
			rf_add32(frame, 0x00010140);
		rf_add_ip4(frame, seed, 0);
	}
	if (rf_one_in(seed, 4))
		frame->len = 14 + rf_below(seed, frame->len - 13);
	flips = rf_one_in(seed, 4) ? rf_below(seed, 5) : 0;
	for (i = 0; i < flips; i++)
		frame->bytes[12 + rf_below(seed, frame->len - 12)] ^= (u8)(1U << rf_below(seed, 8));
}

void rf_act_frames(u64 seed)
{
	static const char *const devices[] = { "p0", "p1", "q0", "q1", "lo" };
	static struct rf_frame frame;
	/* Protocol 0: it receives nothing. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	struct sockaddr_ll to = { .sll_family = AF_PACKET };
	u32 steps, i;

	RT_CHECK(fd >= 0, "%m");
	for (steps = 0; rf_go_on(steps); steps++) {
		to.sll_ifindex = (int)if_nametoindex(devices[rf_below(&seed, 5)]);
		for (i = 0; i < 20 && to.sll_ifindex; i++) {
			rf_build_frame(&frame, &seed);
			if (sendto(fd, frame.bytes, frame.len, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to)) > 0)
				rf_count(frames);
		}
		usleep(rf_below(&seed, 2000));
	}
	close(fd);
}
