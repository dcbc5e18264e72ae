// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math"
	"math/bits"

	"golang.org/x/net/bpf"
)

// interval is the known range of a 32-bit value: low <= value <= high.
type interval struct{ low, high uint64 }

var anything = interval{0, math.MaxUint32}

func exactly(v uint32) interval { return interval{uint64(v), uint64(v)} }

func (a interval) or(b interval) interval {
	return interval{min(a.low, b.low), max(a.high, b.high)}
}

// registers is what is known of a program's state before an instruction.
type registers struct {
	reached bool
	a, x    interval
	m       [memWords]interval
}

func (r *registers) join(o registers) {
	if !r.reached {
		*r = o
		return
	}
	r.a = r.a.or(o.a)
	r.x = r.x.or(o.x)
	for i := range r.m {
		r.m[i] = r.m[i].or(o.m[i])
	}
}

// boundsOf follows a valid program and returns what is known before each of its instructions. Jumps only go forward,
// so one pass is enough.
func boundsOf(prog []bpf.RawInstruction) []registers {
	states := make([]registers, len(prog))
	states[0] = registers{reached: true} // all zero, as the kernel starts
	for i, ins := range prog {
		if !states[i].reached {
			continue
		}
		after := states[i].after(ins)
		for _, to := range successors(ins, i) {
			states[to].join(after)
		}
	}
	return states
}

func (r registers) after(ins bpf.RawInstruction) registers {
	switch class(ins.Op) {
	case ld:
		r.a = r.loaded(ins)
	case ldx:
		r.x = r.loaded(ins)
	case st:
		r.m[ins.K] = r.a
	case stx:
		r.m[ins.K] = r.x
	case alu:
		operand := exactly(ins.K)
		if ins.Op&srcX != 0 {
			operand = r.x
		}
		r.a = calculate(operation(ins.Op), r.a, operand)
	case misc:
		if ins.Op == tax {
			r.x = r.a
		} else {
			r.a = r.x
		}
	}
	return r
}

func (r registers) loaded(ins bpf.RawInstruction) interval {
	switch mode(ins.Op) {
	case modeImm:
		return exactly(ins.K)
	case modeMem:
		return r.m[ins.K]
	case modeMsh:
		return interval{0, 4 * 0xf}
	case modeLen:
		return anything
	}
	if ins.K >= adOff {
		return anything
	}
	return interval{0, 1<<(8*bytesOf(ins.Op)) - 1}
}

// calculate returns the interval of an operation's result. If the result may wrap, the interval is unlimited.
func calculate(op uint16, a, b interval) interval {
	result := anything
	switch op {
	case opAdd:
		result = interval{a.low + b.low, a.high + b.high}
	case opSub:
		if a.low >= b.high {
			result = interval{a.low - b.high, a.high - b.low}
		}
	case opMul:
		result = interval{a.low * b.low, a.high * b.high}
	case opDiv:
		result = interval{a.low / max(b.high, 1), a.high / max(b.low, 1)}
	case opMod:
		if b.high > 0 {
			result = interval{0, min(a.high, b.high-1)}
		}
	case opAnd:
		result = interval{0, min(a.high, b.high)}
	case opOr, opXor:
		result = interval{0, 1<<bits.Len64(a.high|b.high) - 1}
	case opLsh:
		if b.high < 32 {
			result = interval{a.low << b.low, a.high << b.high}
		}
	case opRsh:
		result = interval{a.low >> min(b.high, 63), a.high >> min(b.low, 63)}
	}
	if result.high > math.MaxUint32 {
		return anything
	}
	return result
}
