// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"math"
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// Limits of this engine's payload patterns.
const (
	maxPatternRows = 1 << 20 // words of rows; on 6.1 one element of a map has at most 4 MiB
	maxChoices     = 1 << 18
	placeBytes     = 4 // of a word of rows
)

// automaton holds the tables by which programs search payload; see bpf/pattern.h.
type automaton struct {
	rows    []uint32
	choices []choice
	start   [2]uint32
	classes [2][256]uint16
	// first is the lowest offset at which a pattern may begin. limit is the end of the search.
	first, limit uint32
}

// newAutomaton makes the tables of valid patterns. It returns ErrUnsupported if they are larger than programs can
// search.
func newAutomaton(patterns []capture.Pattern) (*automaton, error) {
	a := &automaton{rows: []uint32{0}}
	if len(patterns) == 0 {
		return a, nil
	}
	if len(patterns) > maxPatterns {
		return nil, unsupported(fmt.Sprintf("%d payload patterns, at most %d", len(patterns), maxPatterns))
	}
	a.first = math.MaxUint32
	for _, pattern := range patterns {
		c := choiceOf(pattern, 0)
		a.first, a.limit = min(a.first, pattern.Offset), max(a.limit, c.Most)
	}
	for kind := range a.start {
		if err := a.addMachine(kind, patterns); err != nil {
			return nil, err
		}
	}
	a.pad()
	return a, nil
}

func choiceOf(pattern capture.Pattern, index int) choice {
	sum := func(a, b uint32) uint32 { return uint32(min(uint64(a)+uint64(b), math.MaxUint32)) }
	c := choice{Pattern: uint32(index) + 1, Len: uint32(len(pattern.Bytes)), Most: math.MaxUint32}
	c.Least = sum(pattern.Offset, c.Len)
	if pattern.Depth != 0 {
		c.Most = sum(pattern.Offset, pattern.Depth)
	}
	return c
}

// always reports whether the pattern matches at every offset. If so, no later pattern of the same state can match.
func (c choice) always() bool { return c.Least == c.Len && c.Most == math.MaxUint32 }

// covers reports whether the pattern is found wherever other is. Both are of the same state and of the same length.
func (c choice) covers(other choice) bool { return c.Least <= other.Least && c.Most >= other.Most }

// machine is one of the automaton's machines while it is being made.
type machine struct {
	*automaton
	kind   int // 1 ignores case
	stride uint32
	first  uint32
	fails  []uint32   // by state
	ends   [][]choice // the patterns that end in a state, by state
}

func foldCase(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b | 0x20
	}
	return b
}

func (m *machine) fold(b byte) byte {
	if m.kind == 1 {
		return foldCase(b)
	}
	return b
}

func (a *automaton) addMachine(kind int, patterns []capture.Pattern) error {
	m := &machine{automaton: a, kind: kind}
	classes := m.classify(patterns)
	if classes == 0 {
		return nil
	}
	m.stride, m.first = classes+1, uint32(len(a.rows))+1
	m.addState()
	for i, pattern := range patterns {
		if pattern.IgnoreCase != (kind == 1) {
			continue
		}
		if err := m.insert(i, pattern); err != nil {
			return err
		}
	}
	if err := m.link(); err != nil {
		return err
	}
	m.finish()
	return nil
}

// classify numbers the bytes that occur in the machine's patterns. All others are 0. It returns the number of
// classes, 0 without patterns.
func (m *machine) classify(patterns []capture.Pattern) uint32 {
	var occurs [256]bool
	used := 0
	for _, pattern := range patterns {
		for _, b := range pattern.Bytes {
			if pattern.IgnoreCase == (m.kind == 1) && !occurs[m.fold(b)] {
				occurs[m.fold(b)] = true
				used++
			}
		}
	}
	if used == 0 {
		return 0
	}
	number := 0
	if used < 256 { // if all bytes occur, there are no others
		number = 1
	}
	for b := range 256 {
		if occurs[b] {
			m.classes[m.kind][b] = uint16(number)
			number++
		}
	}
	for b := range 256 {
		m.classes[m.kind][b] = m.classes[m.kind][m.fold(byte(b))]
	}
	return uint32(number)
}

