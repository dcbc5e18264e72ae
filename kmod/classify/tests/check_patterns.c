// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The patterns' automaton against a naive matcher. */
#include "patterns.h"

#define NR_MAX 200
#define POOL 4096

static rc_u8 random_letter(rc_u32 letters)
{
	static const char few[] = "aAbBcC";

	return letters <= 6 ? (rc_u8)few[next_random() % letters] : (rc_u8)next_random();
}

/* Patterns of few letters overlap, contain each other and are found often; some are parts of others. */
static rc_u32 random_patterns(struct rc_pattern *patterns, rc_u8 *pool, rc_u32 letters)
{
	rc_u32 nr = 1 + (rc_u32)(next_random() % NR_MAX), longest = next_random() % 8 ? 8 : 255, i;

	for (i = 0; i < POOL; i++)
		pool[i] = random_letter(letters);
	for (i = 0; i < nr; i++) {
		patterns[i].len = (rc_u8)(1 + next_random() % longest);
		patterns[i].bytes = pool + next_random() % (POOL - 255);
		patterns[i].nocase = next_random() % 3 == 0;
		patterns[i].offset = next_random() % 3 ? 0 : (rc_u32)(next_random() % 40);
		patterns[i].depth = next_random() % 3 ? 0 : patterns[i].len + (rc_u32)(next_random() % 40);
		if (next_random() % 50 == 0)
			patterns[i].offset = 0xfffffff0;
	}
	return nr;
}

/* Very many patterns are equal except for case or place. */
static void narrow_patterns(struct rc_pattern *patterns, rc_u32 nr)
{
	rc_u32 i;

	for (i = 0; i < nr; i++) {
		patterns[i].len = (rc_u8)(1 + i % 2);
		patterns[i].offset = (rc_u32)(next_random() % 100);
		patterns[i].depth = patterns[i].len + (rc_u32)(next_random() % 2);
	}
}

static void check_random(void)
{
	static rc_u8 pool[POOL], data[400];
	struct rc_pattern patterns[NR_MAX];
	rc_u32 round, i, j, nr, hits = 0, tries = 0, crowded = 0;

	for (round = 0; round < 1500; round++) {
		rc_u32 letters = 2 + (rc_u32)(next_random() % 7);
		struct built built;

		nr = random_patterns(patterns, pool, letters);
		/* Mostly long ones, otherwise everything would be found at once. */
		if (round % 2)
			for (i = 0; i < nr; i++)
				patterns[i].len = patterns[i].len < 5 ? 5 : patterns[i].len;
		for (i = 0; i < nr; i++)
			if (patterns[i].depth && patterns[i].depth < patterns[i].len)
				patterns[i].depth = patterns[i].len;
		if (round % 5 == 4)
			narrow_patterns(patterns, nr);
		built_make(&built, patterns, nr, (rc_u32)(next_random() % 30));
		CHECK(!rc_automaton_crowded(&built.automaton) == !naive_crowded(patterns, nr), "round %u: %u patterns", round, nr);
		crowded += rc_automaton_crowded(&built.automaton) != 0;
		for (j = 0; j < 10; j++) {
			rc_u32 len = (rc_u32)(next_random() % sizeof(data)), want, got;

			for (i = 0; i < len; i++)
				data[i] = random_letter(letters);
			if (len > 100 && next_random() % 2)
				memcpy(data + 50, pool + next_random() % (POOL - 60), 50);
			want = naive_find(patterns, nr, data, len);
			got = built_find(&built, data, len, 1 + (rc_u32)(next_random() % 100));
			CHECK(got == want, "round %u: %u patterns, %u bytes: found %u, not %u", round, nr, len, got, want);
			hits += got > 0;
			tries++;
		}
		built_free(&built);
	}
	CHECK(crowded > 10 && crowded < round / 2, "%u of %u sets are crowded: too few or too many", crowded, round);
	CHECK(hits > tries / 10 && hits < tries * 9 / 10, "%u of %u streams have a hit: too few or too many", hits, tries);
}

