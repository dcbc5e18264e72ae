// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How flows spread over queues: Pearson's chi-square of the queues' shares. One set of flows is as in networks (one
 * server, one pair of hosts, addresses and ports that count up), the other is random. A test fails if a perfectly
 * random choice would do so once in 100,000 tries. The flows and keys are the same each time, so it fails always or
 * never.
 */
#include "check.h"

#define NR_FLOWS 60000

static const struct {
	rc_u32 queues;
	double limit;	/* chi-square with queues - 1 degrees of freedom, upper 1e-5 */
} sizes[] = { { 2, 19.51 }, { 3, 23.03 }, { 8, 35.26 }, { 16, 50.49 } };

#define LIMIT_63 126.3	/* 63 degrees of freedom, upper 1e-5 */

static double chi_square(const rc_u32 *count, rc_u32 cells, double total)
{
	double expected = total / cells, sum = 0;
	rc_u32 i;

	for (i = 0; i < cells; i++)
		sum += (count[i] - expected) * (count[i] - expected) / expected;
	return sum;
}

/* The n-th of a kind of flows. Each kind sets what differs between its flows; the rest stays as in base(). */
typedef void (*flow_kind)(rc_u32 n, struct rc_flow *flow);

static void base(struct rc_flow *flow, rc_u16 l3_proto)
{
	memset(flow, 0, sizeof(*flow));
	flow->l3_proto = l3_proto;
	flow->l3_off = 14;
	flow->l4_proto = RC_IPPROTO_TCP;
	flow->sport = 40000;
	flow->dport = 443;
	if (l3_proto == RC_ETH_P_IPV4) {
		flow->saddr[0] = rc_be32(0x0a000001);
		flow->daddr[0] = rc_be32(0xc0000201);
	} else {
		flow->saddr[0] = flow->daddr[0] = rc_be32(0x20010db8);
		flow->saddr[3] = rc_be32(1);
		flow->daddr[1] = rc_be32(0xffff0000);
		flow->daddr[3] = rc_be32(2);
	}
}

static void v4_random(rc_u32 n, struct rc_flow *flow)
{
	(void)n;
	base(flow, RC_ETH_P_IPV4);
	flow->saddr[0] = (rc_u32)next_random();
	flow->daddr[0] = (rc_u32)next_random();
	flow->sport = (rc_u16)next_random();
}

static void v4_clients_of_a_server(rc_u32 n, struct rc_flow *flow)
{
	base(flow, RC_ETH_P_IPV4);
	flow->saddr[0] = rc_be32(0x0a000000 + n);
}

static void v4_grid(rc_u32 n, struct rc_flow *flow)
{
	base(flow, RC_ETH_P_IPV4);
	flow->saddr[0] = rc_be32(0x0a000000 + n % 245);
	flow->daddr[0] = rc_be32(0x0a010000 + n / 245);
}

static void v4_ports_of_a_pair(rc_u32 n, struct rc_flow *flow)
{
	base(flow, RC_ETH_P_IPV4);
	flow->sport = (rc_u16)(1024 + n);
}

static void v6_random(rc_u32 n, struct rc_flow *flow)
{
	int i;

	(void)n;
	base(flow, RC_ETH_P_IPV6);
	for (i = 0; i < 4; i++) {
		flow->saddr[i] = (rc_u32)next_random();
		flow->daddr[i] = (rc_u32)next_random();
	}
}

static void v6_clients_of_a_server(rc_u32 n, struct rc_flow *flow)
{
	base(flow, RC_ETH_P_IPV6);
	flow->saddr[3] = rc_be32(n + 16);
}

static void v6_subnets(rc_u32 n, struct rc_flow *flow)
{
	base(flow, RC_ETH_P_IPV6);
	flow->saddr[1] = rc_be32(n << 8);
}

static void v6_temporary_addresses(rc_u32 n, struct rc_flow *flow)
{
	(void)n;
	base(flow, RC_ETH_P_IPV6);
	flow->saddr[2] = (rc_u32)next_random();
	flow->saddr[3] = (rc_u32)next_random();
}

static void v6_ports_of_a_pair(rc_u32 n, struct rc_flow *flow)
{
	base(flow, RC_ETH_P_IPV6);
	flow->sport = (rc_u16)(1024 + n);
}

static void v4_vlans(rc_u32 n, struct rc_flow *flow)
{
	base(flow, RC_ETH_P_IPV4);
	flow->flags = RINGCAP_SLOT_VLAN;
	flow->vlan_tpid = RC_ETH_P_8021AD;
	flow->vlan_tci = (rc_u16)(n % 4000);
	flow->inner_vid = (rc_u16)(n / 4000);
}

