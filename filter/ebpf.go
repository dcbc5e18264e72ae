// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"fmt"
	"math"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/net/bpf"
)

// Registers and stack of the function that EBPF makes.
const (
	regSkb  = asm.R6 // or struct xdp_md
	regA    = asm.R7
	regX    = asm.R8
	regData = asm.R9 // where the packet begins; only the direct copy has it

	scratchAt = -4 * memWords // scratch memory, word by word
	loadedAt  = scratchAt - 8 // where the helper stores the bytes that it loads
)

// Fields of struct __sk_buff, see linux/bpf.h.
const (
	skbLen         = 0
	skbPktType     = 4
	skbProtocol    = 16
	skbVLANPresent = 20
	skbVLANTCI     = 24
	skbVLANProto   = 28
	skbIfindex     = 40
	skbData        = 76
	skbDataEnd     = 80
)

// Fields of struct xdp_md.
const (
	xdpData    = 0
	xdpDataEnd = 4
	xdpIfindex = 12 // ingress_ifindex
)

// EBPF translates a program that [Kernel] made into the body of a function of a tc program,
//
//	int ringcap_filter(struct __sk_buff *skb)
//
// which returns what the program returns: 0 for a packet that it rejects. The body expects its argument in R1, uses 72
// bytes of stack and ends in exits. Its jumps have numeric offsets: it has no symbols and can be put anywhere, but not be
// taken apart.
//
// Errors are ErrInvalidProgram and ErrNotRepresentable (ancillary data that tc programs do not have, or too long a jump).
func EBPF(prog []bpf.RawInstruction) (asm.Instructions, error) { return translate(prog, false) }

// XDP is EBPF for the body of a function of an XDP program,
//
//	int ringcap_xdp_filter(struct xdp_md *xdp)
//
// to which packets come as they were on the wire: none has a tag beside it.
func XDP(prog []bpf.RawInstruction) (asm.Instructions, error) { return translate(prog, true) }

// translate writes the program in two copies, see packet.go. If they are too long for a jump, it writes only the second
// one.
func translate(prog []bpf.RawInstruction, xdp bool) (asm.Instructions, error) {
	if err := validate(prog); err != nil {
		return nil, err
	}
	t := newTranslator(prog, xdp, true)
	err := t.all()
	if err != nil {
		t = newTranslator(prog, xdp, false)
		err = t.all()
	}
	return t.out, err
}

// translator writes an eBPF function. Every instruction in it takes one 8-byte slot.
type translator struct {
	prog []bpf.RawInstruction
	out  asm.Instructions
	// starts holds where the translation of each classic instruction begins: those of the direct copy, then those of the
	// other one, and then where rejecting begins.
	starts []int
	jumps  []pendingJump
	// rejects means that something jumps to where packets are rejected.
	rejects bool
	// xdp means that the function is for an XDP program, not for tc.
	xdp bool
	// direct means that the copy that is being written reads the packet directly.
	direct bool
	// checks holds up to where the direct copy checks the packet, by instruction.
	checks []uint32
	// entered marks the instructions at which the direct copy goes over to the other one.
	entered []bool
}

type pendingJump struct {
	at int // in out
	to int // in starts
}

func newTranslator(prog []bpf.RawInstruction, xdp, direct bool) *translator {
	return &translator{
		prog: prog, starts: make([]int, 2*len(prog)+1), xdp: xdp, direct: direct,
		checks: checksOf(prog), entered: make([]bool, len(prog)),
	}
}

func (t *translator) all() error {
	t.emit(asm.Mov.Reg(regSkb, asm.R1))
	t.clear(unset(t.prog))
	if t.direct {
		t.emit(asm.LoadMem(regData, regSkb, t.dataField(), asm.Word))
		if err := t.copy(reachable(t.prog, []bool{true})); err != nil {
			return err
		}
		t.direct = false
	} else {
		t.entered[0] = true
	}
	if err := t.copy(reachable(t.prog, t.entered)); err != nil {
		return err
	}
	t.starts[len(t.starts)-1] = len(t.out)
	if t.rejects {
		t.emit(asm.Mov.Imm32(asm.R0, 0), asm.Return())
	}
	return t.resolve()
}