/* As many patterns as possible: the memory is within the bound, and every pattern is found. */
static void check_many(rc_u32 nr, rc_u32 len, rc_u64 bytes_max)
{
	struct rc_pattern *patterns = calloc(nr, sizeof(*patterns));
	rc_u8 *bytes = malloc((size_t)nr * len), data[300];
	struct built built;
	rc_u32 i, j, hit;

	for (i = 0; i < nr; i++) {
		for (j = 0; j < len; j++)
			bytes[i * len + j] = (rc_u8)('!' + next_random() % 90);
		patterns[i] = (struct rc_pattern){ .bytes = bytes + i * len, .len = (rc_u8)len, .nocase = i & 1 };
	}
	built_make(&built, patterns, nr, 0);
	CHECK(built.size <= bytes_max, "%u patterns of %u bytes take %llu", nr, len, (unsigned long long)built.size);
	for (i = 0; i < nr; i += 1 + nr / 500) {
		memset(data, 0, sizeof(data));
		memcpy(data + 20, bytes + i * len, len);
		hit = built_find(&built, data, sizeof(data), 40);
		CHECK(hit && (hit == i + 1 || !memcmp(bytes + (hit - 1) * len, data + 20, len) || patterns[hit - 1].nocase),
		      "pattern %u: found %u", i, hit);
	}
	built_free(&built);
	free(bytes);
	free(patterns);
}

/* Failure links from the deepest states, again and again: this ends soon only if a byte takes at most two steps. */
static void check_worst(void)
{
	static rc_u8 bytes[255], data[1 << 20];
	struct rc_pattern patterns[255];
	struct built built;
	rc_u32 i;

	memset(bytes, 'a', sizeof(bytes));
	memset(data, 'a', sizeof(data));
	bytes[254] = 'b';
	for (i = 0; i < sizeof(data); i += 254)
		data[i] = 'c';
	for (i = 0; i < 255; i++)
		patterns[i] = (struct rc_pattern){ .bytes = bytes + i, .len = (rc_u8)(255 - i) };
	built_make(&built, patterns, 255, 1);
	CHECK(built_find(&built, data, sizeof(data), 70000) == 0, "something that is not there");
	data[sizeof(data) - 1] = 'b';
	CHECK(built_find(&built, data, sizeof(data), 70000), "nothing");
	built_free(&built);
}

/*
 * Text that differs from a pattern by the case of at most one letter, in pieces; another pattern makes the trie fold.
 */
static void check_case_of(rc_u32 len)
{
	rc_u8 bytes[255], data[600];
	struct rc_pattern patterns[3] = {
		{ .bytes = bytes, .len = (rc_u8)len },
		{ .bytes = (const rc_u8 *)"-any case-", .len = 10, .nocase = 1 },
		{ .bytes = bytes, .len = (rc_u8)len, .offset = 300 },
	};
	struct built built;
	rc_u32 i, at;

	for (i = 0; i < len; i++)
		bytes[i] = (rc_u8)("aZmQ7["[next_random() % 6]);
	built_make(&built, patterns, 3, len % 2);
	for (i = 0; i <= len; i++) {
		memset(data, ' ', sizeof(data));
		at = (rc_u32)(next_random() % (sizeof(data) - 255));
		memcpy(data + at, bytes, len);
		if (i < len)
			data[at + i] ^= 0x20;
		CHECK(built_find(&built, data, sizeof(data), 1 + (rc_u32)(next_random() % 900)) ==
		      naive_find(patterns, 3, data, sizeof(data)), "%u bytes at %u, byte %u in another case", len, at, i);
	}
	built_free(&built);
}

static void check_cases(void)
{
	static const rc_u32 lens[] = { 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 193, 254, 255 };
	rc_u32 i;

	for (i = 0; i < 5 * sizeof(lens) / sizeof(lens[0]); i++)
		check_case_of(lens[i % (sizeof(lens) / sizeof(lens[0]))]);
}

/* Every byte needs the case of hundreds of patterns: the stream's bytes are not read again for each of them. */
static void check_cases_everywhere(void)
{
	static rc_u8 bytes[255], data[1 << 16];
	struct rc_pattern patterns[255];
	struct built built;
	rc_u32 i;

	memset(bytes, 'a', sizeof(bytes));
	memset(data, 'a', sizeof(data));
	bytes[254] = 'A';
	for (i = 0; i < 254; i++)
		patterns[i] = (struct rc_pattern){ .bytes = bytes + i, .len = (rc_u8)(255 - i) };
	patterns[254] = (struct rc_pattern){ .bytes = (const rc_u8 *)"b", .len = 1, .nocase = 1 };
	built_make(&built, patterns, 255, 1);
	CHECK(built_find(&built, data, sizeof(data), 7000) == 0, "something that is not there");
	data[sizeof(data) - 1] = 'A';
	CHECK(built_find(&built, data, sizeof(data), 7000) == 1, "not the longest");
	built_free(&built);
}

