// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// Position of the outermost VLAN tag on the wire, and the parts of it that Linux keeps beside the packet.
const (
	tpidAt  = 12 // after the MAC addresses
	tciAt   = 14
	tagEnd  = 16
	tagSize = 4
)

// farthest is beyond every packet. It is so far from negative offsets that no load at it reaches one.
const farthest uint32 = 0x7ffffff0

// Kernel turns a program over the packet as on the wire into one over the packet as Linux holds it, with the
// outermost VLAN tag beside the data. Both give the same verdict for the same packet. Kernel also removes differences
// between libpcap and the kernel in the meaning of an instruction: offsets beyond 2 GiB (the kernel has other things
// there) and shifts by 32 and more.
// \ The result first distinguishes tagged from untagged packets. If the tag makes a difference, it has the program
// once for each. The kernel loads the result. Errors are ErrInvalidProgram and ErrNotRepresentable. The latter means
// that the result would be longer than MaxInstructions, or that it needs a word of scratch memory and prog leaves
// none free.
func Kernel(prog []bpf.RawInstruction) ([]bpf.RawInstruction, error) {
	if err := validate(prog); err != nil {
		return nil, err
	}
	asm := &assembler{}
	tagged := newRewriter(&assembler{}, prog, true)
	if err := tagged.all(); err != nil {
		return nil, err
	}
	if tagged.changed {
		// Both copies are made. The one for packets without a tag comes first, because it runs most.
		tagged = newRewriter(asm, prog, true)
		untaggedStart, taggedStart := asm.labels(1), asm.labels(1)
		asm.emit(ld|sizeW|modeAbs, adVLANTagPresent)
		asm.jumpIf(opJeq, 0, untaggedStart, taggedStart)
		asm.bind(untaggedStart)
		if err := newRewriter(asm, prog, false).all(); err != nil {
			return nil, err
		}
		asm.bind(taggedStart)
		asm.emit(ld|modeImm, 0) // the initial values of a program
		if err := tagged.all(); err != nil {
			return nil, err
		}
	} else if err := newRewriter(asm, prog, false).all(); err != nil {
		return nil, err
	}
	return asm.program()
}

// rewriter writes one of the copies.
type rewriter struct {
	*assembler
	prog   []bpf.RawInstruction
	bounds []registers
	tagged bool
	base   label // label of the first instruction; those of the others follow
	free   int   // a word of scratch memory that prog does not use, -1 = none
	// changed means that an instruction has another meaning if there is a tag.
	changed bool
}

func newRewriter(asm *assembler, prog []bpf.RawInstruction, tagged bool) *rewriter {
	return &rewriter{
		assembler: asm, prog: prog, bounds: boundsOf(prog), tagged: tagged,
		base: asm.labels(len(prog)), free: freeWord(prog),
	}
}

func freeWord(prog []bpf.RawInstruction) int {
	var used [memWords]bool
	for _, ins := range prog {
		if word, uses := scratchWord(ins); uses {
			used[word] = true
		}
	}
	for word := memWords - 1; word >= 0; word-- {
		if !used[word] {
			return word
		}
	}
	return -1
}

func (r *rewriter) all() error {
	for i, ins := range r.prog {
		r.bind(r.base + label(i))
		if err := r.one(i, ins); err != nil {
			return fmt.Errorf("instruction %d: %w", i, err)
		}
	}
	return nil
}

func (r *rewriter) one(i int, ins bpf.RawInstruction) error {
	switch {
	case class(ins.Op) == jmp:
		r.jumpInstruction(i, ins)
	case class(ins.Op) == ld && mode(ins.Op) == modeAbs:
		return r.loadAbsolute(ins.K, bytesOf(ins.Op))
	case class(ins.Op) == ld && mode(ins.Op) == modeInd:
		return r.loadIndirect(ins.K, bytesOf(ins.Op), r.bounds[i].x)
	case class(ins.Op) == ldx && mode(ins.Op) == modeMsh:
		return r.loadHeaderLength(ins.K)
	case ins.Op == ld|modeLen && r.tagged:
		r.loadLength()
	case ins.Op == ldx|modeLen && r.tagged:
		return r.keepingA(r.loadLength)
	case ins.Op == alu|opLsh|srcX || ins.Op == alu|opRsh|srcX:
		return r.shift(ins, r.bounds[i].x)
	default:
		r.emit(ins.Op, ins.K)
	}
	return nil
}

func (r *rewriter) jumpInstruction(i int, ins bpf.RawInstruction) {
	after := r.base + label(i) + 1
	if ins.Op == jmp|opJa {
		r.jump(after + label(ins.K))
		return
	}
	r.jumpIf(ins.Op&^jmp, ins.K, after+label(ins.Jt), after+label(ins.Jf))
}

// shift writes a shift by X. For 32 and more, libpcap has the result 0, but the kernel takes the last five bits.
func (r *rewriter) shift(ins bpf.RawInstruction, x interval) error {
	if x.high < 32 {
		r.emit(ins.Op, 0)
		return nil
	}
	word, err := r.word()
	if err != nil {
		return err
	}
	far, near, done := r.labels(1), r.labels(1), r.labels(1)
	r.emit(st, word)
	r.emit(txa, 0)
	r.jumpIf(opJgt, 31, far, near)
	r.bind(far)
	r.emit(ld|modeImm, 0)
	r.jump(done)
	r.bind(near)
	r.emit(ld|modeMem, word)
	r.emit(ins.Op, 0)
	r.bind(done)
	return nil
}

// word returns a word of scratch memory for a value that must survive a few instructions.
func (r *rewriter) word() (uint32, error) {
	if r.free < 0 {
		return 0, fmt.Errorf("%w: it uses all %d words of scratch memory", ErrNotRepresentable, memWords)
	}
	return uint32(r.free), nil
}

// keepingA loads X with the code that loads A.
func (r *rewriter) keepingA(load func()) error {
	word, err := r.word()
	if err != nil {
		return err
	}
	r.emit(st, word)
	load()
	r.emit(tax, 0)
	r.emit(ld|modeMem, word)
	return nil
}

// loadLength loads the length on the wire.
func (r *rewriter) loadLength() {
	r.changed = true
	r.emit(ld|modeLen, 0)
	r.emit(alu|opAdd|srcK, tagSize)
}

// reject ends the program in the same way as a load beyond the packet's end.
func (r *rewriter) reject() { r.emit(retK, 0) }
