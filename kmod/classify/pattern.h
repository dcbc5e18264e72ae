/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Patterns: finds which of many literals is the first in a stream of bytes (A. V. Aho, M. J. Corasick, "Efficient
 * string matching", CACM 18(6), 1975). Plain C without kernel or libc dependencies.
 *
 * All patterns form one trie. The trie folds case if at least one pattern ignores case. Its states are numbered level
 * by level, which gives it these properties:
 *
 *	The children of state S are the states child[S] .. child[S + 1] - 1, in the order of their labels.
 *	The shallow states, where ordinary traffic stays, are the first ones. They have dense rows: the next row for
 *	each class of bytes, with failures resolved. Bytes that no pattern has are one class. A state is identified
 *	by the place of its row, so that a byte costs a look at its class and one at the row.
 *	The other states have only their children and a failure link. One byte can follow several links. But a link
 *	leads at least one level up and a byte one level down: two steps a byte, whatever the bytes are.
 *
 * There is one more row, the trap, which leads only to itself. If a byte leads to a state in which a pattern ends, or
 * that has no row, the row has the place of the trap. So 16 bytes are read without a check. They are read again, one by
 * one, only if they end in the trap. If few bytes begin a pattern, bytes that begin none are skipped at the root,
 * without waiting for one look-up before the next.
 *
 * If the trie folds, a pattern that respects case is found folded. Then bit 5 of its bytes is compared, which
 * distinguishes the case of letters. The stream's bits are recorded when they are first needed, each byte once.
 *
 * So a byte costs the same among 10 and among 65,536 patterns, with one exception. Several patterns may end at one
 * place that are equal, or suffixes of one another, except for case, offset or depth. Those are compared one by one,
 * some 10 ns each. Patterns that never decide are omitted. rc_automaton_crowded() names a pattern that ends where more
 * than RC_ENDS_MAX may be compared: the caller should reject it.
 *
 * Memory for N patterns of B bytes in all: at most 17 * (B + 8) + RC_ROWS_MAX bytes, and 32 * N more if patterns of
 * both kinds are mixed. 1,000 patterns of 10 bytes take less than 3 MiB.
 *
 * Building takes the patterns in the order of their bytes. A state is a range of them, and the number of states is
 * known before the first one is made. The block is allocated once.
 *
 *	rc_automaton_sort(a, patterns, nr, order)	order: nr words, the caller's, as long as the automaton lives
 *	rc_automaton_size(a)				bytes of the block
 *	rc_automaton_build(a, block)			the block is the caller's, any content, aligned to 8
 *	rc_automaton_crowded(a)				index plus 1 of a pattern that ends among too many, or 0
 *
 * To search, call rc_search_start(s), then rc_search_piece(a, s, data, len, more) for one piece of the stream after the
 * other until it returns true. Then s->hit is the index of the pattern plus 1, or 0 if none can be found any more.
 *
 * The hit is the pattern that ends first. Among patterns that end at the same place it is the longest one. Among equal
 * ones it is the one that respects case, then the one that comes first in the array. It does not depend on how the
 * stream is cut into pieces.
 */
#ifndef RC_PATTERN_H
#define RC_PATTERN_H

#include "types.h"

#ifndef rc_pause
#define rc_pause() do { } while (0)	/* called often during long work */
#endif

#define RC_ROWS_MAX	(4u << 20)	/* bytes of dense rows */
#define RC_SKIP		8u		/* bytes that are skipped at once */
#define RC_STARTS_MAX	32u		/* with more bytes that begin a pattern, skipping is not worth it */
#define RC_ENDS_MAX	64u	/* patterns that may have to be compared for one byte of the stream */
#define RC_CASE_WORDS	4u		/* words that hold a bit for each byte of the longest pattern */
#define RC_DEEP		(1u << 31)	/* in rc_search.at: the number of a state without a row */
#define RC_SAME		(1u << 31)	/* in order: the next one has the same bytes, ignoring case if the trie folds */
#define RC_UNLIMITED	0xffffffffu

/**
 * struct rc_pattern - a literal
 * @bytes: @len of them, the caller's, used while building only
 * @offset: least position in the stream where it may begin
 * @depth: it must lie within this many bytes from @offset on, 0 = to the end
 * @len: 1 .. 255
 * @nocase: ASCII letters match in either case
 */
struct rc_pattern {
	const rc_u8 *bytes;
	rc_u32 offset;
	rc_u32 depth;
	rc_u8 len;
	rc_u8 nocase;
};

/**
 * struct rc_state - a state
 * @child: its first child
 * @fail: the state of the longest proper suffix
 * @link: the nearest state by @fail with an @out, 0 = none
 * @out: 1 + the place in order of the first pattern that equals the state's whole string, 0 = none
 */
struct rc_state {
	rc_u32 child;
	rc_u32 fail;
	rc_u32 link;
	rc_u32 out;
};

/**
 * struct rc_automaton - all patterns
 * @order: the @nr of @patterns that can decide, sorted by their bytes; RC_SAME
 * @states: @nr_states of them, and one more that ends the children of the last one
 * @labels: class of the byte that leads to each state
 * @rows: @nr_dense rows, each with @nr_classes places of rows, and the trap
 * @trap: place of the trap
 * @cases: bit 5 of each byte of the patterns, in order, @case_words for each pattern, from its last byte on
 * @case_words: 0 = no pattern has to be compared
 * @first: least position where a pattern may begin
 * @limit: position where the last pattern must have ended, RC_UNLIMITED = anywhere
 * @classes: class of each byte
 * @starts: whether a byte leads away from the root
 * @skips: whether few bytes do
 * @fold: whether letters match in either case
 */
struct rc_automaton {
	rc_u32 nr;
	rc_u32 nr_states;
	rc_u32 nr_dense;
	rc_u32 nr_classes;
	rc_u32 trap;
	rc_u32 case_words;
	rc_u32 first;
	rc_u32 limit;
	const struct rc_pattern *patterns;
	rc_u32 *order;
	struct rc_state *states;
	rc_u64 *cases;
	rc_u32 *rows;
	rc_u8 *labels;
	rc_u8 classes[256];
	rc_u8 starts[256];
	rc_u8 skips;
	rc_u8 fold;
};

/**
 * struct rc_search - state of a search in a stream
 * @pos: bytes of the stream that were read
 * @at: the place of the state's row, or RC_DEEP
 * @hit: 1 + the index of the pattern that was found
 * @seen: bytes of the stream that were read when @cases was recorded
 * @cases: bit 5 of the bytes before @seen, from the last byte on
 */
struct rc_search {
	rc_u32 pos;
	rc_u32 at;
	rc_u32 hit;
	rc_u32 seen;
	rc_u64 cases[RC_CASE_WORDS];
};

static inline rc_u8 rc_fold(const struct rc_automaton *a, rc_u8 byte)
{
	return a->fold && (rc_u8)(byte - 'A') < 26 ? (rc_u8)(byte | 0x20) : byte;
}

/* Bit 5 of a byte, which distinguishes the case of letters. */
static inline rc_u64 rc_case(rc_u8 byte)
{
	return byte >> 5 & 1;
}

/* ---- in order ---- */

/* Length of the common prefix of two patterns, as @automaton sees them. */
static inline rc_u32 rc_pattern_common(const struct rc_automaton *automaton, const struct rc_pattern *a,
				       const struct rc_pattern *b)
{
	rc_u32 len = a->len < b->len ? a->len : b->len, i;

	for (i = 0; i < len; i++)
		if (rc_fold(automaton, a->bytes[i]) != rc_fold(automaton, b->bytes[i]))
			break;
	return i;
}

/* Whether pattern @x comes before @y. */
static inline int rc_pattern_before(const struct rc_automaton *automaton, rc_u32 x, rc_u32 y)
{
	const struct rc_pattern *a = &automaton->patterns[x], *b = &automaton->patterns[y];
	rc_u32 common = rc_pattern_common(automaton, a, b);

	if (common < a->len && common < b->len)
		return rc_fold(automaton, a->bytes[common]) < rc_fold(automaton, b->bytes[common]);
	if (a->len != b->len)
		return a->len < b->len;
	return !a->nocase != !b->nocase ? !a->nocase : x < y;
}

/* Lets the element at @i of a heap of @nr sink to its place. */
static inline void rc_order_sink(struct rc_automaton *a, rc_u32 i, rc_u32 nr)
{
	rc_u32 *order = a->order, moved = order[i], below;

	while ((below = 2 * i + 1) < nr) {
		if (below + 1 < nr && rc_pattern_before(a, order[below], order[below + 1]))
			below++;
		if (!rc_pattern_before(a, moved, order[below]))
			break;
		order[i] = order[below];
		i = below;
	}
	order[i] = moved;
}

static inline void rc_order_sort(struct rc_automaton *a)
{
	rc_u32 i, last;

	for (i = a->nr / 2; i-- > 0;) {
		rc_order_sink(a, i, a->nr);
		rc_pause();
	}
	for (i = a->nr; i-- > 1;) {
		last = a->order[i];
		a->order[i] = a->order[0];
		a->order[0] = last;
		rc_order_sink(a, 0, i);
		rc_pause();
	}
}

/* Numbers the bytes that occur, in their order; all other bytes get 0. */
static inline void rc_automaton_classify(struct rc_automaton *a)
{
	rc_u32 i, j, nr = 0, used = 0;

	for (i = 0; i < 256; i++)
		a->classes[i] = 0;
	for (i = 0; i < a->nr; i++)
		for (j = 0; j < a->patterns[i].len; j++)
			a->classes[rc_fold(a, a->patterns[i].bytes[j])] = 1;
	for (i = 0; i < 256; i++)
		used += a->classes[i];
	/* If all bytes occur there are no others. */
	nr = used == 256 ? 0 : 1;
	for (i = 0; i < 256; i++)
		a->classes[i] = a->classes[i] ? (rc_u8)nr++ : 0;
	for (i = 0; i < 256; i++)
		a->classes[i] = a->classes[rc_fold(a, (rc_u8)i)];
	a->nr_classes = nr;
}

/* Counts the states that there will be, from the sorted patterns; marks patterns that are equal to the next one. */
static inline void rc_automaton_count(struct rc_automaton *a)
{
	rc_u32 i, common = 0;

	a->nr_states = 1;
	for (i = 0; i < a->nr; i++) {
		const struct rc_pattern *pattern = &a->patterns[a->order[i]];

		a->nr_states += pattern->len - common;
		if (i + 1 == a->nr)
			break;
		common = rc_pattern_common(a, pattern, &a->patterns[a->order[i + 1]]);
		if (common == pattern->len && common == a->patterns[a->order[i + 1]].len)
			a->order[i] |= RC_SAME;
	}
	a->nr_dense = RC_ROWS_MAX / 4 / a->nr_classes - 1;
	if (a->nr_dense > a->nr_states)
		a->nr_dense = a->nr_states;
}

/* The position in the stream behind which a pattern cannot end. */
static inline rc_u64 rc_pattern_limit(const struct rc_pattern *pattern)
{
	return pattern->depth ? (rc_u64)pattern->offset + pattern->depth : ~0ull;
}

/* Whether @a is found wherever @b is, for two patterns with the same bytes to @automaton. */
static inline int rc_pattern_covers(const struct rc_pattern *a, const struct rc_pattern *b)
{
	rc_u32 i;

	if (a->offset > b->offset || rc_pattern_limit(a) < rc_pattern_limit(b))
		return 0;
	if (a->nocase || b->nocase)
		return a->nocase;
	for (i = 0; i < a->len; i++)
		if (a->bytes[i] != b->bytes[i])
			return 0;
	return 1;
}

/*
 * Whether the pattern at @index never decides, because of one from @first to @end in order, which have the same bytes.
 */
static inline int rc_automaton_covered(const struct rc_automaton *a, rc_u32 first, rc_u32 end, rc_u32 index)
{
	/* A set with more of them is rejected. */
	if (end - first > RC_ENDS_MAX)
		end = first + RC_ENDS_MAX;
	for (; first < end; first++)
		if (rc_pattern_covers(&a->patterns[a->order[first]], &a->patterns[index]))
			return 1;
	return 0;
}

/* Omits patterns that never decide. */
static inline void rc_automaton_thin(struct rc_automaton *a)
{
	rc_u32 i, nr = 0, first = 0;

	for (i = 0; i < a->nr; i++) {
		const struct rc_pattern *pattern = &a->patterns[a->order[i]], *before;

		before = nr ? &a->patterns[a->order[first]] : pattern;
		if (before->len != pattern->len || rc_pattern_common(a, before, pattern) != pattern->len)
			first = nr;
		if (!rc_automaton_covered(a, first, nr, a->order[i]))
			a->order[nr++] = a->order[i];
		rc_pause();
	}
	a->nr = nr;
}

/* Determines the positions of the stream between which a pattern can be found. */
static inline void rc_automaton_bound(struct rc_automaton *a)
{
	rc_u64 end;
	rc_u32 i;

	a->first = a->nr ? RC_UNLIMITED : 0;
	a->limit = 0;
	for (i = 0; i < a->nr; i++) {
		const struct rc_pattern *pattern = &a->patterns[i];

		end = rc_pattern_limit(pattern);
		if (pattern->offset < a->first)
			a->first = pattern->offset;
		if (end > a->limit)
			a->limit = end < RC_UNLIMITED ? (rc_u32)end : RC_UNLIMITED;
	}
}

/* Determines whether case is folded, and then how many bytes are compared for case. */
static inline void rc_automaton_mix(struct rc_automaton *a)
{
	rc_u32 i, longest = 0;

	a->fold = 0;
	for (i = 0; i < a->nr; i++) {
		if (a->patterns[i].nocase)
			a->fold = 1;
		else if (a->patterns[i].len > longest)
			longest = a->patterns[i].len;
	}
	a->case_words = 0;
	if (a->fold)
		a->case_words = (longest + 63) / 64;
}

/* The first step of building: puts the patterns in order. @patterns and @order stay in use. */
static inline void rc_automaton_sort(struct rc_automaton *a, const struct rc_pattern *patterns, rc_u32 nr,
				     rc_u32 *order)
{
	rc_u32 i;

	a->patterns = patterns;
	a->order = order;
	a->nr = nr;
	for (i = 0; i < nr; i++)
		order[i] = i;
	rc_automaton_mix(a);
	rc_order_sort(a);
	rc_automaton_classify(a);
	rc_automaton_bound(a);
	rc_automaton_thin(a);
	rc_automaton_count(a);
}

/* ---- in one block ---- */

/* Bytes that rc_automaton_build needs. */
static inline rc_u64 rc_automaton_size(const struct rc_automaton *a)
{
	rc_u64 size = (rc_u64)(a->nr_states + 1) * sizeof(struct rc_state) + (rc_u64)a->nr * a->case_words * 8 +
		      (rc_u64)(a->nr_dense + 1) * a->nr_classes * 4 + a->nr_states;

	return a->nr ? (size + 7) & ~(rc_u64)7 : 0;
}

/* The child of @state by a byte of class @label, 0 = none. At most 8 comparisons. */
static inline rc_u32 rc_automaton_child(const struct rc_automaton *a, rc_u32 state, rc_u8 label)
{
	rc_u32 low = a->states[state].child, high = a->states[state + 1].child, middle, end = high;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (a->labels[middle] < label)
			low = middle + 1;
		else
			high = middle;
	}
	return low < end && a->labels[low] == label ? low : 0;
}

