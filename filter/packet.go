// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math"
	"slices"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/net/bpf"
)

// Loads of a packet's bytes in the eBPF function. The function has the program twice:
//
//   - The direct copy reads the bytes where they are. Before that it checks that they are in the part of the packet that
//     is contiguous: for constant offsets once for as many as it can, and for each load relative to X. If they are not,
//     it goes over to the same instruction of the other copy.
//   - The other copy has a helper load the bytes, from any part of the packet. It rejects packets that end before them.
//
// So only the latter decides on packets that are short or in pieces.

// directReach limits the offset of direct loads, and X in them. The verifier follows offsets up to twice as many bytes.
const directReach = math.MaxInt16

// constantEnd returns where the bytes end that the instruction loads from a constant offset. It returns 0 if it does not
// load any, or if they are out of reach of direct loads.
func constantEnd(ins bpf.RawInstruction) uint32 {
	bytes := uint32(0)
	switch {
	case class(ins.Op) == ld && mode(ins.Op) == modeAbs:
		bytes = bytesOf(ins.Op)
	case class(ins.Op) == ldx && mode(ins.Op) == modeMsh:
		bytes = 1
	}
	if bytes == 0 || ins.K > directReach-bytes {
		return 0
	}
	return ins.K + bytes
}

// headers is how many bytes a check covers beyond its own load if loads after it want them: those of an Ethernet and an
// IPv4 header. Nearly all packets have them in one piece, so that a check of more seldom fails.
const headers = 34

// checksOf returns up to where the direct copy checks the packet before each instruction, 0 for no check. An instruction
// needs none if every path to it has made one that is enough. Paths come from before it, so one pass is enough.
func checksOf(prog []bpf.RawInstruction) []uint32 {
	checks, checked, ahead := make([]uint32, len(prog)), make([]uint32, len(prog)), headersAhead(prog)
	for i := range checked[1:] {
		checked[i+1] = math.MaxUint32
	}
	for i, ins := range prog {
		after := checked[i]
		if end := constantEnd(ins); end > after {
			after = max(end, ahead[i])
			checks[i] = after
		}
		for _, to := range successors(ins, i) {
			checked[to] = min(checked[to], after)
		}
	}
	return checks
}

// headersAhead returns how many bytes of the headers the program loads from each instruction on.
func headersAhead(prog []bpf.RawInstruction) []uint32 {
	ahead, most := make([]uint32, len(prog)), uint32(0)
	for i, ins := range slices.Backward(prog) {
		if end := constantEnd(ins); end <= headers {
			most = max(most, end)
		}
		ahead[i] = most
	}
	return ahead
}

func widthOf(op uint16) asm.Size {
	switch size(op) {
	case sizeB:
		return asm.Byte
	case sizeH:
		return asm.Half
	default:
		return asm.Word
	}
}

func (t *translator) dataField() int16 {
	if t.xdp {
		return xdpData
	}
	return skbData
}

func (t *translator) dataEndField() int16 {
	if t.xdp {
		return xdpDataEnd
	}
	return skbDataEnd
}

// leaveIf emits a jump to instruction i of the other copy.
func (t *translator) leaveIf(ins asm.Instruction, i int) {
	t.entered[i] = true
	t.jumpToPlace(ins, len(t.prog)+i)
}

// check leaves the direct copy at instruction i if the contiguous part ends before the given number of bytes from base.
func (t *translator) check(i int, base asm.Register, bytes uint32) {
	t.emit(
		asm.Mov.Reg(asm.R1, base),
		asm.Add.Imm(asm.R1, int32(bytes)),
		asm.LoadMem(asm.R2, regSkb, t.dataEndField(), asm.Word),
	)
	t.leaveIf(asm.JGT.Reg(asm.R1, asm.R2, ""), i)
}

// loadAbsolute writes the load of instruction i from offset k.
func (t *translator) loadAbsolute(i int, to asm.Register, k uint32, width asm.Size) {
	if !t.direct || constantEnd(t.prog[i]) == 0 {
		t.emit(asm.Mov.Imm32(asm.R2, int32(k)))
		t.loadByHelper(to, width)
		return
	}
	if t.checks[i] > 0 {
		t.check(i, regData, t.checks[i])
	}
	t.loadFrom(to, regData, int16(k), width)
}

// loadIndirect writes instruction i, a load relative to X.
func (t *translator) loadIndirect(i int, ins bpf.RawInstruction) {
	bytes := bytesOf(ins.Op)
	if !t.direct || ins.K > directReach-bytes {
		t.emit(asm.Mov.Reg32(asm.R2, regX), asm.Add.Imm32(asm.R2, int32(ins.K)))
		t.loadByHelper(regA, widthOf(ins.Op))
		return
	}
	t.leaveIf(asm.JGT.Imm(regX, directReach, ""), i)
	t.emit(asm.Mov.Reg(asm.R3, regData), asm.Add.Reg(asm.R3, regX))
	t.check(i, asm.R3, ins.K+bytes)
	t.loadFrom(regA, asm.R3, int16(ins.K), widthOf(ins.Op))
}

// loadByHelper loads from the offset in R2. The helper fails for offsets outside the packet, including those from 2 GiB
// on.
func (t *translator) loadByHelper(to asm.Register, width asm.Size) {
	load := asm.FnSkbLoadBytes
	if t.xdp {
		load = asm.FnXdpLoadBytes
	}
	t.emit(
		asm.Mov.Reg(asm.R1, regSkb),
		asm.Mov.Reg(asm.R3, asm.R10),
		asm.Add.Imm(asm.R3, loadedAt),
		asm.Mov.Imm32(asm.R4, int32(width.Sizeof())),
		load.Call(),
	)
	t.rejectIf(asm.JNE.Imm(asm.R0, 0, ""))
	t.loadFrom(to, asm.R10, loadedAt, width)
}

// loadFrom loads a number in network order.
func (t *translator) loadFrom(to, base asm.Register, offset int16, width asm.Size) {
	t.emit(asm.LoadMem(to, base, offset, width))
	if width != asm.Byte {
		t.emit(asm.HostTo(asm.BE, to, width))
	}
}
