// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// MaxPatternEnds is how many payload patterns an engine may have to compare at one byte of payload. It applies to
// both engines: RINGCAP_PATTERN_ENDS_MAX.
const MaxPatternEnds = 64

// PatternTexts groups payload patterns by their bytes. The bytes are in lower case if one of the patterns ignores
// case.
type PatternTexts struct {
	patterns []Pattern
	// Folds is set if one of them ignores case.
	Folds bool
	// lens holds the lengths that occur, the greatest first.
	lens []int
	// indexes holds the patterns of each text, in the order in which they are compared, without those that never
	// decide.
	indexes map[string][]int
}

// GroupPatterns groups payload patterns by their texts.
func GroupPatterns(patterns []Pattern) *PatternTexts {
	t := &PatternTexts{
		patterns: patterns, indexes: map[string][]int{},
		Folds: slices.ContainsFunc(patterns, func(p Pattern) bool { return p.IgnoreCase }),
	}
	for i := range patterns {
		text := t.Text(i)
		t.indexes[string(text)] = append(t.indexes[string(text)], i)
		if !slices.Contains(t.lens, len(text)) {
			t.lens = append(t.lens, len(text))
		}
	}
	slices.SortFunc(t.lens, func(x, y int) int { return cmp.Compare(y, x) })
	for text, indexes := range t.indexes {
		slices.SortStableFunc(indexes, func(x, y int) int { return ignored(patterns[x]) - ignored(patterns[y]) })
		t.indexes[text] = t.deciding(indexes)
	}
	return t
}

func ignored(p Pattern) int {
	if p.IgnoreCase {
		return 1
	}
	return 0
}

// Text returns the bytes of the pattern at the index, in the form of the group.
func (t *PatternTexts) Text(index int) []byte {
	if !t.Folds {
		return t.patterns[index].Bytes
	}
	folded := bytes.Clone(t.patterns[index].Bytes)
	for i, b := range folded {
		if b >= 'A' && b <= 'Z' {
			folded[i] = b | 0x20
		}
	}
	return folded
}

// Indexes returns the patterns of a text in the order in which they are compared, without those that never decide.
func (t *PatternTexts) Indexes(text []byte) []int { return t.indexes[string(text)] }

// deciding leaves out the patterns of one text that never decide, because an earlier one is found wherever they are.
func (t *PatternTexts) deciding(indexes []int) []int {
	var kept []int
	for _, i := range indexes {
		// If there are more, the set is refused.
		if !slices.ContainsFunc(kept[:min(len(kept), MaxPatternEnds)], func(k int) bool { return t.patterns[k].covers(t.patterns[i]) }) {
			kept = append(kept, i)
		}
	}
	return kept
}

// covers reports whether p is found wherever other is. Both have the same text.
func (p Pattern) covers(other Pattern) bool {
	if p.Offset > other.Offset || p.limit() < other.limit() {
		return false
	}
	return p.IgnoreCase || bytes.Equal(p.Bytes, other.Bytes) && !other.IgnoreCase
}

func (p Pattern) limit() uint64 {
	if p.Depth == 0 {
		return math.MaxUint64
	}
	return uint64(p.Offset) + uint64(p.Depth)
}

// decides reports whether the pattern is found wherever its text is.
func (t *PatternTexts) decides(p Pattern) bool {
	return p.Offset == 0 && p.Depth == 0 && (p.IgnoreCase || !t.Folds)
}

// ends counts the patterns that may have to be compared where a text ends, up to MaxPatternEnds+1.
func (t *PatternTexts) ends(text []byte) int {
	n := 0
	for _, length := range t.lens {
		if length > len(text) {
			continue
		}
		for _, i := range t.Indexes(text[len(text)-length:]) {
			if n++; n > MaxPatternEnds || t.decides(t.patterns[i]) {
				return n
			}
		}
	}
	return n
}

// Crowded returns the index of a pattern that ends where more than MaxPatternEnds may have to be compared, or -1.
func (t *PatternTexts) Crowded() int {
	for i := range t.patterns {
		if text := t.Text(i); t.Indexes(text)[0] == i && t.ends(text) > MaxPatternEnds {
			return i
		}
	}
	return -1
}
