// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"context"
	"encoding/binary"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/net/bpf"
)

// rcbpf is the compiler that `make -C lib` builds.
func rcbpf(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("../out/bin/rcbpf")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if path, err = exec.LookPath(compilerName); err != nil {
		t.Skip("needs rcbpf: run `make -C lib` first")
	}
	return path
}

var programs sync.Map // compiled expressions, by their text

func compiled(t testing.TB, expr string) []bpf.RawInstruction {
	t.Helper()
	if prog, ok := programs.Load(expr); ok {
		return prog.([]bpf.RawInstruction)
	}
	prog, err := Compiler{Path: rcbpf(t)}.Compile(context.Background(), expr, 65535)
	if err != nil {
		t.Fatalf("%q: %v", expr, err)
	}
	programs.Store(expr, prog)
	return prog
}

// expressions that people use, and ones that reach into the tag from every side.
var expressions = []string{
	"",
	"ip",
	"ip6",
	"arp",
	"tcp port 80",
	"udp port 53 or tcp port 443",
	"tcp portrange 1000-2000",
	"host 10.0.0.1",
	"src net 10.0.0.0/8 and not dst port 22",
	"ip6 host 2001:db8::1",
	"icmp or icmp6",
	"sctp",
	"ether host 02:00:00:00:00:01",
	"ether multicast or broadcast",
	"ether proto 0x88cc",
	"ether proto 0x8100",
	"ether proto 0x86dd",
	"vlan",
	"vlan 100",
	"not vlan",
	"vlan 100 and ip6",
	"vlan and tcp port 80",
	"vlan 100 and vlan 200",
	"vlan and vlan and udp",
	"ip or (vlan and ip)",
	"tcp port 80 or (vlan and tcp port 80)",
	"mpls",
	"pppoes",
	"len > 100",
	"less 64 or greater 500",
	"len = 60",
	"tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
	"tcp[((tcp[12] & 0xf0) >> 2)] = 0x47",
	"ip[2:2] > 100 and ip[0] & 0xf != 5",
	"ip[6:2] & 0x1fff != 0",
	"ip6[6] = 17",
	"ether[9] = 3", "ether[11] > 1", "ether[12] = 8", "ether[13] = 0", "ether[14] & 0xf = 0", "ether[15] = 100", "ether[16] = 8",
	"ether[10:2] = 1", "ether[11:2] = 0x181", "ether[12:2] = 0x8100", "ether[13:2] = 0", "ether[14:2] = 100",
	"ether[15:2] = 0x6408", "ether[16:2] = 0x800",
	"ether[8:4] = 1", "ether[9:4] = 0x181", "ether[10:4] = 0x18100", "ether[11:4] = 0x1810000", "ether[12:4] = 0x81000064",
	"ether[13:4] = 0x6408", "ether[14:4] = 0x640800", "ether[15:4] = 0x64080045", "ether[16:4] = 0x08004500",
	"ether[ether[20] & 0xf] = 0x45", "ether[ether[20] & 0xf : 2] > 100", "ether[ether[20] & 0xf : 4] > 100",
	"ether[(ether[20] & 0x1f) + 3 : 4] & 1 != 0",
	"ether[ether[20:4] : 4] = 0",
	"ether[0xfffff02c : 4] = 100",
	"(1 << ether[20]) & 0x10000 != 0",
	"(ether[16:4] >> (ether[21] & 0x3f)) != 0",
	"len - ether[20] > 40",
	"ether[len - 4 : 4] != 0",
	"len / ether[20] > 1",
}

type builder struct{ random *rand.Rand }

func (b builder) payload(n int) []byte {
	p := make([]byte, n)
	b.random.Read(p)
	return p
}

func (b builder) pick(values ...uint16) uint16 { return values[b.random.Intn(len(values))] }

func (b builder) ipv4() []byte {
	options := 4 * b.random.Intn(4)
	p := b.payload(20 + options + 40 + b.random.Intn(80))
	p[0] = 0x45 + byte(options/4)
	copy(p[6:], []byte{0, byte(b.random.Intn(2) * b.random.Intn(2))})
	p[9] = byte(b.pick(1, 6, 17, 132, 47))
	copy(p[12:], []byte{10, 0, 0, byte(1 + b.random.Intn(2))})
	b.ports(p[20+options:])
	return p
}

func (b builder) ipv6() []byte {
	p := b.payload(40 + 40 + b.random.Intn(80))
	p[0] = 0x60
	p[6] = byte(b.pick(6, 17, 58, 132))
	copy(p[8:], []byte{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})
	b.ports(p[40:])
	return p
}

func (b builder) ports(p []byte) {
	binary.BigEndian.PutUint16(p, b.pick(80, 443, 53, 1500, 22, 40000))
	binary.BigEndian.PutUint16(p[2:], b.pick(80, 443, 53, 1500, 22, 40000))
}

// ethernet makes a frame with the given number of tags.
func (b builder) ethernet(tags int) []byte {
	frame := []byte{2, 0, 0, 0, 0, byte(b.random.Intn(3)), 2, 0, 0, 0, 0, byte(b.random.Intn(3))}
	if b.random.Intn(8) == 0 {
		frame[0] = 0xff
	}
	for range tags {
		frame = binary.BigEndian.AppendUint16(frame, b.pick(0x8100, 0x88a8))
		frame = binary.BigEndian.AppendUint16(frame, b.pick(0, 100, 200, 0xe064, uint16(b.random.Intn(65536))))
	}
	switch b.random.Intn(4) {
	case 0, 1:
		return append(append(frame, 0x08, 0x00), b.ipv4()...)
	case 2:
		return append(append(frame, 0x86, 0xdd), b.ipv6()...)
	default:
		frame = binary.BigEndian.AppendUint16(frame, b.pick(0x0806, 0x88cc, 0x8847, 0x8864))
		return append(frame, b.payload(46)...)
	}
}

// packets are as Linux holds them: with no, one and two tags, whole and cut short. The same each time.
var packets = sync.OnceValue(func() []packet {
	b := builder{rand.New(rand.NewSource(2))}
	var all []packet
	for i := range 600 {
		wire := b.ethernet(i % 4)
		if i%8 >= 4 {
			wire = wire[:14+b.random.Intn(len(wire)-14)]
		}
		all = append(all, strip(wire))
	}
	return all
})
