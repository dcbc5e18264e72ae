// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// line is a row of a published table: what it says, and the measurement of each column.
type line struct {
	label string
	cells []string
}

// markdown is the tables of docs/performance.md. What was not measured is a dash.
func markdown(result Result) string {
	found := map[sizedKey]Row{}
	for _, row := range result.Rows {
		found[sizedKey{rowKey{row.Case, row.Who, row.Queues}, row.PacketSize}] = row
	}
	var text strings.Builder
	table(&text, []string{"reader", "60 bytes", "512 bytes", "1500 bytes"}, bySize(found))
	table(&text, []string{"60 bytes", "ringcap, 1 queue", "TPACKET_V3"}, byCase(found))
	table(&text, []string{"goal", "limit", "measured", ""}, byGoal(result.Goals))
	for _, key := range []rowKey{oneQueue, fourQueues, quick, tpacket, fanout} {
		if row, ok := found[sizedKey{key, smallest}]; ok {
			fmt.Fprintf(&text, "- %s, %s x%d: %s\n", key.what, key.who, key.queues, dominators(row))
		}
	}
	return text.String()
}

// sizedKey names a row.
type sizedKey struct {
	rowKey
	size int
}

func bySize(found map[sizedKey]Row) []line {
	readers := []struct {
		label string
		key   rowKey
	}{
		{"ringcap, 1 queue", oneQueue},
		{"ringcap, 1 queue, quick mode", quick},
		{"ringcap, 4 queues by flow", fourQueues},
		{"ringcap's eBPF engine, tc, 1 queue", rowKey{"plain", "ringcap-ebpf", 1}},
		{"AF_PACKET TPACKET_V3", tpacket},
		{"AF_PACKET TPACKET_V3, fanout by hash over 4", fanout},
		{"AF_XDP, copy mode, in the driver", rowKey{"plain", "af-xdp-copy", 1}},
		{"AF_XDP, copy mode, generic", rowKey{"plain", "af-xdp-generic", 1}},
	}
	sizes := []int{smallest, 512, 1500}
	var lines []line
	for _, reader := range readers {
		l := line{label: reader.label}
		for _, size := range sizes {
			l.cells = append(l.cells, cell(found, sizedKey{reader.key, size}))
		}
		lines = append(lines, l)
	}
	copied := line{label: "of TPACKET_V3's, the copy of the packet"}
	for _, size := range sizes {
		copied.cells = append(copied.cells, fmt.Sprintf("%.0f", found[sizedKey{tpacket, size}].InstructionsCopy))
	}
	return append(lines, copied)
}

func byCase(found map[sizedKey]Row) []line {
	cases := []struct {
		label, what string
		size        int
	}{
		{"through libpcap", "libpcap", smallest},
		{"BPF `tcp port 80`, traffic that passes", "tcp-port-80-passes", smallest},
		{"the same, traffic that does not", "tcp-port-80-rejects", smallest},
		{"no consumer attached", "unattended", smallest},
		{"10 wildcard rules, 8 shapes", "10-wildcard-rules", smallest},
		{"1,000 wildcard rules, 8 shapes", "1000-wildcard-rules", smallest},
		{"10,000 wildcard rules, 8 shapes", "10000-wildcard-rules", smallest},
		{"1,000 exact rules", "1000-exact-rules", smallest},
		{"1,000 payload patterns", "1000-patterns", smallest},
		{"1,000 payload patterns, 512 bytes", "1000-patterns", 512},
		{"1,000 payload patterns, 1500 bytes", "1000-patterns", 1500},
	}
	var lines []line
	for _, c := range cases {
		lines = append(lines, line{c.label, []string{
			cell(found, sizedKey{rowKey{c.what, "ringcap", 1}, c.size}),
			cell(found, sizedKey{rowKey{c.what, "tpacket-v3", 1}, c.size}),
		}})
	}
	return lines
}

func byGoal(goals []Goal) []line {
	var lines []line
	for _, goal := range goals {
		measured, verdict := "-", "not measured"
		if goal.Value != nil {
			measured, verdict = fmt.Sprintf("%.2f", *goal.Value), "**missed**"
		}
		if goal.Reached {
			verdict = "reached"
		}
		lines = append(lines, line{goal.Name, []string{fmt.Sprintf("%.2f", goal.Limit), measured, verdict}})
	}
	return lines
}

// cell is kernel + consumer, and locked operations.
func cell(found map[sizedKey]Row, key sizedKey) string {
	row, ok := found[key]
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.0f + %.0f, %.1f", row.InstructionsKernel, row.InstructionsUser, row.LockedOperations)
}

// dominators are the functions that cost at least five instructions.
func dominators(row Row) string {
	var parts []string
	for _, cost := range row.Dominators {
		if cost.Instructions >= 5 {
			name, _, _ := strings.Cut(cost.Function, "[")
			parts = append(parts, fmt.Sprintf("`%s` %.0f", name, cost.Instructions))
		}
	}
	return strings.Join(parts, ", ")
}

func table(text *strings.Builder, head []string, lines []line) {
	fmt.Fprintf(text, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, l := range lines {
		fmt.Fprintf(text, "| %s | %s |\n", l.label, strings.Join(l.cells, " | "))
	}
	text.WriteByte('\n')
}
