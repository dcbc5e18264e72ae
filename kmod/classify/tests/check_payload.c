// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The position of the payload. */
#include "check.h"
#include "../payload.h"

/**
 * struct sample - a packet from the ethertype on, in hex; "MACs" are omitted
 * @tpid: of a tag held elsewhere, 0 = none
 * @len: on the wire; 0 = as long as the bytes that are there
 * @from, @to: the payload on the wire
 */
struct sample {
	const char *name;
	const char *hex;
	rc_u16 tpid;
	rc_u32 len;
	rc_u32 from;
	rc_u32 to;
};

#define ADDRESSES4 "0a0000010a000002"
#define ADDRESSES6 "20010db8000000000000000000000001" "20010db8000000000000000000000002"

static const struct sample samples[] = {
	{ "udp, padded", "0800" "4500001e" "00000000" "40110000" ADDRESSES4 "00010035" "000a0000" "4142" "000000000000", 0, 0, 42, 44 },
	{ "udp, tag elsewhere", "0800" "4500001e" "00000000" "40110000" ADDRESSES4 "00010035" "000a0000" "4142" "0000", 0x8100, 0, 46, 48 },
	{ "udp, cut", "0800" "4500001e" "00000000" "40110000" ADDRESSES4 "0001", 0, 0, 36, 36 },
	{ "tcp with options", "0800" "45000000" "00000000" "40060000" ADDRESSES4 "00010050" "00000000" "00000000" "60000000" "00000000"
	  "01010101" "474554", 0, 0, 58, 61 },
	{ "tcp of a header that cannot be", "0800" "45000000" "00000000" "40060000" ADDRESSES4 "00010050" "00000000" "00000000"
	  "40000000" "00000000" "474554", 0, 0, 54, 57 },
	{ "tcp, tag in the packet", "81000005" "0800" "4500002b" "00000000" "40060000" ADDRESSES4 "00010050" "00000000" "00000000"
	  "50000000" "00000000" "474554ff", 0, 0, 58, 61 },
	{ "sctp", "0800" "45000024" "00000000" "40840000" ADDRESSES4 "00010002" "00000000" "00000000" "00030004", 0, 0, 46, 50 },
	{ "icmp", "0800" "4500001d" "00000000" "40010000" ADDRESSES4 "08000000" "00000000" "41", 0, 0, 42, 43 },
	{ "ospf: behind ip", "0800" "45000018" "00000000" "40590000" ADDRESSES4 "02010000", 0, 0, 34, 38 },
	{ "later fragment: behind ip", "0800" "45000018" "00000001" "40110000" ADDRESSES4 "41424344", 0, 0, 34, 38 },
	{ "later fragment with options", "0800" "4600001c" "00000001" "40110000" ADDRESSES4 "01010101" "41424344", 0, 0, 38, 42 },
	{ "first fragment: behind udp", "0800" "4500001e" "00002000" "40110000" ADDRESSES4 "00010035" "000a0000" "4142", 0, 0, 42, 44 },
	{ "udp over ipv6", "86dd" "60000000" "000a1140" ADDRESSES6 "00010035" "000a0000" "4142" "00", 0, 0, 62, 64 },
	{ "ipv6 merged: no length", "86dd" "60000000" "00000640" ADDRESSES6 "00010035" "00000000" "00000000" "50000000" "00000000"
	  "4142", 0, 0, 74, 76 },
	{ "ipv6, nothing behind", "86dd" "60000000" "00003b40" ADDRESSES6 "4142", 0, 0, 54, 54 },
	{ "later ipv6 fragment: behind the fixed header", "86dd" "60000000" "000a2c40" ADDRESSES6 "11000008" "00000001" "4142", 0, 0, 54, 64 },
	{ "longer than what is seen", "0800" "450005dc" "00000000" "40110000" ADDRESSES4 "00010035" "05c80000", 0, 1514, 42, 1514 },
	{ "arp: behind the ethertype", "0806" "0001", 0, 0, 14, 16 },
	{ "arp with two tags", "88a80001" "81000002" "0806" "0001", 0, 0, 22, 24 },
	{ "arp with two tags, one elsewhere", "81000002" "0806" "0001", 0x88a8, 0, 22, 24 },
	{ "cut before the ethertype", "08", 0, 0, 13, 13 },
};

static rc_u32 read_hex(const char *hex, rc_u8 *bytes)
{
	rc_u32 n = 0;
	unsigned int byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		bytes[n++] = (rc_u8)byte;
	return n;
}

void check_payload(void)
{
	rc_u32 i;

	for (i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		const struct sample *s = &samples[i];
		rc_u8 bytes[256] = { 0 };
		struct rc_frame frame = { .data = bytes, .vlan_tpid = s->tpid };
		struct rc_payload payload;
		struct rc_flow flow;

		frame.avail = 12 + read_hex(s->hex, bytes + 12);
		rc_parse(&frame, &flow);
		payload = rc_payload_find(&frame, &flow, s->len ? s->len : frame.avail + (s->tpid ? 4 : 0));
		CHECK(payload.from == s->from && payload.to == s->to, "%s: %u .. %u, not %u .. %u", s->name, payload.from,
		      payload.to, s->from, s->to);
	}
	printf("payload: %u packets\n", i);
}
