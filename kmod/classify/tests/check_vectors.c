// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Known packets: each field and each hash is right. No truncated packet makes the parser read beyond its end. */
#include "check.h"

static void check_vector(const struct vector *v)
{
	struct rc_flow flow;
	const char *field;
	rc_u64 key[2];
	rc_u32 i;

	vectors_key(key);
	parse_exact(v->frame, v->len, v->tpid, v->tci, &flow);
	field = flow_differs(&flow, &v->flow);
	CHECK(!field, "%s: %s is not as in vectors.txt", v->name, field);
	for (i = 0; i < NR_HASHES; i++)
		CHECK(rc_flow_hash(&flow, i, key) == v->hash[i], "%s: balance %u: hash %08x, in vectors.txt %08x", v->name, i,
		      rc_flow_hash(&flow, i, key), v->hash[i]);
	CHECK(rc_flow_hash(&flow, RINGCAP_BALANCE_ROUND_ROBIN, key) == v->hash[RINGCAP_BALANCE_FLOW], "%s", v->name);
}

/* Every truncation of the packet. Also every byte inverted, which damages each header once. */
static void check_damaged(const struct vector *v)
{
	rc_u8 frame[FRAME_MAX];
	rc_u32 i;

	for (i = 0; i <= v->len; i++)
		check_invariants(v->frame, i, v->tpid, v->tci);
	memcpy(frame, v->frame, v->len);
	for (i = 0; i < v->len; i++) {
		frame[i] = (rc_u8)~frame[i];
		check_invariants(frame, v->len, v->tpid, v->tci);
		frame[i] = v->frame[i];
	}
}

void check_vectors(const char *path)
{
	FILE *file = vectors_open(path);
	struct vector v;
	int n = 0;

	for (; vectors_next(file, &v); n++) {
		check_vector(&v);
		check_damaged(&v);
	}
	fclose(file);
	CHECK(n >= 60, "only %d vectors in %s", n, path);
	printf("vectors: %d packets, each field, each hash, each beginning of each\n", n);
}
