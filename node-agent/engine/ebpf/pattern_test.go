// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// plainSearch returns what must be found, by comparing every pattern at every offset: the pattern's number plus 1, or
// 0.
func plainSearch(patterns []capture.Pattern, payload []byte) int {
	for end := 1; end <= len(payload); end++ {
		best := 0
		for i, p := range patterns {
			start := end - len(p.Bytes)
			if start < int(p.Offset) || p.Depth != 0 && end > int(p.Offset)+int(p.Depth) {
				continue
			}
			if !same(payload[start:end], p) {
				continue
			}
			if best == 0 || better(p, patterns[best-1]) {
				best = i + 1
			}
		}
		if best != 0 {
			return best
		}
	}
	return 0
}

func same(found []byte, p capture.Pattern) bool {
	if !p.IgnoreCase {
		return bytes.Equal(found, p.Bytes)
	}
	// Compare by bytes, not by runes as bytes.EqualFold does.
	for i, b := range found {
		if foldCase(b) != foldCase(p.Bytes[i]) {
			return false
		}
	}
	return true
}

func better(p, than capture.Pattern) bool {
	if len(p.Bytes) != len(than.Bytes) {
		return len(p.Bytes) > len(than.Bytes)
	}
	return !p.IgnoreCase && than.IgnoreCase
}

// walk does the same as pattern_find of bpf/pattern.h.
func (a *automaton) walk(payload []byte) int {
	start, end := min(int(a.first), len(payload)), min(int(a.limit), len(payload))
	best, bestEnd := choice{}, 0
	for kind, state := range a.start {
		if state == 0 {
			continue
		}
		for at := start; at < end; at++ {
			state = a.rows[(state+uint32(a.classes[kind][payload[at]]))/placeBytes]
			hit := state & patternHit
			if state &^= patternHit; hit == 0 {
				continue
			}
			if c := a.chosen(a.rows[state/placeBytes-1], uint32(at+1)); c.Pattern != 0 {
				if best.Pattern == 0 || at+1 < bestEnd || c.Len > best.Len {
					best, bestEnd = c, at+1
				}
				end = at + 1
			}
		}
	}
	return int(best.Pattern)
}

func (a *automaton) chosen(number, end uint32) choice {
	for ; ; number++ {
		c := a.choices[number-1]
		if end >= c.Least && end <= c.Most {
			return c
		}
		if c.Last != 0 {
			return choice{}
		}
	}
}

// randomPatterns returns patterns of few letters, so that they overlap, contain each other and are found often. Some
// are parts of others.
func randomPatterns(r *rand.Rand, letters string) []capture.Pattern {
	text := randomText(r, letters, 300)
	patterns := make([]capture.Pattern, 1+r.IntN(20))
	longest := []int{3, 8, 255}[r.IntN(3)]
	for i := range patterns {
		p := &patterns[i]
		start := r.IntN(len(text) - longest)
		p.Bytes = text[start : start+1+r.IntN(longest)]
		p.IgnoreCase = r.IntN(3) == 0
		if r.IntN(3) == 0 {
			p.Offset = uint32(r.IntN(40))
		}
		if r.IntN(3) == 0 {
			p.Depth = uint32(len(p.Bytes) + r.IntN(40))
		}
	}
	return patterns
}

func randomText(r *rand.Rand, letters string, n int) []byte {
	text := make([]byte, n)
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
	}
	return text
}

var alphabets = []string{"ab", "abAB", "aAbBcCdDeEfFgG\x00\xff", allBytes()}

func allBytes() string {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return string(all)
}

func TestAutomatonFindsWhatAPlainSearchFinds(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		letters := alphabets[r.IntN(len(alphabets))]
		patterns := randomPatterns(r, letters)
		a, err := newAutomaton(patterns)
		require.NoError(t, err)
		for range 20 {
			payload := randomText(r, letters, r.IntN(120))
			if p := patterns[r.IntN(len(patterns))]; r.IntN(2) == 0 {
				payload = append(payload, p.Bytes...)
			}
			require.Equal(t, plainSearch(patterns, payload), a.walk(payload), "seed %d: %+v in %q", seed, patterns, payload)
		}
	}
}