/* Makes the trie. Until the second pass, @link and @fail of a state hold the range of patterns that go through it. */
static inline void rc_automaton_grow(struct rc_automaton *a)
{
	rc_u32 state, depth = 0, level_end = 1, next = 1, low, high;

	a->labels[0] = 0;
	a->states[0].link = 0;
	a->states[0].fail = a->nr;
	for (state = 0; state < a->nr_states; state++) {
		struct rc_state *s = &a->states[state];

		if (state == level_end) {
			depth++;
			level_end = next;
		}
		low = s->link;
		s->child = next;
		s->out = 0;
		for (; low < s->fail && a->patterns[a->order[low] & ~RC_SAME].len == depth; low++)
			s->out = s->out ? s->out : low + 1;
		for (; low < s->fail; low = high) {
			rc_u8 label = a->classes[a->patterns[a->order[low] & ~RC_SAME].bytes[depth]];

			for (high = low + 1; high < s->fail; high++)
				if (a->classes[a->patterns[a->order[high] & ~RC_SAME].bytes[depth]] != label)
					break;
			a->labels[next] = label;
			a->states[next].link = low;
			a->states[next].fail = high;
			next++;
		}
		rc_pause();
	}
	a->states[a->nr_states].child = next;
}

/* The state that @label leads to from @state by children and failure links alone. */
static inline rc_u32 rc_automaton_follow(const struct rc_automaton *a, rc_u32 state, rc_u8 label)
{
	rc_u32 child;

	while (!(child = rc_automaton_child(a, state, label)) && state)
		state = a->states[state].fail;
	return child;
}

