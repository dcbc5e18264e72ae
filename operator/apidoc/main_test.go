// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWrap(t *testing.T) {
	words := strings.Repeat("ä ", 59) // 118 columns
	whole := strings.TrimSpace(words)
	long := strings.Repeat("x", 130)
	for _, test := range []struct{ first, indent, text, want string }{
		{"", "", "", ""},
		{"", "", "a few  words", "a few words"},
		{"", "", words + "bc", whole + " bc"},
		{"", "", words + "bcd", whole + "\nbcd"},
		{"", "  ", words + "bcd e", whole + "\n  bcd e"},
		{"- ", "  ", words + "b", "- " + whole + "\n  b"},
		{"", "", words + "b - c", whole + "\nb - c"},
		{"", "", words + "b 12. c", whole + "\nb 12. c"},
		{"", "", long + " y", long + "\ny"},
	} {
		assert.Equal(t, test.want, wrap(test.first, test.indent, test.text))
	}
}
