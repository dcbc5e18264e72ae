// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// spell returns the text with the letters of the bits of n in upper case.
func spell(text string, n int) []byte {
	spelt := []byte(text)
	for i := range spelt {
		spelt[i] ^= byte(n>>i&1) << 5
	}
	return spelt
}

func TestPatternsThatEndTogether(t *testing.T) {
	folding := Pattern{Bytes: []byte("-"), IgnoreCase: true}
	for name, make := range map[string]func(i int) Pattern{
		"case":   func(i int) Pattern { return Pattern{Bytes: spell("password", i)} },
		"offset": func(i int) Pattern { return Pattern{Bytes: []byte("pass"), Offset: uint32(MaxPatternEnds - i)} },
		"depth":  func(i int) Pattern { return Pattern{Bytes: []byte("pass"), Depth: uint32(4 + i)} },
		"ends":   func(i int) Pattern { return Pattern{Bytes: fmt.Appendf(nil, "%0*d", MaxPatternEnds+1-i, 0)} },
	} {
		t.Run(name, func(t *testing.T) {
			patterns := []Pattern{folding}
			for i := range MaxPatternEnds {
				patterns = append(patterns, make(i))
			}
			assert.Equal(t, -1, GroupPatterns(patterns).Crowded(), "as many as may be")
			patterns = append(patterns, make(MaxPatternEnds))
			assert.Equal(t, 1, GroupPatterns(patterns).Crowded(), "one more")
		})
	}
}

// Patterns that never decide, or that are found where one has decided, are not compared.
func TestPatternsThatAreNotCompared(t *testing.T) {
	same := Pattern{Bytes: []byte("Host:"), Offset: 3, Depth: 90}
	var patterns []Pattern
	for i := range 1000 {
		narrower := same
		narrower.Offset, narrower.Depth = same.Offset+uint32(i%80), 5
		patterns = append(patterns, same, narrower)
	}
	assert.Equal(t, -1, GroupPatterns(patterns).Crowded())
	assert.Equal(t, []int{0}, GroupPatterns(patterns).Indexes([]byte("Host:")))
	patterns = []Pattern{{Bytes: []byte("000"), IgnoreCase: true}}
	for i := range 1000 {
		patterns = append(patterns, Pattern{Bytes: []byte("00"), Offset: uint32(i)})
	}
	assert.Equal(t, -1, GroupPatterns(patterns[:2]).Crowded())
	assert.Equal(t, -1, GroupPatterns(patterns).Crowded(), "an offset that is greater: the first is found wherever another is")
	for i := range 1000 {
		patterns[1+i].Offset = uint32(1000 - i)
	}
	assert.Equal(t, 1, GroupPatterns(patterns).Crowded(), "two bytes alone")
	patterns[0].Bytes = []byte("0")
	assert.Equal(t, 1, GroupPatterns(patterns).Crowded(), "the shorter one is compared last")
}

// Rules of an IDS have the same few words very often, and some at several places.
func TestPatternsOfAnIDS(t *testing.T) {
	var patterns []Pattern
	for i := range 1000 {
		switch i % 5 {
		case 0:
			patterns = append(patterns, Pattern{Bytes: []byte("User-Agent:"), IgnoreCase: i%2 == 0})
		case 1:
			patterns = append(patterns, Pattern{Bytes: []byte{0, 0}, Offset: uint32(i % 30), Depth: uint32(2 + i%2)})
		default:
			patterns = append(patterns, Pattern{Bytes: fmt.Appendf(nil, "/cgi-bin/%d.php?", i), IgnoreCase: i%3 == 0})
		}
	}
	assert.Equal(t, -1, GroupPatterns(patterns).Crowded())
}
