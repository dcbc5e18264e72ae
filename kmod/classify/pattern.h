/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Patterns: which of many literals is the first in a stream of bytes (A. V. Aho, M. J. Corasick, "Efficient string
 * matching", CACM 18(6), 1975). Plain C without kernel or libc dependencies.
 *
 * Patterns that care for case and those that don't are two machines, of which each byte passes those that are not
 * empty. A machine is a trie of its patterns, its states numbered level by level, so that
 *
 *	the children of state S are the states child[S] .. child[S + 1] - 1, in the order of their labels;
 *	the shallow states, where ordinary traffic stays, are the first ones: they have dense rows, the next state for
 *	each class of bytes, failures resolved. Bytes that no pattern of the machine has are one class;
 *	the states behind have only their children and a failure link. One byte can follow several of those, but a link
 *	leads at least one level up and a byte one level down: two steps a byte, whatever the bytes are.
 *
 * So a byte costs the same among 10 and among 65,536 patterns. Memory, of both machines together, for patterns of B
 * bytes in all: at most 17 * (B + 8) + 2 * RC_ROWS_MAX bytes. 1,000 patterns of 10 bytes take less than 3 MiB.
 *
 * Building takes the patterns in order of their bytes: a state is a range of them, and how many states there will be is
 * known before there is one. The block is allocated once.
 *
 *	rc_automaton_sort(a, patterns, nr, order)	order: nr words, the caller's, as long as the automaton lives
 *	rc_automaton_size(a)				bytes of the block
 *	rc_automaton_build(a, block)			the block is the caller's, any content, aligned to 8
 *
 *	rc_search_start(s); then rc_search_piece(a, s, data, len) for one piece of the stream after the other until it
 *	returns true: s->hit is the index of the pattern plus 1, or 0 when no more can come.
 *
 * The hit is the pattern that ends first; among those that end there the longest; among equals the one that cares for
 * case, then the one that comes first in the array. It does not depend on how the stream is cut into pieces.
 */
#ifndef RC_PATTERN_H
#define RC_PATTERN_H

#include "types.h"

#ifndef rc_pause
#define rc_pause() do { } while (0)	/* called often while something long is done */
#endif

#define RC_ROWS_MAX	(4u << 20)	/* bytes of a machine's dense rows */
#define RC_HIT		(1u << 31)	/* in a row: some pattern ends in that state */
#define RC_SAME		(1u << 31)	/* in order: the next one has the same bytes */
#define RC_UNLIMITED	0xffffffffu

/**
 * struct rc_pattern - a literal
 * @bytes: @len of them, the caller's, used while building only
 * @offset: least place in the stream where it may begin
 * @depth: bytes from @offset on in which it must lie, 0 = to the end
 * @len: 1 .. 255
 * @nocase: ASCII letters of either case
 */
struct rc_pattern {
	const rc_u8 *bytes;
	rc_u32 offset;
	rc_u32 depth;
	rc_u8 len;
	rc_u8 nocase;
};

/**
 * struct rc_state - a state of a machine
 * @child: its first child
 * @fail: the state of the longest proper suffix
 * @link: the nearest state by @fail with an @out, 0 = none
 * @out: 1 + the place in order of the first pattern that is all of this state, 0 = none
 */
struct rc_state {
	rc_u32 child;
	rc_u32 fail;
	rc_u32 link;
	rc_u32 out;
};

/**
 * struct rc_machine - patterns of one kind
 * @order: of its @nr patterns, sorted by their bytes; RC_SAME
 * @states: @nr_states, and one more that ends the last one's children
 * @labels: class of the byte that leads to each state
 * @rows: @nr_dense rows of @nr_classes, next state and RC_HIT
 * @classes: of each byte
 */
struct rc_machine {
	rc_u32 nr;
	rc_u32 nr_states;
	rc_u32 nr_dense;
	rc_u32 nr_classes;
	rc_u32 *order;
	struct rc_state *states;
	rc_u8 *labels;
	rc_u32 *rows;
	rc_u8 classes[256];
	rc_u8 fold;
};

/**
 * struct rc_automaton - all patterns
 * @first: least place where a pattern may begin
 * @limit: where the last one must have ended, RC_UNLIMITED = nowhere
 */
struct rc_automaton {
	struct rc_machine machines[2];
	const struct rc_pattern *patterns;
	rc_u32 first;
	rc_u32 limit;
};

/**
 * struct rc_search - where a search in a stream is
 * @pos: bytes of the stream that went by
 * @states: of the machines
 * @hit: 1 + the index of the pattern that was found
 */
struct rc_search {
	rc_u32 pos;
	rc_u32 states[2];
	rc_u32 hit;
};

static inline rc_u8 rc_fold(const struct rc_machine *m, rc_u8 byte)
{
	return m->fold && (rc_u8)(byte - 'A') < 26 ? (rc_u8)(byte | 0x20) : byte;
}

/* ---- in order ---- */

/* Bytes that two patterns have in common from the beginning on, as @m sees them. */
static inline rc_u32 rc_pattern_common(const struct rc_machine *m, const struct rc_pattern *a,
				       const struct rc_pattern *b)
{
	rc_u32 len = a->len < b->len ? a->len : b->len, i;

	for (i = 0; i < len; i++)
		if (rc_fold(m, a->bytes[i]) != rc_fold(m, b->bytes[i]))
			break;
	return i;
}

/* Whether pattern @x comes before @y. */
static inline int rc_pattern_before(const struct rc_machine *m, const struct rc_pattern *patterns, rc_u32 x, rc_u32 y)
{
	const struct rc_pattern *a = &patterns[x], *b = &patterns[y];
	rc_u32 common = rc_pattern_common(m, a, b);

	if (common < a->len && common < b->len)
		return rc_fold(m, a->bytes[common]) < rc_fold(m, b->bytes[common]);
	return a->len != b->len ? a->len < b->len : x < y;
}

/* Lets the element at @i of a heap of @nr sink to where it belongs. */
static inline void rc_order_sink(struct rc_machine *m, const struct rc_pattern *patterns, rc_u32 i, rc_u32 nr)
{
	rc_u32 *order = m->order, moved = order[i], below;

	while ((below = 2 * i + 1) < nr) {
		if (below + 1 < nr && rc_pattern_before(m, patterns, order[below], order[below + 1]))
			below++;
		if (!rc_pattern_before(m, patterns, moved, order[below]))
			break;
		order[i] = order[below];
		i = below;
	}
	order[i] = moved;
}

static inline void rc_machine_sort(struct rc_machine *m, const struct rc_pattern *patterns)
{
	rc_u32 i, last;

	for (i = m->nr / 2; i-- > 0;) {
		rc_order_sink(m, patterns, i, m->nr);
		rc_pause();
	}
	for (i = m->nr; i-- > 1;) {
		last = m->order[i];
		m->order[i] = m->order[0];
		m->order[0] = last;
		rc_order_sink(m, patterns, 0, i);
		rc_pause();
	}
}

/* Numbers the bytes that occur, in their order; 0 is all others. */
static inline void rc_machine_classify(struct rc_machine *m, const struct rc_pattern *patterns)
{
	rc_u32 i, j, nr = 0, used = 0;

	for (i = 0; i < 256; i++)
		m->classes[i] = 0;
	for (i = 0; i < m->nr; i++)
		for (j = 0; j < patterns[m->order[i]].len; j++)
			m->classes[rc_fold(m, patterns[m->order[i]].bytes[j])] = 1;
	for (i = 0; i < 256; i++)
		used += m->classes[i];
	/* Where all occur there are no others. */
	nr = used == 256 ? 0 : 1;
	for (i = 0; i < 256; i++)
		m->classes[i] = m->classes[i] ? (rc_u8)nr++ : 0;
	for (i = 0; i < 256; i++)
		m->classes[i] = m->classes[rc_fold(m, (rc_u8)i)];
	m->nr_classes = nr;
}

/* How many states there will be, from patterns in order; marks those that are the same as the next. */
static inline void rc_machine_count(struct rc_machine *m, const struct rc_pattern *patterns)
{
	rc_u32 i, common = 0;

	m->nr_states = 1;
	for (i = 0; i < m->nr; i++) {
		const struct rc_pattern *pattern = &patterns[m->order[i]];

		m->nr_states += pattern->len - common;
		if (i + 1 == m->nr)
			break;
		common = rc_pattern_common(m, pattern, &patterns[m->order[i + 1]]);
		if (common == pattern->len && common == patterns[m->order[i + 1]].len)
			m->order[i] |= RC_SAME;
	}
	m->nr_dense = RC_ROWS_MAX / 4 / m->nr_classes;
	if (m->nr_dense > m->nr_states)
		m->nr_dense = m->nr_states;
}

/* Between which places of the stream anything can be found. */
static inline void rc_automaton_bound(struct rc_automaton *a, rc_u32 nr)
{
	rc_u64 end;
	rc_u32 i;

	a->first = nr ? RC_UNLIMITED : 0;
	a->limit = 0;
	for (i = 0; i < nr; i++) {
		const struct rc_pattern *pattern = &a->patterns[i];

		end = pattern->depth ? (rc_u64)pattern->offset + pattern->depth : RC_UNLIMITED;
		if (pattern->offset < a->first)
			a->first = pattern->offset;
		if (end > a->limit)
			a->limit = end < RC_UNLIMITED ? (rc_u32)end : RC_UNLIMITED;
	}
}

/* The first step of building: puts the patterns in order. @patterns and @order stay in use. */
static inline void rc_automaton_sort(struct rc_automaton *a, const struct rc_pattern *patterns, rc_u32 nr,
				     rc_u32 *order)
{
	rc_u32 fold, i;

	a->patterns = patterns;
	for (fold = 0; fold < 2; fold++) {
		struct rc_machine *m = &a->machines[fold];

		m->fold = (rc_u8)fold;
		m->order = order;
		m->nr = 0;
		for (i = 0; i < nr; i++)
			if (!patterns[i].nocase == !fold)
				m->order[m->nr++] = i;
		order += m->nr;
		rc_machine_sort(m, patterns);
		rc_machine_classify(m, patterns);
		rc_machine_count(m, patterns);
	}
	rc_automaton_bound(a, nr);
}

/* ---- in one block ---- */

static inline rc_u64 rc_machine_size(const struct rc_machine *m)
{
	rc_u64 size = (rc_u64)(m->nr_states + 1) * sizeof(struct rc_state) + (rc_u64)m->nr_dense * m->nr_classes * 4 +
		      m->nr_states;

	return m->nr ? (size + 7) & ~(rc_u64)7 : 0;
}

/* Bytes that rc_automaton_build needs. */
static inline rc_u64 rc_automaton_size(const struct rc_automaton *a)
{
	return rc_machine_size(&a->machines[0]) + rc_machine_size(&a->machines[1]);
}

/* The child of @state by a byte of class @label, 0 = none. At most 8 comparisons. */
static inline rc_u32 rc_machine_child(const struct rc_machine *m, rc_u32 state, rc_u8 label)
{
	rc_u32 low = m->states[state].child, high = m->states[state + 1].child, middle, end = high;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (m->labels[middle] < label)
			low = middle + 1;
		else
			high = middle;
	}
	return low < end && m->labels[low] == label ? low : 0;
}

