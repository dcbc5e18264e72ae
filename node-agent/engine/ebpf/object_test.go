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

// Processors that do not read in the program's order do if an address depends on what was read before. Without that, a
// flow's words could be those of two flows. Compilers may take such a dependency away.
func TestALearntFlowIsReadInOrder(t *testing.T) {
	spec, err := loadSpec()
	require.NoError(t, err)
	code := spec.Programs[ingressProgram].Instructions
	start := slices.IndexFunc(code, func(ins asm.Instruction) bool { return ins.Symbol() == "learnt_probe_ipv4" })
	require.GreaterOrEqual(t, start, 0)
	code = code[start:]
	if end := slices.IndexFunc(code[1:], func(ins asm.Instruction) bool { return ins.Symbol() != "" }); end >= 0 {
		code = code[:end+1]
	}
	reads := 0
	for at, ins := range code {
		if ins.OpCode.Class() == asm.LdXClass && ins.Src != asm.RFP && ins.Offset > 0 {
			reads++
			require.True(t, dependsOnRead(code, at), "%d: %v", at, ins)
		}
	}
	require.Equal(t, 3, reads, "the key's second word, and the life's two words")
}
