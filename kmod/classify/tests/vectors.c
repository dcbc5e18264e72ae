// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reading vectors.txt. */
#include "check.h"

#define NR_COLUMNS 22
#define NR_TUNNEL_COLUMNS 25

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

/* The 14 columns of a flow. */
static void fill_flow(struct rc_flow *flow, char **column, const char *name)
{
	memset(flow, 0, sizeof(*flow));
	flow->l3_proto = (rc_u16)number(column[0], name);
	flow->l3_off = (rc_u16)number(column[1], name);
	flow->l4_off = (rc_u16)number(column[2], name);
	flow->l4_proto = (rc_u8)number(column[3], name);
	flow->sport = (rc_u16)number(column[4], name);
	flow->dport = (rc_u16)number(column[5], name);
	flow->vlan_tpid = (rc_u16)number(column[6], name);
	flow->vlan_tci = (rc_u16)number(column[7], name);
	flow->inner_vid = (rc_u16)number(column[8], name);
	flow->flags = (rc_u8)number(column[9], name);
	bytes(column[10], (rc_u8 *)flow->saddr, sizeof(flow->saddr), name);
	bytes(column[11], (rc_u8 *)flow->daddr, sizeof(flow->daddr), name);
	flow->smac = number(column[12], name);
	flow->dmac = number(column[13], name);
}

static void fill_hashes(rc_u32 hash[NR_HASHES], char **column, const char *name)
{
	int i;

	for (i = 0; i < NR_HASHES; i++)
		hash[i] = (rc_u32)number(column[i], name);
}

static void fill(struct vector *v, char **column)
{
	memset(v, 0, sizeof(*v));
	snprintf(v->name, sizeof(v->name), "%s", column[0]);
	v->tpid = (rc_u16)number(column[1], v->name);
	v->tci = (rc_u16)number(column[2], v->name);
	fill_flow(&v->flow, column + 3, v->name);
	fill_hashes(v->hash, column + 17, v->name);
	if (strcmp(column[21], "-"))
		v->len = bytes(column[21], v->frame, sizeof(v->frame), v->name);
}

/* The columns of the next line, or 0 at the end. */
static int next_line(FILE *file, char **column, int nr_columns)
{
	static char line[4096];
	char *word;
	int n = 0;

	do {
		if (!fgets(line, sizeof(line), file))
			return 0;
	} while (line[0] == '#');
	for (word = strtok(line, " \n"); word && n <= nr_columns; word = strtok(NULL, " \n"))
		column[n++] = word;
	CHECK(n == nr_columns, "a line with %d columns instead of %d", n, nr_columns);
	return 1;
}

int vectors_next(FILE *file, struct vector *v)
{
	char *column[NR_COLUMNS + 1];

	if (!next_line(file, column, NR_COLUMNS))
		return 0;
	fill(v, column);
	return 1;
}

int tunnels_next(FILE *file, struct vector *v, struct rc_way_in *found)
{
	char *column[NR_TUNNEL_COLUMNS + 1];

	if (!next_line(file, column, NR_TUNNEL_COLUMNS))
		return 0;
	memset(v, 0, sizeof(*v));
	memset(found, 0, sizeof(*found));
	snprintf(v->name, sizeof(v->name), "%s", column[0]);
	v->tpid = (rc_u16)number(column[1], v->name);
	v->tci = (rc_u16)number(column[2], v->name);
	found->tunnel = (rc_u8)number(column[3], v->name);
	found->has_id = (rc_u8)number(column[4], v->name);
	found->tunnel_id = (rc_u32)number(column[5], v->name);
	fill_flow(&found->flow, column + 6, v->name);
	fill_hashes(v->hash, column + 20, v->name);
	v->len = bytes(column[24], v->frame, sizeof(v->frame), v->name);
	return 1;
}