/*
 * Makes the trie. Until the second pass, @link and @fail of a state are the range of patterns that go through it.
 */
static inline void rc_machine_grow(struct rc_machine *m, const struct rc_pattern *patterns)
{
	rc_u32 state, depth = 0, level_end = 1, next = 1, low, high;

	m->states[0].link = 0;
	m->states[0].fail = m->nr;
	for (state = 0; state < m->nr_states; state++) {
		struct rc_state *s = &m->states[state];

		if (state == level_end) {
			depth++;
			level_end = next;
		}
		low = s->link;
		s->child = next;
		s->out = 0;
		for (; low < s->fail && patterns[m->order[low] & ~RC_SAME].len == depth; low++)
			s->out = s->out ? s->out : low + 1;
		for (; low < s->fail; low = high) {
			rc_u8 label = m->classes[patterns[m->order[low] & ~RC_SAME].bytes[depth]];

			for (high = low + 1; high < s->fail; high++)
				if (m->classes[patterns[m->order[high] & ~RC_SAME].bytes[depth]] != label)
					break;
			m->labels[next] = label;
			m->states[next].link = low;
			m->states[next].fail = high;
			next++;
		}
		rc_pause();
	}
	m->states[m->nr_states].child = next;
}

static inline rc_u32 rc_machine_hit(const struct rc_machine *m, rc_u32 state)
{
	return m->states[state].out | m->states[state].link ? RC_HIT : 0;
}

