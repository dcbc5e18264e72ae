// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math/rand"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

func newXDP(t testing.TB, instructions asm.Instructions) *ebpf.Program {
	t.Helper()
	loaded, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "xdp_filter_test", Type: ebpf.XDP, Flags: unix.BPF_F_XDP_HAS_FRAGS, License: "GPL", Instructions: instructions,
	})
	skipWithoutRights(t, err)
	require.NoError(t, err)
	return loaded
}

// loadXDP has the running kernel verify a filter as a function of an XDP program.
func loadXDP(t testing.TB, prog []bpf.RawInstruction) *ebpf.Program {
	t.Helper()
	body, err := XDP(prog)
	require.NoError(t, err)
	body[0] = body[0].WithSymbol("ringcap_xdp_filter")
	main := asm.Instructions{asm.Call.Label("ringcap_xdp_filter").WithSymbol("main"), asm.Return()}
	return newXDP(t, append(main, body...))
}

func TestXDPGivesTheWiresVerdict(t *testing.T) {
	for _, expr := range expressions {
		t.Run(expr, func(t *testing.T) {
			kernel, err := Kernel(compiled(t, expr))
			require.NoError(t, err)
			loaded := loadXDP(t, kernel)
			defer loaded.Close()
			for _, p := range packets() {
				wire := p.wire()
				require.Equal(t, onWire(compiled(t, expr), wire), runEBPF(t, loaded, wire), "% x", wire)
			}
		})
	}
}

// linearPart returns how many bytes of a long frame are contiguous in a test run.
func linearPart(t testing.TB, frame []byte) uint32 {
	t.Helper()
	loaded := newXDP(t, asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, xdpData, asm.Word),
		asm.LoadMem(asm.R0, asm.R1, xdpDataEnd, asm.Word),
		asm.Sub.Reg(asm.R0, asm.R2),
		asm.Return(),
	})
	defer loaded.Close()
	return runEBPF(t, loaded, frame)
}

// Every load around the end of the linear part, by one byte.
func TestXDPAtTheEndOfTheLinearPart(t *testing.T) {
	frame := builder{rand.New(rand.NewSource(9))}.payload(6000)
	linear := linearPart(t, frame)
	require.Less(t, linear, uint32(len(frame)))
	for at := linear - 6; at < linear+3; at++ {
		for _, prog := range loadsOf(at) {
			loaded := loadXDP(t, prog)
			require.Equal(t, inKernel(prog, packet{data: frame}), runEBPF(t, loaded, frame), "%+v: %d linear", prog, linear)
			loaded.Close()
		}
	}
}
