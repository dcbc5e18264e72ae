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

// dependsOnRead reports whether the address of the read at an instruction is computed from what was read before it, from
// elsewhere than the stack. The code up to there is taken as if it had no jumps.
func dependsOnRead(code asm.Instructions, at int) bool {
	from := map[asm.Register]bool{code[at].Src: true}
	for at--; at >= 0; at-- {
		ins := code[at]
		if !from[ins.Dst] {
			continue
		}
		class, op := ins.OpCode.Class(), ins.OpCode.ALUOp()
		if class == asm.LdXClass && ins.Src != asm.RFP {
			return true
		}
		if class == asm.LdXClass || class == asm.LdClass || class.IsALU() && op == asm.Mov {
			delete(from, ins.Dst)
		}
		if class.IsALU() && ins.OpCode.Source() == asm.RegSource {
			from[ins.Src] = true
		}
	}
	return false
}

// function returns the instructions of one of a program's functions.
func function(t *testing.T, code asm.Instructions, name string) asm.Instructions {
	t.Helper()
	start := slices.IndexFunc(code, func(ins asm.Instruction) bool { return ins.Symbol() == name })
	require.GreaterOrEqual(t, start, 0, name)
	code = code[start:]
	if end := slices.IndexFunc(code[1:], func(ins asm.Instruction) bool { return ins.Symbol() != "" }); end >= 0 {
		code = code[:end+1]
	}
	return code
}

// Processors that do not read in the program's order do if an address depends on what was read before. Without that, a
// flow's words could be those of two flows. Compilers may take such a dependency away. The number of changes is read
// around the words of a key that has more than two.
func TestALearntFlowIsReadInOrder(t *testing.T) {
	const last, idle, changes = 40, 48, 56
	spec, err := loadSpec()
	require.NoError(t, err)
	for name, want := range map[string][]int16{
		"learnt_probe_ipv4": {0, 8, last, idle, 0},
		"learnt_find":       {changes, 0, 8, 16, 24, 32, last, idle, 0, changes},
	} {
		code := function(t, spec.Programs[ingressProgram].Instructions, name)
		var offsets []int16
		var inOrder []bool
		for at, ins := range code {
			if ins.OpCode.Class() == asm.LdXClass && ins.Src != asm.RFP {
				offsets, inOrder = append(offsets, ins.Offset), append(inOrder, dependsOnRead(code, at))
			}
		}
		begin := len(offsets) - len(want)
		require.Equal(t, want, offsets[begin:], name)
		require.NotContains(t, inOrder[begin+1:], false, name)
	}
}
