// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
)

func TestInterruptedDumpsAreRepeated(t *testing.T) {
	tries, interrupted := 0, 2
	list := func() ([]string, error) {
		if tries++; tries <= interrupted {
			return []string{"a"}, netlink.ErrDumpInterrupted
		}
		return []string{"a", "b"}, nil
	}
	found, err := Dump(list)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, found)

	tries, interrupted = 0, 1000
	_, err = Dump(list)
	require.ErrorIs(t, err, netlink.ErrDumpInterrupted)
	assert.Less(t, tries, 10)
}
