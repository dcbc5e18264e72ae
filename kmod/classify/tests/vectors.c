// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reading vectors.txt. */
#include "check.h"

#define NR_COLUMNS 22

static rc_u64 number(const char *text, const char *name)
{
	char *end;
	rc_u64 value = strtoull(text, &end, 16);

	CHECK(*text && !*end, "%s: '%s' is not a number", name, text);
	return value;
}

static rc_u32 bytes(const char *text, rc_u8 *out, rc_u32 max, const char *name)
{
	char pair[3] = "";
	rc_u32 n;

	for (n = 0; text[2 * n]; n++) {
		CHECK(n < max && text[2 * n + 1], "%s: more than %u bytes, or half a byte", name, max);
		memcpy(pair, text + 2 * n, 2);
		out[n] = (rc_u8)number(pair, name);
	}
	return n;
}

FILE *vectors_open(const char *path)
{
	FILE *file = fopen(path, "r");

	CHECK(file, "cannot open %s", path);
	return file;
}

void vectors_key(rc_u64 key[2])
{
	rc_u8 raw[RINGCAP_KEY_LEN];
	int i;

	for (i = 0; i < RINGCAP_KEY_LEN; i++)
		raw[i] = (rc_u8)i;
	rc_key_load(raw, key);
}

static void fill(struct vector *v, char **column)
{
	struct rc_flow *flow = &v->flow;
	const char *name = v->name;
	int i;

	memset(v, 0, sizeof(*v));
	snprintf(v->name, sizeof(v->name), "%s", column[0]);
	v->tpid = (rc_u16)number(column[1], name);
	v->tci = (rc_u16)number(column[2], name);
	flow->l3_proto = (rc_u16)number(column[3], name);
	flow->l3_off = (rc_u16)number(column[4], name);
	flow->l4_off = (rc_u16)number(column[5], name);
	flow->l4_proto = (rc_u8)number(column[6], name);
	flow->sport = (rc_u16)number(column[7], name);
	flow->dport = (rc_u16)number(column[8], name);
	flow->vlan_tpid = (rc_u16)number(column[9], name);
	flow->vlan_tci = (rc_u16)number(column[10], name);
	flow->inner_vid = (rc_u16)number(column[11], name);
	flow->flags = (rc_u8)number(column[12], name);
	bytes(column[13], (rc_u8 *)flow->saddr, sizeof(flow->saddr), name);
	bytes(column[14], (rc_u8 *)flow->daddr, sizeof(flow->daddr), name);
	flow->smac = number(column[15], name);
	flow->dmac = number(column[16], name);
	for (i = 0; i < NR_HASHES; i++)
		v->hash[i] = (rc_u32)number(column[17 + i], name);
	if (strcmp(column[21], "-"))
		v->len = bytes(column[21], v->frame, sizeof(v->frame), name);
}

int vectors_next(FILE *file, struct vector *v)
{
	static char line[4096];
	char *column[NR_COLUMNS + 1];
	char *word;
	int n = 0;

	do {
		if (!fgets(line, sizeof(line), file))
			return 0;
	} while (line[0] == '#');
	for (word = strtok(line, " \n"); word && n <= NR_COLUMNS; word = strtok(NULL, " \n"))
		column[n++] = word;
	CHECK(n == NR_COLUMNS, "a line with %d columns instead of %d", n, NR_COLUMNS);
	fill(v, column);
	return 1;
}
