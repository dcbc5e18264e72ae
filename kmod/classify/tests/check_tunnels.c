// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Known tunnels: the inner packet is found, whatever is around it. No truncated packet makes the parser read beyond its
 * end.
 */
#include "check.h"

#define FAR_MAX (RC_INNER_MAX + 64)

static void check_found(const struct vector *v, const struct rc_way_in *want, const struct rc_way_in *found)
{
	const char *field = flow_differs(&found->flow, &want->flow);
	rc_u32 ends[2];
	rc_u64 key[2];

	CHECK(!field, "%s: %s is not as in tunnels.txt", v->name, field);
	CHECK(found->tunnel == want->tunnel, "%s: tunnel %u", v->name, found->tunnel);
	CHECK(found->has_id == want->has_id && found->tunnel_id == want->tunnel_id, "%s: id %x", v->name, found->tunnel_id);
	vectors_key(key);
	CHECK(rc_flow_hash(&found->flow, RINGCAP_BALANCE_FLOW, key) == v->hash[0], "%s: FLOW", v->name);
	CHECK(rc_flow_hash(&found->flow, rc_flow_balance(&found->flow, RINGCAP_BALANCE_TCP_FIVE_TUPLE), key) == v->hash[1],
	      "%s: TCP_FIVE_TUPLE", v->name);
	rc_end_hashes(&found->flow, key, ends);
	CHECK(ends[0] == v->hash[2] && ends[1] == v->hash[3], "%s: BOTH_ENDS", v->name);
}

static void check_tunnel(const struct vector *v, const struct rc_way_in *want)
{
	struct rc_inner inner;
	struct rc_flow flow;
	int found;

	parse_exact(v->frame, v->len, v->tpid, v->tci, &flow);
	found = parse_inner_exact(v->frame, v->len, v->tpid, v->tci, &flow, &inner);
	CHECK(found == (want->tunnel != RC_TUNNEL_NONE), "%s: %s", v->name, found ? "something inside" : "nothing inside");
	if (found)
		check_found(v, want, &inner.found);
}

/* Every truncation, every damaged byte, and with more bytes behind the packet than are read. */
static void check_damaged(const struct vector *v)
{
	static rc_u8 frame[FAR_MAX];
	rc_u32 i;

	for (i = 0; i <= v->len; i++)
		check_invariants(v->frame, i, v->tpid, v->tci);
	memcpy(frame, v->frame, v->len);
	memset(frame + v->len, 0x45, sizeof(frame) - v->len);
	check_invariants(frame, FAR_MAX, v->tpid, v->tci);
	for (i = 0; i < v->len; i++) {
		frame[i] = (rc_u8)~frame[i];
		check_invariants(frame, v->len, v->tpid, v->tci);
		check_invariants(frame, FAR_MAX, v->tpid, v->tci);
		frame[i] = v->frame[i];
	}
}

void check_tunnels(const char *path)
{
	FILE *file = vectors_open(path);
	struct rc_way_in want;
	struct vector v;
	int n = 0;

	for (; tunnels_next(file, &v, &want); n++) {
		check_tunnel(&v, &want);
		check_damaged(&v);
	}
	fclose(file);
	CHECK(n >= 90, "only %d tunnels in %s", n, path);
	printf("tunnels: %d packets, what is inside each, each beginning of each\n", n);
}
