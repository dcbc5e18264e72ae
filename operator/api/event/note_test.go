// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestNotesAreOfALengthThatTheServerTakes(t *testing.T) {
	assert.Equal(t, "short", Note("short"))
	long := Note("a" + strings.Repeat("ä", MaxNote))
	assert.Len(t, long, MaxNote-1, "and no half of a letter")
	assert.True(t, utf8.ValidString(long))
}
