// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A node may have as many queues as there are places, each with a timer.
func TestTimerForEachQueue(t *testing.T) {
	l := newLab(t)
	spec, err := loadSpec()
	require.NoError(t, err)
	tables, err := openTables(l.pinDir, spec)
	require.NoError(t, err)
	defer tables.close()
	for index := range uint32(maxNodeQueues) {
		require.NoError(t, tables.resetBell(index), "queue %d", index)
	}
}
