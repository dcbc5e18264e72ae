// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
)

// TestWhatIsChangedStaysWithItsCaller changes all that a ring changes before it loads its program.
func TestWhatIsChangedStaysWithItsCaller(t *testing.T) {
	before, err := loadSpec()
	require.NoError(t, err)
	untouched := before.Copy()
	changed, err := loadSpec()
	require.NoError(t, err)
	delete(changed.Programs, egressProgram)
	require.NoError(t, changed.Variables[configVariable].Set(programConfig{SnapLen: 1}))
	require.NoError(t, setConstants(changed, map[string]uint64{}))
	for _, program := range changed.Programs {
		program.Instructions[0] = asm.Return()
	}
	for _, m := range changed.Maps {
		m.MaxEntries, m.ValueSize, m.Contents = 1, 1, nil
		if m.InnerMap != nil {
			m.InnerMap.MaxEntries = 7
		}
	}
	after, err := loadSpec()
	require.NoError(t, err)
	for name, program := range untouched.Programs {
		require.True(t, slices.EqualFunc(program.Instructions, after.Programs[name].Instructions,
			func(a, b asm.Instruction) bool {
				return a.OpCode == b.OpCode && a.Constant == b.Constant && a.Reference() == b.Reference()
			}), name)
	}
	for name, m := range untouched.Maps {
		is := after.Maps[name]
		require.Equal(t, []uint32{m.MaxEntries, m.ValueSize, uint32(len(m.Contents))}, []uint32{is.MaxEntries, is.ValueSize, uint32(len(is.Contents))}, name)
		if m.InnerMap != nil {
			require.Equal(t, m.InnerMap.MaxEntries, is.InnerMap.MaxEntries, name)
		}
	}
	require.Len(t, after.Variables, len(untouched.Variables))
	require.Equal(t, untouched.Variables[configVariable].Value, after.Variables[configVariable].Value)
}