/* Works level by level: the states that a state refers to are shallower and done. */
static inline void rc_automaton_link(struct rc_automaton *a)
{
	struct rc_state *states = a->states;
	rc_u32 state, child, fail;

	states[0].fail = 0;
	states[0].link = 0;
	for (state = 0; state < a->nr_states; state++) {
		for (child = states[state].child; child < states[state + 1].child; child++) {
			fail = state ? rc_automaton_follow(a, states[state].fail, a->labels[child]) : 0;
			states[child].fail = fail;
			states[child].link = states[fail].out ? fail : states[fail].link;
		}
		rc_pause();
	}
}

/* The entry of a row for a state: the place of its row, or the trap. */
static inline rc_u32 rc_automaton_entry(const struct rc_automaton *a, rc_u32 state)
{
	if (state >= a->nr_dense || a->states[state].out || a->states[state].link)
		return a->trap;
	return state * a->nr_classes;
}

static inline void rc_automaton_fill_rows(struct rc_automaton *a)
{
	rc_u32 state, child, i, *row = a->rows;

	a->trap = a->nr_dense * a->nr_classes;
	for (state = 0; state < a->nr_dense; state++, row += a->nr_classes) {
		for (i = 0; i < a->nr_classes; i++)
			row[i] = state ? a->rows[a->states[state].fail * a->nr_classes + i] : 0;
		for (child = a->states[state].child; child < a->states[state + 1].child; child++)
			row[a->labels[child]] = rc_automaton_entry(a, child);
		rc_pause();
	}
	for (i = 0; i < a->nr_classes; i++)
		row[i] = a->trap;
}