/* Where @label leads from @state by children and failure links alone. */
static inline rc_u32 rc_machine_follow(const struct rc_machine *m, rc_u32 state, rc_u8 label)
{
	rc_u32 child;

	while (!(child = rc_machine_child(m, state, label)) && state)
		state = m->states[state].fail;
	return child;
}

/* Level by level: what a state refers to is shallower and done. */
static inline void rc_machine_link(struct rc_machine *m)
{
	struct rc_state *states = m->states;
	rc_u32 state, child, fail;

	states[0].fail = 0;
	states[0].link = 0;
	for (state = 0; state < m->nr_states; state++) {
		for (child = states[state].child; child < states[state + 1].child; child++) {
			fail = state ? rc_machine_follow(m, states[state].fail, m->labels[child]) : 0;
			states[child].fail = fail;
			states[child].link = states[fail].out ? fail : states[fail].link;
		}
		rc_pause();
	}
}

static inline void rc_machine_fill_rows(struct rc_machine *m)
{
	rc_u32 state, child, i, *row = m->rows;

	for (state = 0; state < m->nr_dense; state++, row += m->nr_classes) {
		for (i = 0; i < m->nr_classes; i++)
			row[i] = state ? m->rows[m->states[state].fail * m->nr_classes + i] : 0;
		for (child = m->states[state].child; child < m->states[state + 1].child; child++)
			row[m->labels[child]] = child | rc_machine_hit(m, child);
		rc_pause();
	}
}

