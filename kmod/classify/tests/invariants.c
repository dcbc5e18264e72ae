// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Properties that every packet has. They are checked for the vectors and all their truncations, and by the fuzzer for
 * any packet.
 */
#include "check.h"
#include "../payload.h"

static rc_u64 random_state = 0x72696e67636170ULL;

rc_u64 next_random(void)
{
	random_state += 0x9e3779b97f4a7c15ULL;
	return rc_mix(random_state);
}

const char *flow_differs(const struct rc_flow *a, const struct rc_flow *b)
{
#define SAME(field) do { if (memcmp(&a->field, &b->field, sizeof(a->field))) return #field; } while (0)
	SAME(saddr);
	SAME(daddr);
	SAME(smac);
	SAME(dmac);
	SAME(sport);
	SAME(dport);
	SAME(l3_off);
	SAME(l4_off);
	SAME(l3_proto);
	SAME(vlan_tci);
	SAME(vlan_tpid);
	SAME(inner_vid);
	SAME(l4_proto);
	SAME(flags);
#undef SAME
	return NULL;
}

void parse_exact(const rc_u8 *frame, rc_u32 len, rc_u16 tpid, rc_u16 tci, struct rc_flow *flow)
{
	rc_u32 avail = len < RC_PARSE_MAX ? len : RC_PARSE_MAX;
	rc_u8 *copy = malloc(avail ? avail : 1);
	struct rc_frame f = { .data = copy, .avail = avail, .vlan_tpid = tpid, .vlan_tci = tci };

	CHECK(copy, "no memory");
	if (avail)
		memcpy(copy, frame, avail);
	memset(flow, 0xa5, sizeof(*flow));
	if (!avail) {
		free(copy);
		f.data = copy = NULL;	/* nothing may be read at all */
	}
	rc_parse(&f, flow);
	free(copy);
}

int parse_inner_exact(const rc_u8 *frame, rc_u32 len, rc_u16 tpid, rc_u16 tci, const struct rc_flow *flow,
		      struct rc_inner *inner)
{
	rc_u32 avail = len < RC_INNER_MAX ? len : RC_INNER_MAX;
	rc_u8 *copy = malloc(avail ? avail : 1);
	struct rc_frame f = { .data = copy, .avail = avail, .vlan_tpid = tpid, .vlan_tci = tci };
	int found;

	CHECK(copy, "no memory");
	if (avail)
		memcpy(copy, frame, avail);
	memset(inner, 0xa5, sizeof(*inner));
	found = rc_parse_inner(&f, flow, inner);
	free(copy);
	return found;
}

/* @begin: the least offset at which the packet of @flow may begin. */
static void check_fields(const struct rc_flow *flow, rc_u32 wire_len, rc_u32 begin)
{
	int ip = flow->l3_proto == RC_ETH_P_IPV4 || flow->l3_proto == RC_ETH_P_IPV6;

	CHECK(!flow->l3_off || (ip && flow->l3_off >= begin && flow->l3_off + 20u <= wire_len), "l3_off %u", flow->l3_off);
	CHECK(!flow->l4_off || (flow->l3_off && flow->l4_off >= flow->l3_off + 20u), "l4_off %u", flow->l4_off);
	CHECK(flow->l4_off < (begin == 14 ? RC_PARSE_MAX : RC_INNER_MAX), "l4_off %u", flow->l4_off);
	CHECK(!flow->l4_off || flow->l4_off < wire_len, "l4_off %u of %u bytes", flow->l4_off, wire_len);
	CHECK(flow->l3_off || !(flow->l4_proto || flow->flags & RINGCAP_SLOT_FRAGMENT), "transport without IP");
	CHECK(!(flow->sport || flow->dport) || flow->l4_off, "ports without a transport header");
	CHECK(!(flow->flags & RINGCAP_SLOT_FRAGMENT) || !(flow->sport || flow->dport), "a fragment with ports");
	CHECK(!(flow->flags & ~(RINGCAP_SLOT_VLAN | RINGCAP_SLOT_FRAGMENT)), "flags %x", flow->flags);
	CHECK(!flow->l3_off || !(flow->smac || flow->dmac), "an IP packet with MACs");
	CHECK(flow->l3_proto == 0 || flow->l3_proto >= RC_ETH_P_MIN, "ethertype %x", flow->l3_proto);
}