// clear gives registers the value that they have at the start of a classic program.
func (t *translator) clear(which values) {
	if which&valueA != 0 {
		t.emit(asm.Mov.Imm32(regA, 0))
	}
	if which&valueX != 0 {
		t.emit(asm.Mov.Imm32(regX, 0))
	}
}

// copy writes the instructions that can be reached. The verifier refuses others.
func (t *translator) copy(reached []bool) error {
	for i, ins := range t.prog {
		if !reached[i] {
			continue
		}
		t.starts[t.place(i)] = len(t.out)
		if err := t.one(i, ins); err != nil {
			return fmt.Errorf("instruction %d: %w", i, err)
		}
	}
	return nil
}

// reachable returns the instructions that can be reached from the given ones. Those may be fewer than prog has.
func reachable(prog []bpf.RawInstruction, from []bool) []bool {
	reached := make([]bool, len(prog))
	copy(reached, from)
	for i, ins := range prog {
		if reached[i] {
			for _, to := range successors(ins, i) {
				reached[to] = true
			}
		}
	}
	return reached
}

func (t *translator) emit(ins ...asm.Instruction) { t.out = append(t.out, ins...) }

// place returns the place in starts of classic instruction number i, in the copy that is being written.
func (t *translator) place(i int) int {
	if t.direct {
		return i
	}
	return len(t.prog) + i
}

// jump emits a jump to the translation of the classic instruction number to.
func (t *translator) jump(ins asm.Instruction, to int) { t.jumpToPlace(ins, t.place(to)) }

func (t *translator) jumpToPlace(ins asm.Instruction, to int) {
	t.jumps = append(t.jumps, pendingJump{len(t.out), to})
	t.emit(ins)
}

// rejectIf emits a jump to where packets are rejected.
func (t *translator) rejectIf(ins asm.Instruction) {
	t.rejects = true
	t.jumpToPlace(ins, len(t.starts)-1)
}

func (t *translator) resolve() error {
	for _, j := range t.jumps {
		distance := t.starts[j.to] - j.at - 1
		if distance > math.MaxInt16 {
			return fmt.Errorf("%w: a jump over %d eBPF instructions, at most %d are possible", ErrNotRepresentable, distance, math.MaxInt16)
		}
		t.out[j.at].Offset = int16(distance)
	}
	return nil
}

func (t *translator) one(i int, ins bpf.RawInstruction) error {
	switch class(ins.Op) {
	case ld:
		return t.load(i, ins)
	case ldx:
		t.loadX(i, ins)
	case st:
		t.emit(asm.StoreMem(asm.R10, wordAt(ins.K), regA, asm.Word))
	case stx:
		t.emit(asm.StoreMem(asm.R10, wordAt(ins.K), regX, asm.Word))
	case alu:
		t.calculate(ins)
	case jmp:
		t.branch(i, ins)
	case ret:
		if ins.Op == retA {
			t.emit(asm.Mov.Reg32(asm.R0, regA), asm.Return())
		} else {
			t.emit(asm.Mov.Imm32(asm.R0, int32(ins.K)), asm.Return())
		}
	case misc:
		if ins.Op == tax {
			t.emit(asm.Mov.Reg32(regX, regA))
		} else {
			t.emit(asm.Mov.Reg32(regA, regX))
		}
	}
	return nil
}

func wordAt(word uint32) int16 { return int16(scratchAt + 4*int(word)) }

func (t *translator) load(i int, ins bpf.RawInstruction) error {
	switch mode(ins.Op) {
	case modeImm:
		t.emit(asm.Mov.Imm32(regA, int32(ins.K)))
	case modeMem:
		t.emit(asm.LoadMem(regA, asm.R10, wordAt(ins.K), asm.Word))
	case modeLen:
		t.loadLength(regA)
	case modeInd:
		t.loadIndirect(i, ins)
	case modeAbs:
		if ins.K >= adOff {
			return t.loadAncillary(ins.K)
		}
		t.loadAbsolute(i, regA, ins.K, widthOf(ins.Op))
	}
	return nil
}

func (t *translator) loadX(i int, ins bpf.RawInstruction) {
	switch mode(ins.Op) {
	case modeImm:
		t.emit(asm.Mov.Imm32(regX, int32(ins.K)))
	case modeMem:
		t.emit(asm.LoadMem(regX, asm.R10, wordAt(ins.K), asm.Word))
	case modeLen:
		t.loadLength(regX)
	case modeMsh:
		t.loadAbsolute(i, regX, ins.K, asm.Byte)
		t.emit(asm.And.Imm32(regX, 0xf), asm.LSh.Imm32(regX, 2))
	}
}

