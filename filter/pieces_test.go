// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"encoding/binary"
	"math/rand"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Packets in pieces, which a test run cannot make at tc. They go through a pair of interfaces. A packet socket makes a
// packet of more than a page with as short a linear part as it is asked for.

const (
	piecesLen    = 4400 // bytes of a packet that is in pieces
	piecesAbove  = 4096 // bytes that no other packet has: the stack sends packets of its own
	vnetHeader   = 10   // bytes of struct virtio_net_hdr
	vnetHdrLenAt = 2    // hdr_len in it
	threeTags    = 26   // bytes of an Ethernet header with three tags
)

type road struct {
	t    testing.TB
	out  int // socket
	in   netlink.Link
	seen *ebpf.Map // struct sighting
}

// sighting is what the program on the receiving interface saw last.
type sighting struct{ Count, Verdict, Linear uint32 }

// newRoad makes two interfaces in a network namespace of their own.
func newRoad(t testing.TB) *road {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for interfaces")
	}
	enterNamespace(t)
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "out", MTU: 2 * piecesLen}, PeerName: "in"}
	require.NoError(t, netlink.LinkAdd(pair))
	in, err := netlink.LinkByName("in")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetUp(pair))
	require.NoError(t, netlink.LinkSetUp(in))
	seen, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 12, MaxEntries: 1})
	require.NoError(t, err)
	t.Cleanup(func() { seen.Close() })
	return &road{t, packetSocket(t, pair.Attrs().Index), in, seen}
}

// enterNamespace moves the test's thread to a new network namespace. The thread ends with the test.
func enterNamespace(t testing.TB) {
	t.Helper()
	runtime.LockOSThread()
	require.NoError(t, unix.Unshare(unix.CLONE_NEWNET))
}

func packetSocket(t testing.TB, ifindex int) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1))
	// The interface's queue, which would drop packets at first, starts later than the interface.
	require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1))
	require.NoError(t, unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifindex}))
	return fd
}

// attach has the filter decide on long packets that arrive.
func (r *road) attach(kernel []bpf.RawInstruction) link.Link {
	r.t.Helper()
	body, err := EBPF(kernel)
	require.NoError(r.t, err)
	body[0] = body[0].WithSymbol("ringcap_filter")
	main := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1).WithSymbol("main"),
		asm.LoadMem(asm.R2, asm.R6, skbLen, asm.Word),
		asm.JLE.Imm(asm.R2, piecesAbove, "done"),
		asm.LoadMem(asm.R7, asm.R6, skbData, asm.Word),
		asm.LoadMem(asm.R8, asm.R6, skbDataEnd, asm.Word),
		asm.Sub.Reg(asm.R8, asm.R7),
		asm.Call.Label("ringcap_filter"),
		asm.LoadMapValue(asm.R1, r.seen.FD(), 0),
		asm.StoreMem(asm.R1, 4, asm.R0, asm.Word),
		asm.StoreMem(asm.R1, 8, asm.R8, asm.Word),
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word),
		asm.Add.Imm(asm.R2, 1),
		asm.StoreMem(asm.R1, 0, asm.R2, asm.Word),
		asm.Mov.Imm(asm.R0, -1).WithSymbol("done"),
		asm.Return(),
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "pieces_test", Type: ebpf.SchedCLS, License: "GPL", Instructions: append(main, body...),
	})
	require.NoError(r.t, err)
	defer program.Close()
	attached, err := link.AttachTCX(link.TCXOptions{Interface: r.in.Attrs().Index, Program: program, Attach: ebpf.AttachTCXIngress})
	require.NoError(r.t, err)
	return attached
}

// send returns what the filter makes of the packet with that many linear bytes.
func (r *road) send(wire []byte, linear int) sighting {
	r.t.Helper()
	var before, after sighting
	require.NoError(r.t, r.seen.Lookup(uint32(0), &before))
	message := make([]byte, vnetHeader, vnetHeader+len(wire))
	binary.NativeEndian.PutUint16(message[vnetHdrLenAt:], uint16(linear))
	_, err := unix.Write(r.out, append(message, wire...))
	require.NoError(r.t, err)
	for end := time.Now().Add(time.Minute); ; {
		require.NoError(r.t, r.seen.Lookup(uint32(0), &after))
		if after.Count == before.Count+1 {
			return after
		}
		require.True(r.t, time.Now().Before(end), "the packet did not arrive")
		runtime.Gosched()
	}
}