/* Checks the result of rc_automaton_crowded(). */
static void check_crowd(const struct rc_pattern *patterns, rc_u32 nr, rc_u32 want, const char *what)
{
	struct built built;

	built_make(&built, patterns, nr, 0);
	CHECK(rc_automaton_crowded(&built.automaton) == want, "%s: %u", what, rc_automaton_crowded(&built.automaton));
	built_free(&built);
}

/* As many as may be compared at one place, and one more. */
static void check_crowds(void)
{
	static rc_u8 cases[RC_ENDS_MAX + 1][8], a[RC_ENDS_MAX + 1];
	struct rc_pattern patterns[RC_ENDS_MAX + 2];
	rc_u32 i, j, kind;

	memset(a, 'a', sizeof(a));
	for (kind = 0; kind < 4; kind++) {
		/* The first pattern makes the trie fold, and is not part of the crowd. */
		patterns[0] = (struct rc_pattern){ .bytes = (const rc_u8 *)"-", .len = 1, .nocase = 1 };
		for (i = 0; i <= RC_ENDS_MAX; i++) {
			struct rc_pattern *p = &patterns[i + 1];

			for (j = 0; j < 8; j++)
				cases[i][j] = (rc_u8)(i >> j & 1 ? 'A' : 'a');
			*p = (struct rc_pattern){ .bytes = cases[kind ? 0 : i], .len = 8 };
			p->offset = kind == 1 ? RC_ENDS_MAX - i : 0;
			p->depth = kind == 2 ? 8 + i : 0;
			if (kind == 3)
				*p = (struct rc_pattern){ .bytes = a, .len = (rc_u8)(RC_ENDS_MAX + 1 - i) };
		}
		check_crowd(patterns, RC_ENDS_MAX + 1, 0, "as many as may be");
		check_crowd(patterns, RC_ENDS_MAX + 2, 2, "one more");
		/* A pattern that decides at any position ends the search. */
		patterns[0] = (struct rc_pattern){ .bytes = patterns[1].bytes, .len = patterns[1].len, .nocase = 1 };
		check_crowd(patterns, RC_ENDS_MAX + 2, kind == 3 ? 0 : 2, "and one that decides");
	}
	/* Repeating the same pattern costs nothing. */
	for (i = 0; i < RC_ENDS_MAX + 2; i++)
		patterns[i] = (struct rc_pattern){ .bytes = a, .len = 5, .offset = 3 + i % 2, .depth = 9 - i % 2 };
	check_crowd(patterns, RC_ENDS_MAX + 2, 0, "the same");
}

static void check_places(void)
{
	const struct rc_pattern at_start = { .bytes = (const rc_u8 *)"GET ", .len = 4, .depth = 4 };
	const struct rc_pattern later = { .bytes = (const rc_u8 *)"host", .len = 4, .nocase = 1, .offset = 6, .depth = 5 };
	const rc_u8 *yes = (const rc_u8 *)"xxxxxxxHoSt", *early = (const rc_u8 *)"xxxxxhostxx", *late = (const rc_u8 *)"xxxxxxxxhost";
	struct built built;

	built_make(&built, &at_start, 1, 0);
	CHECK(built_find(&built, (const rc_u8 *)"GET /", 5, 2) == 1, "at the start");
	CHECK(built_find(&built, (const rc_u8 *)" GET /", 6, 2) == 0, "not at the start");
	built_free(&built);
	built_make(&built, &later, 1, 0);
	CHECK(built_find(&built, yes, 11, 3) == 1, "in its place");
	CHECK(built_find(&built, early, 11, 3) == 0, "too early");
	CHECK(built_find(&built, late, 12, 3) == 0, "too late");
	built_free(&built);
	/* No patterns: the search is over at once. */
	built_make(&built, NULL, 0, 0);
	CHECK(built.size == 0 && built_find(&built, yes, 11, 3) == 0, "of nothing");
	built_free(&built);
}

void check_patterns(void)
{
	check_places();
	check_random();
	check_worst();
	check_cases();
	check_cases_everywhere();
	check_crowds();
	check_many(1000, 10, 6 << 20);
	check_many(65536, 16, 40 << 20);
	check_many(4000, 255, 40 << 20);
	printf("patterns: like a naive matcher, in pieces; 65536 of them\n");
}
