// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// In addition to what the engine and a ring need, a queue takes one descriptor, for its socket. An adopted queue
// takes no more.
func TestDescriptorsOfQueues(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(entries)
	}
	const queues, rest = 64, 40
	l := newLab(t)
	before := open()
	e := l.engine()
	l.apply(e, l.plan(queues))
	require.Less(t, open()-before, queues+rest)
	require.NoError(t, e.Close())
	require.LessOrEqual(t, open(), before+1)
	e = l.engine()
	l.apply(e, l.plan(queues))
	require.Less(t, open()-before, queues+rest)
	l.consume("mirror", 63)
}