static inline void rc_automaton_fill_starts(struct rc_automaton *a)
{
	rc_u32 i, nr = 0;

	for (i = 0; i < 256; i++) {
		a->starts[i] = a->rows[a->classes[i]] != 0;
		nr += a->starts[i];
	}
	a->skips = nr <= RC_STARTS_MAX;
}

static inline void rc_automaton_fill_cases(struct rc_automaton *a)
{
	rc_u64 *words = a->cases;
	rc_u32 place, i;

	for (place = 0; place < a->nr; place++, words += a->case_words) {
		const struct rc_pattern *pattern = &a->patterns[a->order[place] & ~RC_SAME];

		for (i = 0; i < a->case_words; i++)
			words[i] = 0;
		for (i = 0; i < pattern->len && !pattern->nocase; i++)
			words[i / 64] |= rc_case(pattern->bytes[pattern->len - 1 - i]) << i % 64;
		rc_pause();
	}
}

/* The last step: makes the automaton in @block. */
static inline void rc_automaton_build(struct rc_automaton *a, void *block)
{
	if (!a->nr)
		return;
	a->states = block;
	a->cases = (rc_u64 *)(a->states + a->nr_states + 1);
	a->rows = (rc_u32 *)(a->cases + (rc_u64)a->nr * a->case_words);
	a->labels = (rc_u8 *)(a->rows + (a->nr_dense + 1) * a->nr_classes);
	rc_automaton_grow(a);
	rc_automaton_link(a);
	rc_automaton_fill_rows(a);
	rc_automaton_fill_starts(a);
	if (a->case_words)
		rc_automaton_fill_cases(a);
}