/* The last step: makes the machines in @block. */
static inline void rc_automaton_build(struct rc_automaton *a, void *block)
{
	rc_u8 *at = block;
	rc_u32 i;

	for (i = 0; i < 2; i++) {
		struct rc_machine *m = &a->machines[i];

		if (!m->nr)
			continue;
		m->states = (struct rc_state *)at;
		m->rows = (rc_u32 *)(m->states + m->nr_states + 1);
		m->labels = (rc_u8 *)(m->rows + m->nr_dense * m->nr_classes);
		at += rc_machine_size(m);
		m->labels[0] = 0;
		rc_machine_grow(m, a->patterns);
		rc_machine_link(m);
		rc_machine_fill_rows(m);
	}
}

/* ---- in the stream ---- */

static rc_inline rc_u32 rc_machine_step(const struct rc_machine *m, rc_u32 state, rc_u8 label)
{
	rc_u32 child;

	while (state >= m->nr_dense) {
		child = rc_machine_child(m, state, label);
		if (child)
			return child | rc_machine_hit(m, child);
		state = m->states[state].fail;
	}
	return m->rows[state * m->nr_classes + label];
}

/* The longest pattern that ends in @state and lies where it may, when @end bytes went by: its index plus 1, or 0. */
static inline rc_u32 rc_machine_choose(const struct rc_automaton *a, const struct rc_machine *m, rc_u32 state,
				       rc_u32 end)
{
	rc_u32 place, index;

	for (; state; state = m->states[state].link) {
		place = m->states[state].out;
		if (!place)
			continue;
		do {
			const struct rc_pattern *pattern;

			index = m->order[place - 1];
			pattern = &a->patterns[index & ~RC_SAME];
			if (end - pattern->len >= pattern->offset &&
			    (!pattern->depth || end - pattern->offset <= pattern->depth))
				return (index & ~RC_SAME) + 1;
			place++;
		} while (index & RC_SAME);
	}
	return 0;
}

/* Reads @len bytes; returns the pattern that it found, as in struct rc_search, and how many bytes it took to @used. */
static inline rc_u32 rc_machine_scan(const struct rc_automaton *a, const struct rc_machine *m, rc_u32 *at, rc_u32 pos,
				     const rc_u8 *data, rc_u32 len, rc_u32 *used)
{
	rc_u32 state = *at, hit = 0, i;

	for (i = 0; i < len && !hit; i++) {
		state = rc_machine_step(m, state, m->classes[data[i]]);
		if (state & RC_HIT) {
			state &= ~RC_HIT;
			hit = rc_machine_choose(a, m, state, pos + i + 1);
		}
	}
	*at = state;
	*used = i;
	return hit;
}

static inline void rc_search_start(struct rc_search *s)
{
	s->pos = 0;
	s->states[0] = 0;
	s->states[1] = 0;
	s->hit = 0;
}

/* Of two patterns that end at one place, the one that counts. */
static inline rc_u32 rc_search_prefer(const struct rc_automaton *a, rc_u32 exact, rc_u32 folded)
{
	return a->patterns[folded - 1].len > a->patterns[exact - 1].len ? folded : exact;
}

/* Whether the search is over, with or without a hit. A stream is less than 4 GiB. */
static inline int rc_search_piece(const struct rc_automaton *a, struct rc_search *s, const rc_u8 *data, rc_u32 len)
{
	rc_u32 skip = s->pos < a->first ? a->first - s->pos : 0, hits[2] = { 0, 0 }, used[2], i;

	if (skip > len)
		skip = len;
	s->pos += skip;
	data += skip;
	len -= skip;
	if (len > a->limit - s->pos)
		len = a->limit - s->pos;
	used[0] = len;
	for (i = 0; i < 2; i++) {
		/* The second one has to find something as early as the first one did. */
		if (a->machines[i].nr)
			hits[i] = rc_machine_scan(a, &a->machines[i], &s->states[i], s->pos, data, used[0], &used[i]);
		else
			used[i] = used[0];
	}
	if (hits[1] && hits[0] && used[0] == used[1])
		s->hit = rc_search_prefer(a, hits[0], hits[1]);
	else
		s->hit = hits[1] ? hits[1] : hits[0];
	s->pos += len;
	return s->hit || s->pos >= a->limit;
}

#endif /* RC_PATTERN_H */
