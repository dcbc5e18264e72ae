// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	values, err := read([]byte(`# The file.

# Of a.
# @schema {minimum: 1}
a: 5
b:
  # Chosen.
  # @schema {enum: [x, y]}
  c: x
  # @schema {additionalProperties: {type: string}}
  d: {k: v}
`))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"type": "object", "additionalProperties": false, "properties": map[string]any{
			"a": map[string]any{"type": "integer", "minimum": 1, "description": "Of a."},
			"b": map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{
				"c": map[string]any{"enum": []any{"x", "y"}, "description": "Chosen."},
				"d": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
			}},
		},
	}, object(values))
	assert.Equal(t, preamble+"| `a` | `5` | Of a. |\n| `b.c` | `x` | Chosen. |\n| `b.d` | `{k: v}` |  |\n", readme(values))

	_, err = read([]byte("# @schema {\na: 1\n"))
	assert.ErrorContains(t, err, "line 2, a: @schema: ")
	_, err = read([]byte("- a\n"))
	assert.ErrorContains(t, err, "is not a map")
}
