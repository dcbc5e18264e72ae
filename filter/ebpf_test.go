// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"errors"
	"math/rand"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
)

// loadEBPF has the running kernel verify a filter in its place, as a function of a tc program. With a tag, that program
// first puts the tag beside the packet, which a test run cannot ask for.
func loadEBPF(t testing.TB, prog []bpf.RawInstruction, tag *tag) *ebpf.Program {
	t.Helper()
	body, err := EBPF(prog)
	require.NoError(t, err)
	main := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1).WithSymbol("main")}
	if tag != nil {
		main = append(main,
			asm.Mov.Imm(asm.R2, int32(uint32(tag.tpid)>>8|uint32(tag.tpid&0xff)<<8)), // network order
			asm.Mov.Imm(asm.R3, int32(tag.tci)),
			asm.FnSkbVlanPush.Call(),
		)
	}
	main = append(main, asm.Mov.Reg(asm.R1, asm.R6), asm.Call.Label("ringcap_filter"), asm.Return())
	body[0] = body[0].WithSymbol("ringcap_filter")
	loaded, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "filter_test", Type: ebpf.SchedCLS, License: "GPL", Instructions: append(main, body...),
	})
	skipWithoutRights(t, err)
	require.NoError(t, err)
	t.Cleanup(func() { loaded.Close() })
	return loaded
}

func skipWithoutRights(t testing.TB, err error) {
	t.Helper()
	if os.Geteuid() != 0 && errors.Is(err, os.ErrPermission) {
		t.Skip("needs root to load eBPF programs")
	}
}

func runEBPF(t testing.TB, loaded *ebpf.Program, data []byte) uint32 {
	t.Helper()
	verdict, err := loaded.Run(&ebpf.RunOptions{Data: data})
	require.NoError(t, err, "% x", data)
	return verdict
}

// runnable reports whether the kernel makes a packet of the data for a test run: it wants a whole IP header if the
// ethertype is that of IP.
func runnable(data []byte) bool {
	if len(data) < 15 {
		return false
	}
	switch data[12] {
	case 0x08:
		return len(data) >= 34
	case 0x86:
		return len(data) >= 54
	}
	return true
}

func TestEBPFGivesTheKernelsVerdict(t *testing.T) {
	tags := []*tag{nil, {0x8100, 100}, {0x88a8, 0xe0c8}}
	for _, expr := range expressions {
		t.Run(expr, func(t *testing.T) {
			kernel, err := Kernel(compiled(t, expr))
			require.NoError(t, err)
			for _, tag := range tags {
				loaded := loadEBPF(t, kernel, tag)
				for i, p := range packets() {
					if i%4 != 0 && tag == nil || !runnable(p.data) {
						continue
					}
					p.tag = tag
					require.Equal(t, onWire(compiled(t, expr), p.wire()), runEBPF(t, loaded, p.data), "tag %+v, data % x", tag, p.data)
				}
			}
		})
	}
}

func TestEBPFOfRandomPrograms(t *testing.T) {
	random := rand.New(rand.NewSource(5))
	for range 500 {
		kernel, err := Kernel(randomProgram(random))
		require.NoError(t, err)
		tag := []*tag{nil, {0x8100, uint16(random.Intn(65536))}}[random.Intn(2)]
		loaded := loadEBPF(t, kernel, tag)
		for range 20 {
			p := packets()[random.Intn(len(packets()))]
			if !runnable(p.data) {
				continue
			}
			p.tag = tag
			require.Equal(t, inKernel(kernel, p), runEBPF(t, loaded, p.data), "%+v: tag %+v, data % x", kernel, tag, p.data)
		}
		loaded.Close()
	}
}

func TestEBPFCanBePutAnywhere(t *testing.T) {
	body, err := EBPF(compiled(t, "tcp port 80"))
	require.NoError(t, err)
	for i, ins := range body {
		require.Empty(t, ins.Symbol(), "instruction %d", i)
		require.Empty(t, ins.Reference(), "instruction %d", i)
		require.EqualValues(t, 1, ins.Width(), "instruction %d", i)
	}
}

// longProgram makes the longest program of loads and jumps that the kernel loads.
func longProgram(load bpf.RawInstruction) []bpf.RawInstruction {
	var prog []bpf.RawInstruction
	for i := uint32(0); len(prog) < MaxInstructions-2; i++ {
		load.K++
		prog = append(prog, load, bpf.RawInstruction{Op: jmp | opJeq, K: i, Jt: uint8(min(i%2, MaxInstructions-uint32(len(prog))-4))})
	}
	return append(prog, bpf.RawInstruction{Op: retK}, bpf.RawInstruction{Op: retK, K: 1})
}

// The verifier follows the longest programs in both copies.
func TestEBPFOfTheLongestPrograms(t *testing.T) {
	for name, load := range map[string]bpf.RawInstruction{
		"farther and farther": {Op: ld | sizeB | modeAbs, K: 10},
		"header lengths":      {Op: ldx | sizeB | modeMsh, K: 10},
		"relative to X":       {Op: ld | sizeH | modeInd, K: 10},
	} {
		t.Run(name, func(t *testing.T) {
			prog := longProgram(load)
			require.NoError(t, validate(prog))
			loaded := loadEBPF(t, prog, nil)
			data := make([]byte, 3000)
			require.Equal(t, inKernel(prog, packet{data: data}), runEBPF(t, loaded, data))
		})
	}
}

func TestEBPFRefuses(t *testing.T) {
	_, err := EBPF(nil)
	require.ErrorIs(t, err, ErrInvalidProgram)
	_, err = EBPF([]bpf.RawInstruction{{Op: ld | sizeW | modeAbs, K: adOff + 56}, {Op: retA}}) // a random number
	require.ErrorIs(t, err, ErrNotRepresentable)
	require.ErrorContains(t, err, "instruction 0: ")
	long := []bpf.RawInstruction{{Op: jmp | opJa, K: MaxInstructions - 2}}
	long[0].Op, long[0].Jt, long[0].Jf, long[0].K = jmp|opJeq, 0, 0, 0
	for len(long) < MaxInstructions-1 {
		long = append(long, bpf.RawInstruction{Op: ld | sizeW | modeAbs, K: 20}) // each may reject: a long way
	}
	_, err = EBPF(append(long, bpf.RawInstruction{Op: retA}))
	require.ErrorIs(t, err, ErrNotRepresentable)
	require.ErrorContains(t, err, "at most 32767")
}