func (r *road) checkAll(kernel []bpf.RawInstruction, random *rand.Rand, count int) {
	r.t.Helper()
	attached := r.attach(kernel)
	defer attached.Close()
	for range count {
		p := packets()[random.Intn(len(packets()))]
		p.data = append(append([]byte{}, p.data...), make([]byte, piecesLen-len(p.data))...)
		linear := 14 + random.Intn(70)
		got := r.send(p.wire(), linear)
		require.LessOrEqual(r.t, int(got.Linear), max(linear, threeTags)) // the stack makes the tags linear
		require.Equal(r.t, inKernel(kernel, p), got.Verdict, "%+v: tag %+v, %d linear of % x", kernel, p.tag, linear, p.data[:120])
	}
}

func TestEBPFOfPacketsInPieces(t *testing.T) {
	t.Run("in pieces", func(t *testing.T) {
		r := newRoad(t)
		random := rand.New(rand.NewSource(6))
		for _, expr := range expressions {
			kernel, err := Kernel(compiled(t, expr))
			require.NoError(t, err)
			r.checkAll(kernel, random, 25)
		}
		for range 200 {
			kernel, err := Kernel(randomProgram(random))
			require.NoError(t, err)
			r.checkAll(kernel, random, 5)
		}
	})
}

// Every linear part around every load, by one byte.
func TestEBPFAtTheEndOfTheLinearPart(t *testing.T) {
	t.Run("at the end", func(t *testing.T) {
		r := newRoad(t)
		wire := builder{rand.New(rand.NewSource(7))}.payload(piecesLen)
		copy(wire[12:], []byte{0x88, 0xb5})
		for _, prog := range loadsOf(30) {
			attached := r.attach(prog)
			for linear := 26; linear <= 36; linear++ {
				got := r.send(wire, linear)
				require.EqualValues(t, linear, got.Linear)
				require.Equal(t, inKernel(prog, packet{data: wire}), got.Verdict, "%+v: %d linear", prog, linear)
			}
			attached.Close()
		}
	})
}

// loadsOf returns programs that load what is at an offset, and a little after that, in every way.
func loadsOf(at uint32) [][]bpf.RawInstruction {
	end := []bpf.RawInstruction{{Op: alu | opOr | srcK, K: 1 << 30}, {Op: retA}} // never 0
	var all [][]bpf.RawInstruction
	for _, size := range []uint16{sizeB, sizeH, sizeW} {
		absolute := bpf.RawInstruction{Op: ld | size | modeAbs, K: at}
		indirect := bpf.RawInstruction{Op: ld | size | modeInd, K: at - 10}
		x := bpf.RawInstruction{Op: ldx | modeImm, K: 10}
		for _, loads := range [][]bpf.RawInstruction{
			{absolute}, {x, indirect}, {absolute, x, indirect}, {x, indirect, absolute},
			{{Op: ld | sizeB | modeAbs, K: at + 2}, absolute}, {absolute, {Op: ld | sizeB | modeAbs, K: at + 2}},
		} {
			all = append(all, append(append([]bpf.RawInstruction{}, loads...), end...))
		}
	}
	return append(all, append([]bpf.RawInstruction{{Op: ldx | sizeB | modeMsh, K: at}, {Op: txa}}, end...))
}

// Every length of a packet around every load.
func TestEBPFAtThePacketsEnd(t *testing.T) {
	wire := builder{rand.New(rand.NewSource(8))}.payload(64)
	copy(wire[12:], []byte{0x88, 0xb5})
	for _, prog := range loadsOf(30) {
		loaded := loadEBPF(t, prog, nil)
		for end := 15; end <= 40; end++ {
			require.Equal(t, inKernel(prog, packet{data: wire[:end]}), runEBPF(t, loaded, wire[:end]), "%+v: %d bytes", prog, end)
		}
	}
}