func FuzzAutomaton(f *testing.F) {
	f.Add([]byte("\x02\x00ab\x03\x01AbC\x01\x02b\x05"), []byte("xxabcab"))
	f.Fuzz(func(t *testing.T, described, payload []byte) {
		patterns := describedPatterns(described)
		a, err := newAutomaton(patterns)
		if err != nil {
			require.ErrorIs(t, err, capture.ErrUnsupported)
			return
		}
		require.Equal(t, plainSearch(patterns, payload), a.walk(payload), "%+v", patterns)
	})
}

// describedPatterns reads of each pattern a length, flags (1 = ignore case, 2 = an offset follows, 4 = a depth
// follows), bytes.
func describedPatterns(in []byte) []capture.Pattern {
	var patterns []capture.Pattern
	take := func() (b byte) {
		if len(in) > 0 {
			b, in = in[0], in[1:]
		}
		return b
	}
	for len(in) > 2 && len(patterns) < 256 {
		n, flags := int(take()), take()
		n = max(1, min(n, len(in)))
		if len(in) < n {
			break
		}
		p := capture.Pattern{Bytes: in[:n], IgnoreCase: flags&1 != 0}
		in = in[n:]
		if flags&2 != 0 {
			p.Offset = uint32(take())
		}
		if flags&4 != 0 {
			p.Depth = uint32(n) + uint32(take())
		}
		patterns = append(patterns, p)
	}
	return patterns
}

func TestPatternsThatDoNotFitAreRefused(t *testing.T) {
	var many []capture.Pattern
	for i := range 5000 {
		many = append(many, capture.Pattern{Bytes: []byte(strings.Repeat(fmt.Sprintf("%05d", i), 40))})
	}
	_, err := newAutomaton(many)
	require.ErrorIs(t, err, capture.ErrUnsupported)
	require.ErrorContains(t, err, "entries")

	var alike []capture.Pattern
	for i := range maxChoicesHere + 1 {
		alike = append(alike, capture.Pattern{Bytes: []byte("same"), Depth: uint32(i + 4)})
	}
	_, err = newAutomaton(alike)
	require.ErrorIs(t, err, capture.ErrUnsupported)
	require.ErrorContains(t, err, "end at one place")
	_, err = newAutomaton(alike[1:])
	require.NoError(t, err)
}

func TestTooManyPatternsAtOnePlaceAreRefused(t *testing.T) {
	var patterns []capture.Pattern
	for i := range capture.MaxPatternEnds + 1 {
		patterns = append(patterns, capture.Pattern{Bytes: []byte("same"), Depth: uint32(4 + i)})
	}
	require.ErrorContains(t, validateRules(capture.RuleSet{Patterns: patterns}), "payload pattern 0: more than 64")
	require.NoError(t, validateRules(capture.RuleSet{Patterns: patterns[1:]}))
}

// They are not counted as patterns that end at one place, so they must not be compared there.
func TestPatternsThatNeverDecideAreNotCompared(t *testing.T) {
	var patterns []capture.Pattern
	for i := range 1000 {
		patterns = append(patterns, capture.Pattern{Bytes: []byte("Same"), Offset: uint32(3 + i%80), IgnoreCase: i%2 == 0})
	}
	require.NoError(t, validateRules(capture.RuleSet{Patterns: patterns}))
	a, err := newAutomaton(patterns)
	require.NoError(t, err)
	require.Len(t, a.choices, 2, "the first of each kind")
	for _, payload := range []string{"...Same", "....Same", "...same", "..Same"} {
		require.Equal(t, plainSearch(patterns, []byte(payload)), a.walk([]byte(payload)), payload)
	}
}

// The number of patterns that docs/engines.md promises.
func TestAThousandPatternsOfTenBytesFit(t *testing.T) {
	var patterns []capture.Pattern
	r := rand.New(rand.NewPCG(1, 1))
	for range 4096 {
		patterns = append(patterns, capture.Pattern{Bytes: randomText(r, "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", 10)})
	}
	_, err := newAutomaton(patterns)
	require.ErrorIs(t, err, capture.ErrUnsupported)
	a, err := newAutomaton(patterns[:1000])
	require.NoError(t, err)
	for i, p := range patterns[:1000] {
		require.Equal(t, i+1, a.walk(append([]byte("....."), p.Bytes...)))
	}
}
