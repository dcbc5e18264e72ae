// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which properties flows share with each other, and which they do not. */
#include "check.h"

#define NR_FLOWS 20000

static void put16(rc_u8 *p, rc_u64 v)
{
	p[0] = (rc_u8)(v >> 8);
	p[1] = (rc_u8)v;
}

static void put_random(rc_u8 *p, int n)
{
	while (n--)
		*p++ = (rc_u8)next_random();
}

/* A random UDP packet of either IP version; returns its length. */
static rc_u32 random_packet(rc_u8 *frame, int ipv6)
{
	rc_u32 l4 = ipv6 ? 54 : 34;

	put_random(frame, FRAME_MAX);
	put16(frame + 12, ipv6 ? RC_ETH_P_IPV6 : RC_ETH_P_IPV4);
	frame[14] = ipv6 ? 0x60 : 0x45;
	frame[ipv6 ? 20 : 23] = RC_IPPROTO_UDP;
	if (!ipv6)
		put16(frame + 20, 0);
	return l4 + 8 + (rc_u32)(next_random() % 300);
}

/* Swaps the ends of a packet, as in an answer. */
static void turn_round(rc_u8 *frame, int ipv6)
{
	rc_u32 addr = ipv6 ? 22 : 26, size = ipv6 ? 16 : 4, l4 = ipv6 ? 54 : 34;
	rc_u8 saved[16];

	memcpy(saved, frame + addr, size);
	memcpy(frame + addr, frame + addr + size, size);
	memcpy(frame + addr + size, saved, size);
	memcpy(saved, frame + l4, 2);
	memcpy(frame + l4, frame + l4 + 2, 2);
	memcpy(frame + l4 + 2, saved, 2);
}

static void check_directions(void)
{
	rc_u8 frame[FRAME_MAX];
	struct rc_flow there, back;
	rc_u32 i, balance, len;
	rc_u64 key[2];

	for (i = 0; i < NR_FLOWS; i++) {
		int ipv6 = i & 1;

		key[0] = next_random();
		key[1] = next_random();
		len = random_packet(frame, ipv6);
		parse_exact(frame, len, 0, 0, &there);
		CHECK(there.l4_off == (ipv6 ? 54 : 34), "a random packet was not understood");
		turn_round(frame, ipv6);
		parse_exact(frame, len, 0, 0, &back);
		CHECK(there.sport == back.dport, "ports");
		for (balance = 0; balance < NR_HASHES; balance++)
			CHECK(rc_flow_hash(&there, balance, key) == rc_flow_hash(&back, balance, key),
			      "balance %u, IPv%d: the two directions differ", balance, ipv6 ? 6 : 4);
	}
}

/* A datagram's fragments: the first has ports and, with IPv6, other headers; @nr is the number of the fragment. */
static rc_u32 fragment(const rc_u8 *whole, rc_u8 *frame, int ipv6, rc_u32 nr, int more)
{
	if (!ipv6) {
		memcpy(frame, whole, FRAME_MAX);
		put16(frame + 20, (rc_u64)more << 13 | nr * 64);
		if (nr)
			put_random(frame + 34, FRAME_MAX - 34);
		return 300;
	}
	memcpy(frame, whole, 54);
	frame[20] = RC_IPPROTO_FRAGMENT;
	put_random(frame + 54, FRAME_MAX - 54);
	frame[54] = nr ? (rc_u8)next_random() : RC_IPPROTO_DSTOPTS;
	put16(frame + 56, (rc_u64)nr * 64 << 3 | (rc_u64)more);
	if (!nr) {
		frame[62] = RC_IPPROTO_UDP;
		frame[63] = 0;
	}
	return 300;
}

static void check_fragments(void)
{
	rc_u8 whole[FRAME_MAX], frame[FRAME_MAX];
	rc_u64 key[2] = { next_random(), next_random() };
	struct rc_flow first, later;
	rc_u32 i, nr, balance, len;

	for (i = 0; i < NR_FLOWS; i++) {
		int ipv6 = i & 1;

		random_packet(whole, ipv6);
		len = fragment(whole, frame, ipv6, 0, 1);
		parse_exact(frame, len, 0, 0, &first);
		CHECK(first.l4_off == (ipv6 ? 70 : 34), "first fragment: transport at %u", first.l4_off);
		for (nr = 1; nr < 4; nr++) {
			len = fragment(whole, frame, ipv6, nr, nr < 3);
			parse_exact(frame, len, 0, 0, &later);
			CHECK(later.flags & RINGCAP_SLOT_FRAGMENT && !later.l4_off, "fragment %u", nr);
			for (balance = 0; balance < NR_HASHES; balance++)
				CHECK(rc_flow_hash(&first, balance, key) == rc_flow_hash(&later, balance, key),
				      "balance %u, IPv%d: fragment %u parts from the first", balance, ipv6 ? 6 : 4, nr);
		}
	}
}

/* By which fields each balance type distinguishes flows, and by which not; in the order of enum ringcap_balance. */
static void check_balance_types(void)
{
	rc_u64 key[2] = { next_random(), next_random() };
	struct rc_flow base, other[5];
	rc_u8 frame[FRAME_MAX];
	rc_u32 balance, i, len;
	static const rc_u8 differs[NR_HASHES][5] = {
		{ 1, 1, 1, 1, 1 }, { 1, 1, 1, 0, 0 }, { 1, 1, 0, 0, 0 }, { 1, 0, 0, 0, 0 },
	};

	len = random_packet(frame, 1);
	parse_exact(frame, len, 0x88a8, 0, &base);
	for (i = 0; i < 5; i++)
		other[i] = base;
	other[0].daddr[3] ^= rc_be32(1);
	other[1].sport ^= 1;
	other[2].l4_proto = RC_IPPROTO_TCP;
	other[3].vlan_tci = 1;
	other[4].inner_vid = 1;
	for (balance = 0; balance < NR_HASHES; balance++)
		for (i = 0; i < 5; i++)
			CHECK((rc_flow_hash(&base, balance, key) != rc_flow_hash(&other[i], balance, key)) ==
			      differs[balance][i], "balance %u, difference %u", balance, i);
	other[0] = base;
	other[0].vlan_tci = 0xf000;	/* priority and eligibility are no part of a flow */
	CHECK(rc_flow_hash(&base, 0, key) == rc_flow_hash(&other[0], 0, key), "priority bits");
}

void check_flows(void)
{
	check_directions();
	check_fragments();
	check_balance_types();
	printf("flows: %d each of both directions, fragments; balance types\n", NR_FLOWS);
}
