// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// label is a position in a program that is being assembled. It may be bound to an instruction before or after a jump
// to it.
type label int

// next is the instruction after the one that jumps.
const next label = -1

type item struct {
	ins               bpf.RawInstruction
	onTrue            label // target of a conditional jump if true; target of an unconditional one
	onFalse           label
	farTrue, farFalse bool // the target is out of a conditional jump's reach, and needs an unconditional one
}

// assembler assembles a program in which jumps go to labels, and computes their distances.
type assembler struct {
	items []item
	at    []int // the item that a label is bound to
}

// labels makes n labels and returns the first.
func (s *assembler) labels(n int) label {
	first := label(len(s.at))
	s.at = append(s.at, make([]int, n)...)
	return first
}

// bind makes l the position of the next instruction.
func (s *assembler) bind(l label) { s.at[l] = len(s.items) }

func (s *assembler) emit(op uint16, k uint32) {
	s.items = append(s.items, item{ins: bpf.RawInstruction{Op: op, K: k}})
}

func (s *assembler) jump(to label) {
	s.items = append(s.items, item{ins: bpf.RawInstruction{Op: jmp | opJa}, onTrue: to})
}

func (s *assembler) jumpIf(op uint16, k uint32, onTrue, onFalse label) {
	s.items = append(s.items, item{ins: bpf.RawInstruction{Op: jmp | op, K: k}, onTrue: onTrue, onFalse: onFalse})
}

func (t *item) length() int {
	n := 1
	if t.farTrue {
		n++
	}
	if t.farFalse {
		n++
	}
	return n
}

// offsets returns where each item begins.
func (s *assembler) offsets() []int {
	offsets := make([]int, len(s.items)+1)
	for i := range s.items {
		offsets[i+1] = offsets[i] + s.items[i].length()
	}
	return offsets
}

// distance returns how many instructions a jump of item i to l must skip, counted from the item's first instruction.
func (s *assembler) distance(offsets []int, i int, l label) int {
	to := i + 1
	if l != next {
		to = s.at[l]
	}
	return offsets[to] - offsets[i] - 1
}

const reach = 255 // instructions that a conditional jump can skip

// widen marks the jumps that are out of reach. It repeats this until there are no more, because each makes others
// longer.
func (s *assembler) widen() []int {
	for {
		offsets, changed := s.offsets(), false
		for i := range s.items {
			t := &s.items[i]
			if !isConditional(t.ins) {
				continue
			}
			if !t.farTrue && s.distance(offsets, i, t.onTrue) > reach {
				t.farTrue, changed = true, true
			}
			if !t.farFalse && s.distance(offsets, i, t.onFalse) > reach {
				t.farFalse, changed = true, true
			}
		}
		if !changed {
			return offsets
		}
	}
}

// program returns the assembled program.
func (s *assembler) program() ([]bpf.RawInstruction, error) {
	offsets := s.widen()
	total := offsets[len(s.items)]
	if total > MaxInstructions {
		return nil, fmt.Errorf("%w: with VLAN tags considered it has %d instructions, at most %d can be loaded",
			ErrNotRepresentable, total, MaxInstructions)
	}
	prog := make([]bpf.RawInstruction, 0, total)
	for i := range s.items {
		prog = s.appendItem(prog, offsets, i)
	}
	return prog, nil
}

func (s *assembler) appendItem(prog []bpf.RawInstruction, offsets []int, i int) []bpf.RawInstruction {
	t := s.items[i]
	if t.ins.Op == jmp|opJa {
		t.ins.K = uint32(s.distance(offsets, i, t.onTrue))
	}
	if !isConditional(t.ins) {
		return append(prog, t.ins)
	}
	onTrue, onFalse := s.distance(offsets, i, t.onTrue), s.distance(offsets, i, t.onFalse)
	var hops []bpf.RawInstruction
	if t.farTrue {
		hops = append(hops, bpf.RawInstruction{Op: jmp | opJa, K: uint32(onTrue - 1)})
		onTrue = 0
	}
	if t.farFalse {
		hop := len(hops)
		hops = append(hops, bpf.RawInstruction{Op: jmp | opJa, K: uint32(onFalse - hop - 1)})
		onFalse = hop
	}
	t.ins.Jt, t.ins.Jf = uint8(onTrue), uint8(onFalse)
	return append(append(prog, t.ins), hops...)
}