func (t *translator) loadLength(to asm.Register) {
	if t.xdp {
		t.emit(asm.Mov.Reg(asm.R1, regSkb), asm.FnXdpGetBuffLen.Call(), asm.Mov.Reg32(to, asm.R0))
		return
	}
	t.emit(asm.LoadMem(to, regSkb, skbLen, asm.Word))
}

// loadXDPAncillary loads data that an XDP program has besides the packet.
func (t *translator) loadXDPAncillary(what uint32) error {
	switch what {
	case adIfindex:
		t.emit(asm.LoadMem(regA, regSkb, xdpIfindex, asm.Word))
	case adVLANTag, adVLANTagPresent, adVLANTPID:
		t.emit(asm.Mov.Imm32(regA, 0))
	default:
		return fmt.Errorf("%w: XDP programs have no ancillary data %#x", ErrNotRepresentable, what)
	}
	return nil
}

func (t *translator) loadAncillary(what uint32) error {
	if t.xdp {
		return t.loadXDPAncillary(what)
	}
	field, bigEndian := int16(0), false
	switch what {
	case adProtocol:
		field, bigEndian = skbProtocol, true
	case adPktType:
		field = skbPktType
	case adIfindex:
		field = skbIfindex
	case adVLANTag:
		field = skbVLANTCI
	case adVLANTagPresent:
		field = skbVLANPresent
	case adVLANTPID:
		field, bigEndian = skbVLANProto, true
	default:
		return fmt.Errorf("%w: tc programs have no ancillary data %#x", ErrNotRepresentable, what)
	}
	t.emit(asm.LoadMem(regA, regSkb, field, asm.Word))
	if bigEndian {
		t.emit(asm.HostTo(asm.BE, regA, asm.Half))
	}
	return nil
}

func (t *translator) calculate(ins bpf.RawInstruction) {
	op := operation(ins.Op)
	if op == opNeg {
		t.emit(asm.Neg.Imm32(regA, 0))
		return
	}
	operations := map[uint16]asm.ALUOp{
		opAdd: asm.Add, opSub: asm.Sub, opMul: asm.Mul, opDiv: asm.Div, opMod: asm.Mod,
		opAnd: asm.And, opOr: asm.Or, opXor: asm.Xor, opLsh: asm.LSh, opRsh: asm.RSh,
	}
	if ins.Op&srcX == 0 {
		t.emit(operations[op].Imm32(regA, int32(ins.K)))
		return
	}
	switch op {
	case opDiv, opMod:
		t.rejectIf(asm.JEq.Imm32(regX, 0, ""))
	}
	t.emit(operations[op].Reg32(regA, regX))
}

func (t *translator) branch(i int, ins bpf.RawInstruction) {
	if ins.Op == jmp|opJa {
		t.jump(asm.Ja.Label(""), i+1+int(ins.K))
		return
	}
	onTrue, onFalse := i+1+int(ins.Jt), i+1+int(ins.Jf)
	if onTrue == onFalse {
		t.jump(asm.Ja.Label(""), onTrue)
		return
	}
	operation, inverse := jumpOps(ins.Op)
	if ins.Jt == 0 && inverse != asm.InvalidJumpOp {
		t.jump(compare(inverse, ins), onFalse)
		return
	}
	t.jump(compare(operation, ins), onTrue)
	if ins.Jf != 0 {
		t.jump(asm.Ja.Label(""), onFalse)
	}
}

// jumpOps returns the jump of a classic operation, and the one that jumps where that does not, if there is one.
func jumpOps(op uint16) (operation, inverse asm.JumpOp) {
	switch op & 0xf0 {
	case opJeq:
		return asm.JEq, asm.JNE
	case opJgt:
		return asm.JGT, asm.JLE
	case opJge:
		return asm.JGE, asm.JLT
	default:
		return asm.JSet, asm.InvalidJumpOp
	}
}

// compare makes the jump of ins with another operation.
func compare(operation asm.JumpOp, ins bpf.RawInstruction) asm.Instruction {
	if ins.Op&srcX != 0 {
		return operation.Reg32(regA, regX, "")
	}
	return operation.Imm32(regA, int32(ins.K), "")
}
