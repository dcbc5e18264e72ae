// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
)

// packet is one as Linux holds it: with tag, its outermost VLAN tag is not in data.
type packet struct {
	data []byte
	tag  *tag
}

type tag struct{ tpid, tci uint16 }

// wire returns the packet as on the wire.
func (p packet) wire() []byte {
	if p.tag == nil {
		return p.data
	}
	out := append([]byte{}, p.data[:12]...)
	out = binary.BigEndian.AppendUint16(out, p.tag.tpid)
	out = binary.BigEndian.AppendUint16(out, p.tag.tci)
	return append(out, p.data[12:]...)
}

// strip returns the packet that Linux makes of one on the wire.
func strip(wire []byte) packet {
	if len(wire) < 18 {
		return packet{data: wire}
	}
	switch tpid := binary.BigEndian.Uint16(wire[12:]); tpid {
	case 0x8100, 0x88a8:
		data := append(append([]byte{}, wire[:12]...), wire[16:]...)
		return packet{data, &tag{tpid, binary.BigEndian.Uint16(wire[14:])}}
	}
	return packet{data: wire}
}

// machine interprets a program the way either libpcap (kernel false) or the kernel does. It is written from the
// description of both, without what the package does about their differences.
type machine struct {
	kernel bool
	packet packet
	a, x   uint32
	m      [memWords]uint32
}

// onWire is libpcap's verdict about a packet on the wire.
func onWire(prog []bpf.RawInstruction, wire []byte) uint32 {
	return (&machine{packet: packet{data: wire}}).run(prog)
}

// inKernel is the kernel's verdict about a packet as it holds it.
func inKernel(prog []bpf.RawInstruction, p packet) uint32 {
	return (&machine{packet: p, kernel: true}).run(prog)
}

func (m *machine) run(prog []bpf.RawInstruction) uint32 {
	for pc := 0; ; pc++ {
		ins, ok := prog[pc], true
		switch class(ins.Op) {
		case ret:
			if ins.Op == retA {
				return m.a
			}
			return ins.K
		case jmp:
			pc += m.branch(ins)
		case ld:
			m.a, ok = m.load(ins)
		case ldx:
			m.x, ok = m.load(ins)
		case st:
			m.m[ins.K] = m.a
		case stx:
			m.m[ins.K] = m.x
		case alu:
			m.a, ok = m.calculate(ins)
		case misc:
			if ins.Op == tax {
				m.x = m.a
			} else {
				m.a = m.x
			}
		}
		if !ok {
			return 0
		}
	}
}

func (m *machine) load(ins bpf.RawInstruction) (uint32, bool) {
	switch mode(ins.Op) {
	case modeImm:
		return ins.K, true
	case modeMem:
		return m.m[ins.K], true
	case modeLen:
		return uint32(len(m.packet.data)), true
	case modeMsh:
		v, ok := m.bytes(uint64(ins.K), 1)
		return v & 0xf * 4, ok
	case modeInd:
		at := uint64(ins.K) + uint64(m.x)
		if m.kernel {
			at = uint64(uint32(at)) // so that a wrap that Kernel lets through shows
		}
		return m.bytes(at, bytesOf(ins.Op))
	}
	if m.kernel && ins.K >= adOff {
		return m.ancillary(ins.K), true
	}
	return m.bytes(uint64(ins.K), bytesOf(ins.Op))
}

func (m *machine) bytes(at uint64, n uint32) (v uint32, ok bool) {
	if m.kernel && at >= uint64(negative) {
		panic("a load that the kernel takes for something else")
	}
	if at+uint64(n) > uint64(len(m.packet.data)) {
		return 0, false
	}
	for _, b := range m.packet.data[at : at+uint64(n)] {
		v = v<<8 | uint32(b)
	}
	return v, true
}

func (m *machine) ancillary(what uint32) uint32 {
	t := m.packet.tag
	if t == nil {
		t = &tag{}
	}
	switch what {
	case adVLANTagPresent:
		if m.packet.tag != nil {
			return 1
		}
		return 0
	case adVLANTPID:
		return uint32(t.tpid)
	case adVLANTag:
		return uint32(t.tci)
	}
	panic("unexpected ancillary load")
}

func (m *machine) operand(ins bpf.RawInstruction) uint32 {
	if ins.Op&srcX != 0 {
		return m.x
	}
	return ins.K
}

func (m *machine) branch(ins bpf.RawInstruction) int {
	v, holds := m.operand(ins), false
	switch operation(ins.Op) {
	case opJa:
		return int(ins.K)
	case opJeq:
		holds = m.a == v
	case opJgt:
		holds = m.a > v
	case opJge:
		holds = m.a >= v
	case opJset:
		holds = m.a&v != 0
	}
	if holds {
		return int(ins.Jt)
	}
	return int(ins.Jf)
}

func (m *machine) calculate(ins bpf.RawInstruction) (uint32, bool) {
	v := m.operand(ins)
	switch operation(ins.Op) {
	case opAdd:
		return m.a + v, true
	case opSub:
		return m.a - v, true
	case opMul:
		return m.a * v, true
	case opDiv:
		return m.a / max(v, 1), v != 0
	case opMod:
		return m.a % max(v, 1), v != 0
	case opAnd:
		return m.a & v, true
	case opOr:
		return m.a | v, true
	case opXor:
		return m.a ^ v, true
	case opNeg:
		return -m.a, true
	case opLsh:
		if m.kernel {
			v &= 31
		}
		return m.a << v, true
	default:
		if m.kernel {
			v &= 31
		}
		return m.a >> v, true
	}
}

// The interpreter itself is compared with x/net's, which knows neither tags nor the kernel.
func TestInterpreterAgreesWithAnother(t *testing.T) {
	for _, expr := range expressions {
		raw := compiled(t, expr)
		disassembled, all := bpf.Disassemble(raw)
		require.True(t, all, expr)
		if slices.ContainsFunc(raw, func(ins bpf.RawInstruction) bool { return ins.Op == ld|sizeW|modeAbs && ins.K >= negative }) {
			continue // it takes that for ancillary data
		}
		vm, err := bpf.NewVM(disassembled)
		require.NoError(t, err, expr)
		for _, p := range packets() {
			want, err := vm.Run(p.wire())
			require.NoError(t, err)
			require.Equal(t, uint32(want), onWire(raw, p.wire()), "%s on % x", expr, p.wire())
		}
	}
}