/* The other direction of a flow has the same hash, under every balance type. */
static void check_reverse(const struct rc_flow *flow)
{
	rc_u64 key[2] = { next_random(), next_random() };
	struct rc_flow back = *flow;
	rc_u32 balance, ends[2], back_ends[2];

	memcpy(back.saddr, flow->daddr, sizeof(back.saddr));
	memcpy(back.daddr, flow->saddr, sizeof(back.daddr));
	back.smac = flow->dmac;
	back.dmac = flow->smac;
	back.sport = flow->dport;
	back.dport = flow->sport;
	for (balance = 0; balance <= __RINGCAP_BALANCE_MAX; balance++)
		CHECK(rc_flow_hash(flow, rc_flow_balance(flow, balance), key) ==
		      rc_flow_hash(&back, rc_flow_balance(&back, balance), key), "balance %u", balance);
	rc_end_hashes(flow, key, ends);
	rc_end_hashes(&back, key, back_ends);
	CHECK(ends[0] == back_ends[1] && ends[1] == back_ends[0], "ends");
}

/* The place where a tag is held makes no difference. */
static void check_tag_place(const rc_u8 *frame, rc_u32 len, const struct rc_flow *inlined)
{
	rc_u8 stripped[FRAME_MAX];
	struct rc_flow flow;
	const char *field;

	if (len < 16 || len > FRAME_MAX || !rc_is_tag(rc_get16(frame + 12)))
		return;
	memcpy(stripped, frame, 12);
	memcpy(stripped + 12, frame + 16, len - 16);
	parse_exact(stripped, len - 4, rc_get16(frame + 12), rc_get16(frame + 14), &flow);
	field = flow_differs(&flow, inlined);
	CHECK(!field, "with the tag elsewhere, %s differs", field);
}

/* The inner packet lies behind the outer headers, and within the packet. */
static void check_inner(const rc_u8 *frame, rc_u32 len, rc_u16 tpid, rc_u16 tci, const struct rc_flow *flow)
{
	struct rc_inner inner;

	if (!parse_inner_exact(frame, len, tpid, tci, flow, &inner))
		return;
	CHECK(inner.found.tunnel && inner.found.tunnel <= RC_TUNNEL_GTPU, "tunnel %u", inner.found.tunnel);
	CHECK(inner.found.has_id <= 1 && (inner.found.has_id || !inner.found.tunnel_id), "an id that is none");
	CHECK(!(flow->flags & RINGCAP_SLOT_FRAGMENT), "inside of a fragment");
	check_fields(&inner.found.flow, len + (tpid ? 4 : 0), 18);
	CHECK(!inner.found.flow.l3_off || inner.found.flow.l3_off > flow->l3_off, "inside at %u", inner.found.flow.l3_off);
	check_reverse(&inner.found.flow);
}

/* The payload lies in the packet, behind its headers. */
static void check_payload_place(const rc_u8 *frame, rc_u32 len, rc_u16 tpid, const struct rc_flow *flow)
{
	struct rc_frame f = { .avail = len < RC_PARSE_MAX ? len : RC_PARSE_MAX, .vlan_tpid = tpid };
	rc_u32 wire_len = len + (tpid ? 4 : 0);
	rc_u8 *copy = malloc(f.avail + 1);
	struct rc_payload payload;

	CHECK(copy, "no memory");
	f.data = copy + 1;	/* not aligned, and nothing readable behind it */
	if (f.avail)
		memcpy(copy + 1, frame, f.avail);
	payload = rc_payload_find(&f, flow, wire_len);
	free(copy);
	CHECK(payload.from <= payload.to && payload.to <= wire_len, "payload %u .. %u", payload.from, payload.to);
	CHECK(payload.from == payload.to || payload.from > flow->l3_off + 19u || !flow->l3_off, "payload at %u", payload.from);
	CHECK(payload.from == payload.to || payload.from >= flow->l4_off, "payload at %u", payload.from);
}

void check_invariants(const rc_u8 *frame, rc_u32 len, rc_u16 tpid, rc_u16 tci)
{
	struct rc_flow flow;

	parse_exact(frame, len, tpid, tci, &flow);
	check_fields(&flow, len + (tpid ? 4 : 0), 14);
	CHECK(!tpid || (flow.vlan_tpid == tpid && flow.vlan_tci == tci), "the tag held elsewhere is not the outermost");
	check_reverse(&flow);
	check_payload_place(frame, len, tpid, &flow);
	check_inner(frame, len, tpid, tci, &flow);
	if (!tpid)
		check_tag_place(frame, len, &flow);
}
