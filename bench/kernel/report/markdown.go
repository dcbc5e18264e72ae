// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/ringcap/ringcap/bench/report"
)

var sizes = []int{report.Smallest, 512, 1500}

// reader is one of the published ones.
type reader struct {
	label  string
	who    string
	queues int
}

var readers = []reader{
	{"module, 1 queue", module, 1},
	{"module, 4 queues by flow", module, 4},
	{"eBPF engine, 1 queue", ebpf, 1},
	{"eBPF engine, 4 queues by flow", ebpf, 4},
	{"AF_PACKET TPACKET_V3", sockets, 1},
	{"AF_PACKET TPACKET_V3, fanout by hash over 4", fanout, 4},
	{"AF_XDP, copy mode, in the driver", "af-xdp-copy", 1},
	{"AF_XDP, copy mode, generic", "af-xdp-generic", 1},
}

func markdown(result report.Result) string {
	t := report.NewTables(result)
	for _, on := range result.Machines {
		t.Table([]string{on.Setting.String(), "60 bytes", "512 bytes", "1500 bytes"}, bySize(t, on.Setting))
	}
	t.Table([]string{"60 bytes, 64 possible processors", "module", "eBPF engine", "TPACKET_V3"}, byCase(t))
	t.Goals()
	t.Table([]string{"60 bytes, 6.1", "64 possible processors", "8", "1"}, byPossible(t))
	t.Dominators(plain(many, module, 1), plain(many, module, 4), plain(many, ebpf, 1), plain(many, sockets, 1),
		plain(many, fanout, 4), plain(manyOn612, ebpf, 1), plain(fourAtOnce, module, 1), plain(fourAtOnce, module, 4),
		plain(fourAtOnce, ebpf, 1), plain(one, module, 1))
	return t.String()
}

func bySize(t *report.Tables, on report.Setting) []report.Line {
	var lines []report.Line
	for _, r := range readers {
		l := report.Line{Label: r.label}
		for _, size := range sizes {
			l.Cells = append(l.Cells, t.Cell(plain(on, r.who, r.queues), size))
		}
		lines = append(lines, l)
	}
	copied := report.Line{Label: "of TPACKET_V3's, the copy of the packet"}
	for _, size := range sizes {
		row, _ := t.Row(plain(on, sockets, 1), size)
		copied.Cells = append(copied.Cells, fmt.Sprintf("%.0f", row.InstructionsCopy))
	}
	return append(lines, copied)
}

func byPossible(t *report.Tables) []report.Line {
	var lines []report.Line
	for _, r := range readers {
		l := report.Line{Label: r.label}
		for _, on := range []report.Setting{many, eight, one} {
			l.Cells = append(l.Cells, t.Cell(plain(on, r.who, r.queues), report.Smallest))
		}
		lines = append(lines, l)
	}
	return lines
}

func byCase(t *report.Tables) []report.Line {
	cases := []struct {
		label, what string
		size        int
	}{
		{"through libpcap", "libpcap", report.Smallest},
		{"BPF `tcp port 80`, traffic that passes", passes, report.Smallest},
		{"the same, traffic that does not", rejects, report.Smallest},
		{"no consumer attached", "unattended", report.Smallest},
		{"10 wildcard rules, 8 shapes", "10-wildcard-rules", report.Smallest},
		{"1,000 wildcard rules, 8 shapes", "1000-wildcard-rules", report.Smallest},
		{"4,096 wildcard rules, 8 shapes", "4096-wildcard-rules", report.Smallest},
		{"10,000 wildcard rules, 8 shapes", "10000-wildcard-rules", report.Smallest},
		{"1,000 wildcard rules, 8 shapes, of the traffic's networks", "1000-near-rules", report.Smallest},
		{"1,000 exact rules", "1000-exact-rules", report.Smallest},
		{"64 flows learnt as exact rules", "learnt-flows", report.Smallest},
		{"64 flows to learn, no room", "flows-not-learnt", report.Smallest},
		{"64 flows, all shunted by the consumer", "shunted", report.Smallest},
		{"64 flows, and 64 others shunted", "others-shunted", report.Smallest},
		{"1,000 payload patterns", "1000-patterns", report.Smallest},
		{"1,000 payload patterns, 512 bytes", "1000-patterns", 512},
		{"1,000 payload patterns, 1500 bytes", "1000-patterns", 1500},
	}
	var lines []report.Line
	for _, c := range cases {
		l := report.Line{Label: c.label}
		for _, who := range []string{module, ebpf, sockets} {
			l.Cells = append(l.Cells, t.Cell(with(c.what, who), c.size))
		}
		lines = append(lines, l)
	}
	return lines
}
