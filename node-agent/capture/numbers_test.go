// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseNumbers(t *testing.T) {
	for list, want := range map[string][]int{
		"0": {0}, "0-2,5": {0, 1, 2, 5}, "1023": {1023}, "5,0-1,0": {5, 0, 1, 0},
	} {
		got, err := ParseNumbers(list, 1023)
		require.NoError(t, err, list)
		assert.Equal(t, want, got, list)
	}
	for _, bad := range []string{"", "a", "2-1", "-1", "0-", "0,", "0-1024"} {
		_, err := ParseNumbers(bad, 1023)
		assert.Error(t, err, bad)
	}
}
