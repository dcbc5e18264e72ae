// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "patterns.h"

#include <ctype.h>

void built_make(struct built *built, const struct rc_pattern *patterns, rc_u32 nr, rc_u32 dense)
{
	rc_u32 i, bytes = 0;

	memset(built, 0xa5, sizeof(*built));
	built->order = malloc(nr * sizeof(*built->order) + 1);
	rc_automaton_sort(&built->automaton, patterns, nr, built->order);
	if (dense && built->automaton.nr_dense > dense)
		built->automaton.nr_dense = dense;
	built->size = rc_automaton_size(&built->automaton);
	for (i = 0; i < nr; i++)
		bytes += patterns[i].len;
	CHECK(built->size <= 17ull * (bytes + 8) + RC_ROWS_MAX + (built->automaton.case_words ? 32ull * nr : 0), "%llu bytes", (unsigned long long)built->size);
	built->block = malloc(built->size + 1);
	memset(built->block, 0x5a, built->size + 1);
	rc_automaton_build(&built->automaton, built->block);
}

void built_free(struct built *built)
{
	free(built->block);
	free(built->order);
}

rc_u32 built_find(const struct built *built, const rc_u8 *data, rc_u32 len, rc_u32 piece)
{
	struct rc_search search;
	rc_u32 at, n;
	rc_u8 *copy;
	int done = 0;

	rc_search_start(&search);
	for (at = 0; at < len && !done; at += n) {
		n = 1 + (rc_u32)(next_random() % piece);
		n = n < len - at ? n : len - at;
		copy = malloc(n);
		memcpy(copy, data + at, n);
		done = rc_search_piece(&built->automaton, &search, copy, n, at + n < len);
		free(copy);
	}
	return search.hit;
}

static int naive_equal(const struct rc_pattern *pattern, const rc_u8 *data)
{
	rc_u32 i;

	for (i = 0; i < pattern->len; i++)
		if (pattern->nocase ? tolower(pattern->bytes[i]) != tolower(data[i]) : pattern->bytes[i] != data[i])
			return 0;
	return 1;
}

/* Whether @a comes before @b where both end at one place. */
static int naive_better(const struct rc_pattern *a, const struct rc_pattern *b)
{
	return a->len != b->len ? a->len > b->len : !a->nocase && b->nocase;
}

rc_u32 naive_find(const struct rc_pattern *patterns, rc_u32 nr, const rc_u8 *data, rc_u32 len)
{
	rc_u32 end, i, best = 0;

	for (end = 1; end <= len && !best; end++) {
		for (i = 0; i < nr; i++) {
			const struct rc_pattern *p = &patterns[i];

			if (p->len > end || end - p->len < p->offset)
				continue;
			if (p->depth && end > (rc_u64)p->offset + p->depth)
				continue;
			if (naive_equal(p, data + end - p->len) && (!best || naive_better(p, &patterns[best - 1])))
				best = i + 1;
		}
	}
	return best;
}

static rc_u64 naive_limit(const struct rc_pattern *pattern)
{
	return pattern->depth ? (rc_u64)pattern->offset + pattern->depth : ~0ull;
}

/* Whether @b ends where @a does; ignores case if @fold is set. */
static int naive_ends(const struct rc_pattern *a, const struct rc_pattern *b, int fold)
{
	struct rc_pattern end = *b;

	end.nocase = (rc_u8)fold;
	return b->len <= a->len && naive_equal(&end, a->bytes + a->len - b->len);
}

/* Whether pattern @i never decides: a preferred one with the same text is found wherever it is. */
static int naive_useless(const struct rc_pattern *patterns, rc_u32 nr, rc_u32 i)
{
	const struct rc_pattern *b = &patterns[i], *a;
	rc_u32 j;

	for (j = 0; j < nr; j++) {
		a = &patterns[j];
		if (j == i || a->len != b->len || !(naive_better(a, b) || (j < i && !naive_better(b, a))))
			continue;
		if (a->offset <= b->offset && naive_limit(a) >= naive_limit(b) && a->nocase == b->nocase &&
		    naive_equal(a, b->bytes))
			return 1;
	}
	return 0;
}

int naive_crowded(const struct rc_pattern *patterns, rc_u32 nr)
{
	rc_u32 i, j, most, decides;
	int fold = 0;

	for (i = 0; i < nr; i++)
		fold |= patterns[i].nocase;
	for (i = 0; i < nr; i++) {
		/* The longest pattern that decides at any position: shorter ones are not compared. */
		for (decides = 0, j = 0; j < nr; j++)
			if (!patterns[j].offset && !patterns[j].depth && patterns[j].nocase == fold &&
			    patterns[j].len > decides && naive_ends(&patterns[i], &patterns[j], fold))
				decides = patterns[j].len;
		for (most = 0, j = 0; j < nr; j++)
			most += patterns[j].len >= decides && naive_ends(&patterns[i], &patterns[j], fold) &&
				!naive_useless(patterns, nr, j);
		if (most > RC_ENDS_MAX)
			return 1;
	}
	return 0;
}
