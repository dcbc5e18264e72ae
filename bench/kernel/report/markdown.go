// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/ringcap/ringcap/bench/report"
)

var sizes = []int{report.Smallest, 512, 1500}

func markdown(result report.Result) string {
	t := report.NewTables(result)
	t.Table([]string{"reader", "60 bytes", "512 bytes", "1500 bytes"}, bySize(t))
	t.Table([]string{"60 bytes", "ringcap, 1 queue", "TPACKET_V3"}, byCase(t))
	t.Goals()
	t.Dominators(oneQueue, fourQueues, quick, tpacket, fanout)
	return t.String()
}

func bySize(t *report.Tables) []report.Line {
	readers := []struct {
		label string
		key   report.Key
	}{
		{"ringcap, 1 queue", oneQueue},
		{"ringcap, 1 queue, quick mode", quick},
		{"ringcap, 4 queues by flow", fourQueues},
		{"ringcap's eBPF engine, tc, 1 queue", report.Key{Case: "plain", Who: "ringcap-ebpf", Queues: 1}},
		{"AF_PACKET TPACKET_V3", tpacket},
		{"AF_PACKET TPACKET_V3, fanout by hash over 4", fanout},
		{"AF_XDP, copy mode, in the driver", report.Key{Case: "plain", Who: "af-xdp-copy", Queues: 1}},
		{"AF_XDP, copy mode, generic", report.Key{Case: "plain", Who: "af-xdp-generic", Queues: 1}},
	}
	var lines []report.Line
	for _, reader := range readers {
		l := report.Line{Label: reader.label}
		for _, size := range sizes {
			l.Cells = append(l.Cells, t.Cell(reader.key, size))
		}
		lines = append(lines, l)
	}
	copied := report.Line{Label: "of TPACKET_V3's, the copy of the packet"}
	for _, size := range sizes {
		row, _ := t.Row(tpacket, size)
		copied.Cells = append(copied.Cells, fmt.Sprintf("%.0f", row.InstructionsCopy))
	}
	return append(lines, copied)
}

func byCase(t *report.Tables) []report.Line {
	cases := []struct {
		label, who, what string
		size             int
	}{
		{"through libpcap", "ringcap", "libpcap", report.Smallest},
		{"BPF `tcp port 80`, traffic that passes", "ringcap", "tcp-port-80-passes", report.Smallest},
		{"the same, traffic that does not", "ringcap", "tcp-port-80-rejects", report.Smallest},
		{"no consumer attached", "ringcap", "unattended", report.Smallest},
		{"10 wildcard rules, 8 shapes", "ringcap", "10-wildcard-rules", report.Smallest},
		{"1,000 wildcard rules, 8 shapes", "ringcap", "1000-wildcard-rules", report.Smallest},
		{"10,000 wildcard rules, 8 shapes", "ringcap", "10000-wildcard-rules", report.Smallest},
		{"1,000 exact rules", "ringcap", "1000-exact-rules", report.Smallest},
		{"1,000 payload patterns", "ringcap", "1000-patterns", report.Smallest},
		{"1,000 payload patterns, 512 bytes", "ringcap", "1000-patterns", 512},
		{"1,000 payload patterns, 1500 bytes", "ringcap", "1000-patterns", 1500},
		{"1,000 payload patterns, eBPF engine", "ringcap-ebpf", "1000-patterns", report.Smallest},
		{"1,000 payload patterns, eBPF engine, 512 bytes", "ringcap-ebpf", "1000-patterns", 512},
		{"1,000 payload patterns, eBPF engine, 1500 bytes", "ringcap-ebpf", "1000-patterns", 1500},
	}
	var lines []report.Line
	for _, c := range cases {
		lines = append(lines, report.Line{Label: c.label, Cells: []string{
			t.Cell(report.Key{Case: c.what, Who: c.who, Queues: 1}, c.size),
			t.Cell(report.Key{Case: c.what, Who: "tpacket-v3", Queues: 1}, c.size),
		}})
	}
	return lines
}