// addState adds a state and returns its row. The row follows the word for its choices.
func (m *machine) addState() uint32 {
	row := uint32(len(m.rows)) + 1
	m.rows = append(m.rows, make([]uint32, m.stride)...)
	m.fails, m.ends = append(m.fails, m.first), append(m.ends, nil)
	return row
}

func (m *machine) number(state uint32) uint32 { return (state - m.first) / m.stride }

func (m *machine) insert(index int, pattern capture.Pattern) error {
	state := m.first
	for _, b := range pattern.Bytes {
		at := state + uint32(m.classes[m.kind][b])
		if m.rows[at] == 0 {
			if len(m.rows)+int(m.stride) > maxPatternRows {
				return unsupported(fmt.Sprintf("payload patterns make more than %d entries of states and bytes, and the kernel allows no larger "+
					"table: use fewer or shorter patterns, or fewer different bytes", maxPatternRows))
			}
			m.rows[at] = m.addState()
		}
		state = m.rows[at]
	}
	n, c := m.number(state), choiceOf(pattern, index)
	// Leave out a pattern that never decides. capture.PatternTexts does not count it either.
	if !slices.ContainsFunc(m.ends[n], func(before choice) bool { return before.covers(c) }) {
		m.ends[n] = append(m.ends[n], c)
	}
	return nil
}

// link resolves failures and gives each state its choices. It goes level by level, so the state that another fails to
// is complete.
func (m *machine) link() error {
	for queue := []uint32{m.first}; len(queue) > 0; queue = queue[1:] {
		state := queue[0]
		fail := m.fails[m.number(state)]
		for class := range m.stride - 1 {
			next, instead := &m.rows[state+class], m.rows[fail+class]
			if state == m.first {
				instead = m.first
			}
			if *next == 0 {
				*next = instead
				continue
			}
			m.fails[m.number(*next)] = instead
			queue = append(queue, *next)
		}
		if err := m.choose(state, fail); err != nil {
			return err
		}
	}
	return nil
}

// choose lists the patterns that end in a state. First come its own, then the shorter ones of the state that it fails
// to.
func (m *machine) choose(state, fail uint32) error {
	all := slices.Clone(m.ends[m.number(state)])
	if len(all) == 0 {
		if state != fail {
			m.rows[state-1] = m.rows[fail-1]
		}
		return nil
	}
	for next := m.rows[fail-1]; next != 0 && !all[len(all)-1].always(); next++ {
		all = append(all, m.choices[next-1])
		if m.choices[next-1].Last != 0 {
			break
		}
	}
	if len(all) > maxChoicesHere || len(m.choices)+len(all) > maxChoices {
		return unsupported(fmt.Sprintf("payload patterns with an offset or depth of which %d end at one place, at most %d, and %d in all",
			len(all), maxChoicesHere, maxChoices))
	}
	for i := range all {
		all[i].Last = uint32(flag(i == len(all)-1))
	}
	m.rows[state-1] = uint32(len(m.choices)) + 1
	m.choices = append(m.choices, all...)
	return nil
}

// finish turns places into bytes, as programs use them, and marks, in all rows, the states in which a pattern ends.
func (m *machine) finish() {
	for n := range uint32(len(m.fails)) {
		for class := range m.stride - 1 {
			next := &m.rows[m.first+n*m.stride+class]
			ends := m.rows[*next-1] != 0
			*next *= placeBytes
			if ends {
				*next |= patternHit
			}
		}
	}
	m.start[m.kind] = placeBytes * m.first
	for b := range m.classes[m.kind] {
		m.classes[m.kind][b] *= placeBytes
	}
}

// pad pads the rows to the number of words of their map, a power of two.
func (a *automaton) pad() {
	for size := 1; ; size *= 2 {
		if size >= len(a.rows) {
			a.rows = append(a.rows, make([]uint32, size-len(a.rows))...)
			return
		}
	}
}

func validatePattern(pattern capture.Pattern) error {
	switch n := len(pattern.Bytes); {
	case n < 1 || n > 255:
		return fmt.Errorf("%d bytes: must be 1 to 255", n)
	case pattern.Depth != 0 && int64(pattern.Depth) < int64(n):
		return fmt.Errorf("depth %d: the pattern of %d bytes is longer, it could never be found", pattern.Depth, n)
	}
	return nil
}