static void macs(rc_u32 n, struct rc_flow *flow)
{
	memset(flow, 0, sizeof(*flow));
	flow->l3_proto = 0x8137;
	flow->smac = 0x020000000000ULL + n;
	flow->dmac = 0x0200000000feULL << 1;
}

#define BY(balance) (1u << RINGCAP_BALANCE_##balance)
#define BY_ADDRESS (BY(FLOW) | BY(FIVE_TUPLE) | BY(FOUR_TUPLE) | BY(TWO_TUPLE))
#define BY_PORT (BY(FLOW) | BY(FIVE_TUPLE) | BY(FOUR_TUPLE))

static const struct {
	const char *name;
	flow_kind make;
	rc_u32 balances;	/* those that can tell these flows apart */
} kinds[] = {
	{ "IPv4 random", v4_random, BY_ADDRESS },
	{ "IPv4 clients of a server", v4_clients_of_a_server, BY_ADDRESS },
	{ "IPv4 grid of addresses", v4_grid, BY_ADDRESS },
	{ "IPv4 ports of a pair", v4_ports_of_a_pair, BY_PORT },
	{ "IPv4 VLANs", v4_vlans, BY(FLOW) },
	{ "IPv6 random", v6_random, BY_ADDRESS },
	{ "IPv6 clients of a server", v6_clients_of_a_server, BY_ADDRESS },
	{ "IPv6 subnets", v6_subnets, BY_ADDRESS },
	{ "IPv6 temporary addresses", v6_temporary_addresses, BY_ADDRESS },
	{ "IPv6 ports of a pair", v6_ports_of_a_pair, BY_PORT },
	{ "MAC addresses", macs, BY_ADDRESS },
};

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define NR_SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* The greatest of the chi-squares as a share of its limit. */
static double spread_of(rc_u32 kind, rc_u32 balance, const rc_u64 key[2])
{
	rc_u32 count[NR_SIZES][16] = { { 0 } };
	double chi, worst = 0;
	struct rc_flow flow;
	rc_u32 n, i, hash;

	for (n = 0; n < NR_FLOWS; n++) {
		kinds[kind].make(n, &flow);
		hash = rc_flow_hash(&flow, balance, key);
		for (i = 0; i < NR_SIZES; i++)
			count[i][rc_queue(hash, sizes[i].queues)]++;
	}
	for (i = 0; i < NR_SIZES; i++) {
		chi = chi_square(count[i], sizes[i].queues, NR_FLOWS);
		CHECK(chi < sizes[i].limit, "%s, balance %u, %u queues: chi-square %.2f, at most %.2f", kinds[kind].name,
		      balance, sizes[i].queues, chi, sizes[i].limit);
		if (chi / sizes[i].limit > worst)
			worst = chi / sizes[i].limit;
	}
	return worst;
}

/* A flow's queue under one key does not depend on its queue under another, even if the keys differ in one bit only. */
static void check_key_bit(rc_u32 kind, rc_u32 bit)
{
	rc_u64 key[2] = { next_random(), next_random() }, other[2] = { key[0], key[1] };
	rc_u32 count[64] = { 0 };
	struct rc_flow flow;
	double chi;
	rc_u32 n;

	other[bit / 64] ^= 1ULL << (bit % 64);
	for (n = 0; n < NR_FLOWS / 4; n++) {
		kinds[kind].make(n, &flow);
		count[rc_queue(rc_flow_hash(&flow, 0, key), 8) * 8 + rc_queue(rc_flow_hash(&flow, 0, other), 8)]++;
	}
	chi = chi_square(count, 64, NR_FLOWS / 4);
	CHECK(chi < LIMIT_63, "%s: key bit %u: chi-square %.1f of the queues under both keys", kinds[kind].name, bit, chi);
}

void check_spread(void)
{
	static const rc_u32 key_kinds[] = { 0, 1, 3, 6, 9 };
	double worst = 0, share;
	rc_u32 kind, balance, i;

	for (kind = 0; kind < NR_KINDS; kind++)
		for (balance = 0; balance < NR_HASHES; balance++) {
			rc_u64 key[2] = { next_random(), next_random() };

			if (!(kinds[kind].balances & 1u << balance))
				continue;
			share = spread_of(kind, balance, key);
			if (share > worst)
				worst = share;
		}
	for (i = 0; i < sizeof(key_kinds) / sizeof(key_kinds[0]); i++)
		for (kind = 0; kind < 128; kind += 3)
			check_key_bit(key_kinds[i], kind);
	printf("spread: %zu kinds of flows over 2, 3, 8, 16 queues: chi-square at most %.0f %% of its limit; keys\n", NR_KINDS,
	       worst * 100);
}
