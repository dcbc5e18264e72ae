// SPDX-License-Identifier: Apache-2.0

// Command report turns what the counting plugin and the workload of bench/kernel left into figures per packet: a table
// on standard output and rows in a JSON file.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/tabwriter"
)

// Row is one measurement. Figures are per packet and net of the same traffic without a reader, but for that itself.
type Row struct {
	// Case names what is measured, all of it in mode 0 on a veth's receive side.
	Case string `json:"case"`
	// Who reads.
	Who string `json:"who"`
	// Queues is the number of readers that share the packets.
	Queues int `json:"queues"`
	// PacketSize is in bytes without FCS.
	PacketSize int `json:"packetSize"`
	// Packets is how many were sent, Received how many the readers got.
	Packets  int `json:"packets"`
	Received int `json:"received"`
	// InstructionsKernel and InstructionsUser are guest instructions executed.
	InstructionsKernel float64 `json:"instructionsKernel"`
	InstructionsUser   float64 `json:"instructionsUser"`
	// InstructionsCopy are those of the kernel's that copy the packet.
	InstructionsCopy float64 `json:"instructionsCopy"`
	// LockedOperations are those of them that lock the bus.
	LockedOperations float64 `json:"lockedOperations"`
	// Dominators are the functions that cost most.
	Dominators []Cost `json:"dominators"`
}

// Cost is a function's share of a row.
type Cost struct {
	Function     string  `json:"function"`
	Instructions float64 `json:"instructions"`
}

// Result is the JSON file.
type Result struct {
	Kernel string `json:"kernel"`
	Rows   []Row  `json:"rows"`
	Goals  []Goal `json:"goals"`
}

const (
	baseline      = "baseline"
	warmUp        = "warm-up"
	maxDominators = 12
)

// copies are the kernel's functions that copy packets.
var copies = []string{"memcpy", "memcpy_orig", "__memcpy"}

func main() {
	raw := flag.String("raw", "", "folder with the plugin's run.N, the workload's runs.txt and the guest's symbols")
	kernel := flag.String("kernel", "", "release of the kernel that was measured")
	out := flag.String("out", "", "JSON file to write")
	tables := flag.String("markdown", "", "file to write the tables of docs/performance.md to")
	flag.Parse()
	if err := run(os.Stdout, *raw, *kernel, *out, *tables); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, raw, kernel, out, tables string) error {
	symbols, err := readSymbols(filepath.Join(raw, "symbols"))
	if err != nil {
		return err
	}
	runs, err := readRuns(raw, symbols)
	if err != nil {
		return err
	}
	rows, err := compare(runs)
	if err != nil {
		return err
	}
	result := Result{Kernel: kernel, Rows: rows, Goals: judge(rows)}
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, append(data, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(tables, []byte(markdown(result)), 0o644); err != nil {
		return err
	}
	return print(w, result)
}

// compare nets every run against the baseline of its packet size. The last baseline counts; that it equals the first is
// what shows that the runs are comparable.
func compare(runs []measurement) ([]Row, error) {
	baselines := map[int]measurement{}
	for _, m := range runs {
		if m.what == baseline {
			baselines[m.size] = m
		}
	}
	var rows []Row
	for _, m := range runs {
		if m.what == warmUp {
			continue
		}
		base, ok := baselines[m.size]
		if !ok {
			return nil, fmt.Errorf("no run without a reader for packets of %d bytes", m.size)
		}
		if m.what == baseline {
			base = measurement{}
		}
		rows = append(rows, newRow(m, base))
	}
	return rows, nil
}

func newRow(m, base measurement) Row {
	n := float64(m.packets)
	row := Row{
		Case: m.what, Who: m.who, Queues: m.readers, PacketSize: m.size,
		Packets: m.packets, Received: m.received,
		InstructionsKernel: (float64(m.kernel) - float64(base.kernel)) / n,
		InstructionsUser:   (float64(m.user) - float64(base.user)) / n,
		LockedOperations:   (float64(m.locked) - float64(base.locked)) / n,
	}
	for _, name := range copies {
		row.InstructionsCopy += (float64(m.functions[name]) - float64(base.functions[name])) / n
	}
	for name, count := range m.functions {
		row.Dominators = append(row.Dominators, Cost{name, (float64(count) - float64(base.functions[name])) / n})
	}
	sort.Slice(row.Dominators, func(i, j int) bool {
		a, b := row.Dominators[i], row.Dominators[j]
		if a.Instructions != b.Instructions {
			return a.Instructions > b.Instructions
		}
		return a.Function < b.Function
	})
	row.Dominators = row.Dominators[:min(len(row.Dominators), maxDominators)]
	return row
}

func print(w io.Writer, result Result) error {
	fmt.Fprintf(w, "Guest instructions per packet, kernel %s, mode 0 on a veth's receive side, net of %q:\n\n", result.Kernel, baseline)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "case\treader\tqueues\tbytes\ttotal\tkernel\tcopy\tuser\tlocked\t")
	for _, row := range result.Rows {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%.1f\t%.1f\t%.0f\t%.1f\t%.2f\t\n", row.Case, row.Who, row.Queues, row.PacketSize,
			row.InstructionsKernel+row.InstructionsUser, row.InstructionsKernel, row.InstructionsCopy, row.InstructionsUser, row.LockedOperations)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := printGoals(w, result.Goals); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nWhat dominates:")
	for _, row := range result.Rows {
		if row.Case == baseline {
			continue
		}
		var parts []string
		for _, cost := range row.Dominators {
			parts = append(parts, fmt.Sprintf("%s %.0f", cost.Function, cost.Instructions))
		}
		fmt.Fprintf(w, "  %s, %s x%d, %d bytes: %s\n", row.Case, row.Who, row.Queues, row.PacketSize, strings.Join(parts, ", "))
	}
	return nil
}
