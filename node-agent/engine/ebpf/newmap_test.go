// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The estimate of a set's maps has all that they take: keys and values of hash tables, and each CPU's counters.
func TestMapBytes(t *testing.T) {
	s, err := compile(learning())
	require.NoError(t, err)
	spec, err := loadSpec()
	require.NoError(t, err)
	(&ringMaps{}).size(spec, s, newWildTable(s), false)
	require.EqualValues(t, 8<<20, mapBytes(spec.Maps[learntMap]))
	require.EqualValues(t, (wildSpace+wildProbes)*40, mapBytes(spec.Maps[wildEntriesMap]))
	require.EqualValues(t, possibleCPUs()*16, mapBytes(spec.Maps["ring_rule_hits"]))
	spec.Maps[wildWholeMap].MaxEntries = 1000
	require.EqualValues(t, 1000*(hashedBytes+14*8+16), mapBytes(spec.Maps[wildWholeMap]))
}
