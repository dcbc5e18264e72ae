// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// An engine that is closed twice takes nobody's memory: its former addresses may be another mapping's.
func TestASecondCloseUnmapsNothing(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	bytes := len(e.env.tables.unattended.pages)
	require.NoError(t, e.Close())
	others := make([][]byte, 64)
	for i := range others {
		var err error
		others[i], err = unix.Mmap(-1, 0, bytes, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
		require.NoError(t, err)
	}
	require.NoError(t, e.Close())
	for _, other := range others {
		require.NoError(t, unix.Munmap(other))
	}
}