/* ---- patterns that end in one state ---- */

/* Whether a pattern decides as soon as it is found, regardless of its position and case. */
static inline int rc_pattern_decides(const struct rc_automaton *a, const struct rc_pattern *pattern)
{
	return !pattern->offset && !pattern->depth && (!a->case_words || pattern->nocase);
}

/* How many patterns rc_search_choose() may compare in @state; it stops counting above RC_ENDS_MAX. */
static inline rc_u32 rc_automaton_ends(const struct rc_automaton *a, rc_u32 state)
{
	rc_u32 place, index, nr = 0;

	for (; state; state = a->states[state].link) {
		place = a->states[state].out;
		if (!place)
			continue;
		do {
			index = a->order[place++ - 1];
			if (++nr > RC_ENDS_MAX || rc_pattern_decides(a, &a->patterns[index & ~RC_SAME]))
				return nr;
		} while (index & RC_SAME);
	}
	return nr;
}

/*
 * A pattern that ends where more than RC_ENDS_MAX may have to be compared: its index plus 1, or 0. The automaton is
 * built.
 */
static inline rc_u32 rc_automaton_crowded(const struct rc_automaton *a)
{
	rc_u32 state;

	for (state = 0; a->nr && state < a->nr_states; state++) {
		if (a->states[state].out && rc_automaton_ends(a, state) > RC_ENDS_MAX)
			return (a->order[a->states[state].out - 1] & ~RC_SAME) + 1;
		rc_pause();
	}
	return 0;
}

