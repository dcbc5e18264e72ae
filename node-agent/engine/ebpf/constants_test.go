// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"math"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
)

// compared is what IS_SET of bpf/constant.h makes of the operand at place 8 of its section.
func compared() asm.Instructions {
	return asm.Instructions{
		asm.LoadImm(asm.R0, 8<<32, asm.DWord).WithReference(operandsMap).WithSymbol("function"),
		asm.JLT.Reg(asm.R3, asm.R0, ""),
	}
}

func TestOperandsAreInTheirInstructions(t *testing.T) {
	for _, value := range []int64{0, 1, math.MaxInt32, math.MinInt32, -1} {
		written := writeOperands(compared(), map[uint32]uint64{8: uint64(value)})
		require.Len(t, written, 3, "as long as before")
		require.Equal(t, "function", written[0].Symbol())
		require.Empty(t, written[0].Reference())
		for _, nop := range written[:2] {
			require.Equal(t, asm.JumpClass, nop.OpCode.Class())
			require.Equal(t, asm.Ja, nop.OpCode.JumpOp())
			require.Zero(t, nop.Offset)
		}
		require.Equal(t, asm.JLT.Imm(asm.R3, int32(value), ""), written[2].WithReference(""))
	}
}

func TestLargeOperandsAreLoaded(t *testing.T) {
	for _, value := range []uint64{math.MaxInt32 + 1, math.MaxUint32, 1 << 63} {
		written := writeOperands(compared(), map[uint32]uint64{8: value})
		require.Len(t, written, 2)
		require.Equal(t, int64(value), written[0].Constant)
		require.Empty(t, written[0].Reference())
		require.Equal(t, asm.R0, written[1].Src)
	}
}
