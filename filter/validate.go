// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// validate returns why the kernel would not load the program. It also checks that every path ends in a return: jumps
// only go forward, and the last instruction is a return.
func validate(prog []bpf.RawInstruction) error {
	if len(prog) == 0 || len(prog) > MaxInstructions {
		return fmt.Errorf("%w: %d instructions, want 1 to %d", ErrInvalidProgram, len(prog), MaxInstructions)
	}
	for i, ins := range prog {
		if err := validateOne(ins, uint64(len(prog)-i-1)); err != nil {
			return fmt.Errorf("%w: instruction %d: %w", ErrInvalidProgram, i, err)
		}
	}
	if class(prog[len(prog)-1].Op) != ret {
		return fmt.Errorf("%w: does not end in a return", ErrInvalidProgram)
	}
	return validateMemory(prog)
}

// validateOne checks an instruction that rest more instructions follow.
func validateOne(ins bpf.RawInstruction, rest uint64) error {
	if !known(ins.Op) {
		return fmt.Errorf("unknown code %#x", ins.Op)
	}
	constant := ins.Op&srcX == 0
	switch op := operation(ins.Op); class(ins.Op) {
	case alu:
		if constant && ins.K == 0 && (op == opDiv || op == opMod) {
			return fmt.Errorf("division by zero")
		}
		if constant && ins.K >= 32 && (op == opLsh || op == opRsh) {
			return fmt.Errorf("shift by %d", ins.K)
		}
	case jmp:
		if isLoop(ins) {
			return fmt.Errorf("jump backwards")
		}
		if op == opJa && uint64(ins.K) >= rest || op != opJa && uint64(max(ins.Jt, ins.Jf)) >= rest {
			return fmt.Errorf("jump beyond the end")
		}
	}
	if _, uses := scratchWord(ins); uses && ins.K >= memWords {
		return fmt.Errorf("scratch memory has no word %d", ins.K)
	}
	return nil
}

// isLoop reports whether ins jumps backwards. libpcap's programs do so for "protochain"; the kernel's must not.
func isLoop(ins bpf.RawInstruction) bool {
	return ins.Op == jmp|opJa && ins.K >= negative
}

// loadsMetadata reports whether ins is libpcap's translation of inbound, outbound and ifindex. This is a load of
// socket metadata of a packet, by an offset below zero. See SKF_AD_OFF, SKF_AD_PKTTYPE and SKF_AD_IFINDEX in
// linux/filter.h.
func loadsMetadata(ins bpf.RawInstruction) bool {
	const offset = 1<<32 - 0x1000
	return ins.Op == ld|sizeH|modeAbs && ins.K == offset+uint32(bpf.ExtType) ||
		ins.Op == ld|sizeW|modeAbs && ins.K == offset+uint32(bpf.ExtInterfaceIndex)
}

// known reports whether the kernel supports the operation with this addressing.
func known(op uint16) bool {
	switch class(op) {
	case ld:
		switch mode(op) {
		case modeAbs, modeInd:
			return size(op) != 0x18
		}
		return op == ld|modeImm || op == ld|modeMem || op == ld|modeLen
	case ldx:
		return op == ldx|modeImm || op == ldx|modeMem || op == ldx|modeLen || op == ldx|sizeB|modeMsh
	case st, stx:
		return op == st || op == stx
	case alu:
		return op>>8 == 0 && (operation(op) < opNeg || op == alu|opNeg || operation(op) == opMod || operation(op) == opXor)
	case jmp:
		return op == jmp|opJa || op>>8 == 0 && operation(op) >= opJeq && operation(op) <= opJset
	case ret:
		return op == retK || op == retA
	default:
		return op == tax || op == txa
	}
}

// scratchWord returns the word of scratch memory that the instruction reads or writes.
func scratchWord(ins bpf.RawInstruction) (word uint32, uses bool) {
	switch ins.Op {
	case st, stx, ld | modeMem, ldx | modeMem:
		return ins.K, true
	}
	return 0, false
}

// validateMemory refuses reads of scratch memory that some path has not written. Paths to an instruction come from
// before it, so one pass is enough.
func validateMemory(prog []bpf.RawInstruction) error {
	written := make([]uint16, len(prog)) // words written on every path to it
	for i := range written {
		written[i] = 0xffff
	}
	written[0] = 0
	for i, ins := range prog {
		now := written[i]
		if word, uses := scratchWord(ins); uses {
			bit := uint16(1) << word
			if class(ins.Op) == st || class(ins.Op) == stx {
				now |= bit
			} else if now&bit == 0 {
				return fmt.Errorf("%w: instruction %d: scratch word %d is read before it is written", ErrInvalidProgram, i, word)
			}
		}
		for _, to := range successors(ins, i) {
			written[to] &= now
		}
	}
	return nil
}

// values is a set of a program's registers.
type values uint8

const (
	valueA values = 1 << iota
	valueX
)

// uses returns the registers that ins reads, and the one that it writes.
func uses(ins bpf.RawInstruction) (reads, writes values) {
	operand := values(0)
	if ins.Op&srcX != 0 {
		operand = valueX
	}
	switch class(ins.Op) {
	case ld:
		if mode(ins.Op) == modeInd {
			reads = valueX
		}
		return reads, valueA
	case ldx:
		return 0, valueX
	case st:
		return valueA, 0
	case stx:
		return valueX, 0
	case alu:
		return valueA | operand, valueA
	case jmp:
		if isConditional(ins) {
			reads = valueA | operand
		}
		return reads, 0
	case ret:
		if ins.Op == retA {
			reads = valueA
		}
		return reads, 0
	}
	if ins.Op == tax {
		return valueA, valueX
	}
	return valueX, valueA
}

// unset returns the registers that some path reads before it writes them. They are 0 then.
func unset(prog []bpf.RawInstruction) values {
	written := make([]values, len(prog)) // on every path to it
	for i := range written {
		written[i] = valueA | valueX
	}
	written[0] = 0
	found := values(0)
	for i, ins := range prog {
		reads, writes := uses(ins)
		found |= reads &^ written[i]
		for _, to := range successors(ins, i) {
			written[to] &= written[i] | writes
		}
	}
	return found
}

// successors returns the instructions that may come after ins, which is number i.
func successors(ins bpf.RawInstruction, i int) []int {
	switch {
	case class(ins.Op) == ret:
		return nil
	case ins.Op == jmp|opJa:
		return []int{i + 1 + int(ins.K)}
	case class(ins.Op) == jmp:
		return []int{i + 1 + int(ins.Jt), i + 1 + int(ins.Jf)}
	}
	return []int{i + 1}
}