/* Records the case of the first @len bytes of the piece that begins at @s->pos, as far as any pattern can reach. */
static inline void rc_search_see(struct rc_search *s, const rc_u8 *data, rc_u32 len)
{
	rc_u32 i = s->seen > s->pos ? s->seen - s->pos : 0, n, end;
	rc_u64 bits;

	if (len - i > 64 * RC_CASE_WORDS)
		i = len - 64 * RC_CASE_WORDS;
	while (i < len) {
		n = len - i < 32 ? len - i : 32;
		for (bits = 0, end = i + n; i < end; i++)
			bits = bits << 1 | rc_case(data[i]);
		for (end = RC_CASE_WORDS - 1; end > 0; end--)
			s->cases[end] = s->cases[end] << n | s->cases[end - 1] >> (64 - n);
		s->cases[0] = s->cases[0] << n | bits;
	}
	s->seen = s->pos + len;
}

/* Whether the last @len bytes that were seen have the case of the pattern at @place. */
static inline int rc_search_same_case(const struct rc_automaton *a, const struct rc_search *s, rc_u32 place, rc_u32 len)
{
	const rc_u64 *words = a->cases + (rc_u64)place * a->case_words;
	rc_u32 i;

	for (i = 0; len > 64; i++, len -= 64)
		if (s->cases[i] != words[i])
			return 0;
	return !((s->cases[i] ^ words[i]) << (64 - len));
}

/*
 * The longest pattern that ends in @state, matches the case of what was read, and lies at an allowed position. It ends
 * behind @len bytes of the piece @data. Returns its index plus 1, or 0.
 */
static inline rc_u32 rc_search_choose(const struct rc_automaton *a, struct rc_search *s, rc_u32 state,
				      const rc_u8 *data, rc_u32 len)
{
	rc_u32 place, index, end = s->pos + len;

	for (; state; state = a->states[state].link) {
		place = a->states[state].out;
		if (!place)
			continue;
		do {
			const struct rc_pattern *pattern;

			index = a->order[place - 1];
			pattern = &a->patterns[index & ~RC_SAME];
			place++;
			if (end - pattern->len < pattern->offset ||
			    (pattern->depth && end - pattern->offset > pattern->depth))
				continue;
			if (!a->case_words || pattern->nocase)
				return (index & ~RC_SAME) + 1;
			rc_search_see(s, data, len);
			if (rc_search_same_case(a, s, place - 2, pattern->len))
				return (index & ~RC_SAME) + 1;
		} while (index & RC_SAME);
	}
	return 0;
}

/* ---- in the stream ---- */

/* The place of the row that a byte leads to, or of the trap. */
static rc_inline rc_u32 rc_read_1(const struct rc_automaton *a, rc_u32 row, const rc_u8 *data)
{
	return a->rows[row + a->classes[*data]];
}

static rc_inline rc_u32 rc_read_4(const struct rc_automaton *a, rc_u32 row, const rc_u8 *data)
{
	row = rc_read_1(a, rc_read_1(a, row, data), data + 1);
	return rc_read_1(a, rc_read_1(a, row, data + 2), data + 3);
}

static rc_inline rc_u32 rc_read_16(const struct rc_automaton *a, rc_u32 row, const rc_u8 *data)
{
	row = rc_read_4(a, rc_read_4(a, row, data), data + 4);
	return rc_read_4(a, rc_read_4(a, row, data + 8), data + 12);
}

