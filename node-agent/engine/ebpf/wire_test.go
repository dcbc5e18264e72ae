// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

const (
	slotOutgoing = 1 << 0
	slotHashed   = 1 << 4
	slotVLAN     = 1 << 1
	slotFragment = 1 << 3
	slotMerged   = 1 << 6
)

// tagged puts VLAN tags into a frame, given as TPID << 16 | TCI.
func tagged(frame []byte, tags ...uint32) []byte {
	out := append([]byte(nil), frame[:12]...)
	for _, tag := range tags {
		out = binary.BigEndian.AppendUint32(out, tag)
	}
	return append(out, frame[12:]...)
}

func TestBytesAreThoseOnTheWire(t *testing.T) {
	arp := make([]byte, 60)
	copy(arp, []byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1})
	llc := make([]byte, 60)
	copy(llc, []byte{1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 38, 0x42, 0x42, 3})
	large := frame(7, 65000)
	frames := map[string]struct {
		frame      []byte
		tpid, tci  uint16
		l3, l4     uint16
		proto      uint16
		ipProtocol uint8
		flags      uint8
	}{
		"plain":         {frame(1, 60), 0, 0, 14, 34, 0x0800, 17, 0},
		"802.1Q":        {tagged(frame(2, 60), 0x8100<<16|0x6005), 0x8100, 0x6005, 18, 38, 0x0800, 17, slotVLAN},
		"priority tag":  {tagged(frame(2, 60), 0x8100<<16|0xe000), 0x8100, 0xe000, 18, 38, 0x0800, 17, slotVLAN},
		"empty tag":     {tagged(frame(2, 60), 0x8100<<16), 0x8100, 0, 18, 38, 0x0800, 17, slotVLAN},
		"802.1ad":       {tagged(frame(3, 60), 0x88a8<<16|100), 0x88a8, 100, 18, 38, 0x0800, 17, slotVLAN},
		"QinQ":          {tagged(frame(4, 60), 0x88a8<<16|100, 0x8100<<16|200), 0x88a8, 100, 22, 42, 0x0800, 17, slotVLAN},
		"two 802.1Q":    {tagged(frame(5, 60), 0x8100<<16|1, 0x8100<<16|2), 0x8100, 1, 22, 42, 0x0800, 17, slotVLAN},
		"three tags":    {tagged(frame(6, 60), 0x88a8<<16|1, 0x8100<<16|2, 0x8100<<16|3), 0x88a8, 1, 26, 46, 0x0800, 17, slotVLAN},
		"shortest":      {frame(1, 60)[:46], 0, 0, 14, 34, 0x0800, 17, 0},
		"64 KiB":        {large, 0, 0, 14, 34, 0x0800, 17, 0},
		"64 KiB tagged": {tagged(large[:64990], 0x8100<<16|9), 0x8100, 9, 18, 38, 0x0800, 17, slotVLAN},
		"ARP":           {arp, 0, 0, 0, 0, 0x0806, 0, 0},
		"LLC":           {llc, 0, 0, 0, 0, 0, 0, 0},
		"IPv6":          {ipv6Frame(17, []byte{0, 1, 0, 2, 0, 8, 0, 0}), 0, 0, 14, 54, 0x86dd, 17, 0},
		"IPv6 hop by hop, TCP": {ipv6Frame(0, append([]byte{6, 0, 1, 4, 0, 0, 0, 0}, make([]byte, 20)...)), 0, 0, 14, 62, 0x86dd,
			6, 0},
		"IPv6 fragment": {ipv6Frame(44, append([]byte{17, 0, 0, 8, 0, 0, 0, 7}, make([]byte, 20)...)), 0, 0, 14, 0, 0x86dd, 17,
			slotFragment},
		"IPv4 fragment": {fragment(frame(9, 80), 100), 0, 0, 14, 0, 0x0800, 17, slotFragment},
	}
	for _, mode := range []string{"tcx", "clsact"} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t)
			e := l.engine(l.attachedBy(mode))
			l.apply(e, withLongHeader(l.plan(1)))
			c := l.consume("mirror", 0)
			for name, want := range frames {
				before := time.Now()
				l.send(want.frame)
				p := l.collect(c, 1)[0]
				require.True(t, bytes.Equal(want.frame, p.data), "%s: sent\n% x, received\n% x", name, head(want.frame), head(p.data))
				taken := time.Unix(0, int64(p.slot.Ts))
				require.WithinRange(t, taken, before.Add(-time.Millisecond), time.Now().Add(time.Millisecond), name)
				require.Equal(t, slot{
					Ts: p.slot.Ts, Len: uint32(len(want.frame)), Caplen: uint32(len(want.frame)), Hash: p.slot.Hash,
					Ifindex: uint32(l.tapped.Attrs().Index), VLANTCI: want.tci, VLANTPID: want.tpid, Flags: want.flags | slotHashed,
					HdrLen: 48, L3Off: want.l3, L4Off: want.l4, L3Proto: want.proto, L4Proto: want.ipProtocol,
				}, p.slot, name)
			}
		})
	}
}

func head(b []byte) []byte { return b[:min(len(b), 64)] }

func ipv6Frame(next byte, payload []byte) []byte {
	f := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(payload)), next, 64}
	for host := range 2 {
		f = append(f, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(host+1))
	}
	return append(f, payload...)
}