/* How many bytes from @data on are sure to leave the automaton at its root. */
static rc_inline rc_u32 rc_read_nothing(const struct rc_automaton *a, const rc_u8 *data, rc_u32 len)
{
	const rc_u8 *starts = a->starts;
	rc_u32 i;

	for (i = 0; len - i >= RC_SKIP; i += RC_SKIP, data += RC_SKIP)
		if (starts[data[0]] | starts[data[1]] | starts[data[2]] | starts[data[3]] |
		    starts[data[4]] | starts[data[5]] | starts[data[6]] | starts[data[7]])
			break;
	return i;
}

static inline rc_u32 rc_search_place(const struct rc_automaton *a, rc_u32 state)
{
	return state < a->nr_dense ? state * a->nr_classes : RC_DEEP | state;
}

/* Reads one byte. If a pattern may end in the state that it leads to, returns that state, else 0. */
static inline rc_u32 rc_search_step(const struct rc_automaton *a, struct rc_search *s, rc_u8 label)
{
	rc_u32 state, child;

	while (s->at & RC_DEEP) {
		state = s->at & ~RC_DEEP;
		child = rc_automaton_child(a, state, label);
		s->at = rc_search_place(a, child ? child : a->states[state].fail);
		if (child)
			return child;
	}
	if (a->rows[s->at + label] != a->trap) {
		s->at = a->rows[s->at + label];
		return 0;
	}
	state = rc_automaton_follow(a, s->at / a->nr_classes, label);
	s->at = rc_search_place(a, state);
	return state;
}

/* Reads the bytes from @from to @to of the piece @data one by one, until there is a hit. */
static inline void rc_search_slowly(const struct rc_automaton *a, struct rc_search *s, const rc_u8 *data, rc_u32 from,
				    rc_u32 to)
{
	rc_u32 state;

	for (; from < to && !s->hit; from++) {
		state = rc_search_step(a, s, a->classes[data[from]]);
		if (state)
			s->hit = rc_search_choose(a, s, state, data, from + 1);
	}
}

/*
 * Reads @stride bytes at a time, 16 or 4, until they end in the trap or fewer are left. Returns how many it has read.
 */
static rc_inline rc_u32 rc_search_run(const struct rc_automaton *a, struct rc_search *s, const rc_u8 *data, rc_u32 len,
				      rc_u32 stride)
{
	const rc_u8 *from = data;
	rc_u32 row = s->at, next;

	while (len >= stride) {
		if (!row && a->skips) {
			next = rc_read_nothing(a, data, len);
			data += next;
			len -= next;
			if (len < stride)
				break;
		}
		next = stride == 16 ? rc_read_16(a, row, data) : rc_read_4(a, row, data);
		if (next == a->trap)
			break;
		row = next;
		data += stride;
		len -= stride;
	}
	s->at = row;
	return (rc_u32)(data - from);
}

static inline void rc_search_read(const struct rc_automaton *a, struct rc_search *s, const rc_u8 *data, rc_u32 len)
{
	rc_u32 i = 0, to;

	while (i < len && !s->hit) {
		if (!(s->at & RC_DEEP)) {
			i += rc_search_run(a, s, data + i, len - i, 16);
			i += rc_search_run(a, s, data + i, len - i, 4);
		}
		to = len - i < 16 ? len : i + 16;
		rc_search_slowly(a, s, data, i, to);
		i = to;
	}
}

static inline void rc_search_start(struct rc_search *s)
{
	*s = (struct rc_search){ .pos = 0 };
}

/*
 * Whether the search is over, with or without a hit. @more: another piece may follow. A stream is shorter than 4 GiB.
 */
static inline int rc_search_piece(const struct rc_automaton *a, struct rc_search *s, const rc_u8 *data, rc_u32 len,
				  int more)
{
	rc_u32 skip = s->pos < a->first ? a->first - s->pos : 0;

	if (skip > len)
		skip = len;
	s->pos += skip;
	data += skip;
	len -= skip;
	if (len > a->limit - s->pos)
		len = a->limit - s->pos;
	rc_search_read(a, s, data, len);
	/* A pattern may continue in the next piece. */
	if (more && s->at && a->case_words)
		rc_search_see(s, data, len);
	s->pos += len;
	return s->hit || s->pos >= a->limit;
}

#endif /* RC_PATTERN_H */