// fragment makes an IPv4 frame a later fragment.
func fragment(frame []byte, offset uint16) []byte {
	binary.BigEndian.PutUint16(frame[14+6:], offset)
	return frame
}

func TestTransmitDirection(t *testing.T) {
	for _, mode := range []string{"tcx", "clsact"} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t)
			e := l.engine(l.attachedBy(mode))
			plan := l.plan(1)
			plan.Rings[0].Taps = []capture.Tap{{Interface: "sender", Index: l.sender.Attrs().Index, Direction: capture.Both}}
			l.apply(e, plan)
			require.Equal(t, plan.Rings[0].Taps, l.observe(e).Rings["mirror"].Taps)
			c := l.consume("mirror", 0)

			back := l.packetSocket(l.tapped)
			for _, f := range []outgoing{{l.socket, frame(1, 60)}, {back, frame(2, 60)}} {
				_, err := unix.Write(f.socket, f.frame)
				require.NoError(t, err)
			}
			l.collectSet(c, map[string]uint8{string(frame(1, 60)): slotOutgoing, string(frame(2, 60)): 0})
			if mode == "tcx" {
				// As with a VLAN device, the tag is in the packet's metadata when it reaches the tap.
				l.pushTag(l.sender, 0x8100, 5)
				l.send(frame(3, 60))
				l.collectSet(c, map[string]uint8{string(tagged(frame(3, 60), 0x8100<<16|5)): slotOutgoing | slotVLAN})
			}
		})
	}
}

// A packet that a virtual machine sends for a device to segment, or that GRO merges, is not a packet of a wire.
func TestMergedSegments(t *testing.T) {
	for _, mode := range []string{"tcx", "clsact"} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t)
			e := l.engine(l.attachedBy(mode))
			l.apply(e, l.plan(1))
			c := l.consume("mirror", 0)

			offloading := l.packetSocket(l.sender)
			require.NoError(t, unix.SetsockoptInt(offloading, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1))
			segments := frame(1, 3000)
			segments[14+9], segments[34+12] = unix.IPPROTO_TCP, 5<<4
			// struct virtio_net_hdr: the checksum is missing, TCP over IPv4, headers of 54 bytes, segments of 1,000.
			header := []byte{1, 1, 54, 0, 0xe8, 0x03, 34, 0, 16, 0}
			_, err := unix.Write(offloading, append(header, segments...))
			require.NoError(t, err)
			require.EqualValues(t, slotMerged, l.collect(c, 1)[0].slot.Flags)
			l.send(frame(2, 60))
			require.Zero(t, l.collect(c, 1)[0].slot.Flags)
		})
	}
}

type outgoing struct {
	socket int
	frame  []byte
}

// collectSet requires packets with these bytes and flags, in any order.
func (l *lab) collectSet(c *consumer, want map[string]uint8) {
	l.t.Helper()
	got := map[string]uint8{}
	for _, p := range l.collect(c, len(want)) {
		got[string(p.data)] = p.slot.Flags &^ slotHashed
	}
	require.Equal(l.t, want, got)
}

// pushTag tags packets that leave by an interface, before the ring's tap sees them.
func (l *lab) pushTag(out netlink.Link, tpid uint16, id int32) {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R2, int32(tpid>>8|tpid<<8)), asm.Mov.Imm(asm.R3, id), asm.FnSkbVlanPush.Call(),
			asm.Mov.Imm(asm.R0, -1), asm.Return(),
		},
	})
	require.NoError(l.t, err)
	defer program.Close()
	pushing, err := link.AttachTCX(link.TCXOptions{
		Interface: out.Attrs().Index, Program: program, Attach: ebpf.AttachTCXEgress, Anchor: link.Head(),
	})
	require.NoError(l.t, err)
	l.t.Cleanup(func() { pushing.Close() })
}

func TestSnapLength(t *testing.T) {
	for n, snap := range []uint32{1, 15, 16, 17, 64, 255, 256, 257, 1514, 65535, 1, 12, 13, 16, 17, 257} {
		long := n < 10
		t.Run(fmt.Sprint(snap, long), func(t *testing.T) {
			l := newLab(t)
			e := l.engine()
			plan := l.plan(1)
			plan.Rings[0].SnapLen = snap
			if long {
				plan = withLongHeader(plan)
			}
			l.apply(e, plan)
			c := l.consume("mirror", 0)
			sent := [][]byte{frame(1, 60), frame(2, 1514), tagged(frame(3, 1514), 0x8100<<16|7)}
			l.send(sent...)
			var account capture.QueueStats
			for i, p := range l.collect(c, len(sent)) {
				want := sent[i][:min(len(sent[i]), int(snap))]
				account.DeliveredBytes += uint64(len(want))
				if cut := uint64(len(sent[i]) - len(want)); cut > 0 {
					account.Truncated++
					account.TruncatedBytes += cut
				}
				require.Equal(t, want, p.data)
				require.EqualValues(t, len(sent[i]), p.slot.Len)
				require.Equal(t, long, p.slot.L4Off != 0, "parsed beyond the snap length")
			}
			stats := l.settled(e, "mirror", uint64(len(sent))).Clusters["mirror"].Queues[0]
			require.Equal(t, account, capture.QueueStats{
				DeliveredBytes: stats.DeliveredBytes, Truncated: stats.Truncated, TruncatedBytes: stats.TruncatedBytes,
			})
		})
	}
}
