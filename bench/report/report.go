// SPDX-License-Identifier: Apache-2.0

// Package report turns what the counting plugin and a workload left into figures per packet: a table on standard output,
// rows in a JSON file, and tables for docs/performance.md. What is the same for all benchmarks is here.
package report

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"text/tabwriter"
)

// Row is one measurement. Figures are per packet and net of the baseline, but for that itself.
type Row struct {
	Setting
	// Case names what is measured.
	Case string `json:"case"`
	// Who reads.
	Who string `json:"who"`
	// Queues is how many the packets are shared by: readers', or the card's where the benchmark is of one.
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

	baseline bool
}

// Total is the kernel's and the consumer's instructions.
func (r Row) Total() float64 { return r.InstructionsKernel + r.InstructionsUser }

// Cost is a function's share of a row.
type Cost struct {
	Function     string  `json:"function"`
	Instructions float64 `json:"instructions"`
}

// Result is the JSON file.
type Result struct {
	Machines []Machine `json:"machines"`
	Rows     []Row     `json:"rows"`
	Goals    []Goal    `json:"goals"`
	// Rates are those of benchmarks that look for them.
	Rates []Rate `json:"losslessRates,omitempty"`
	// Latencies are those of benchmarks that measure them.
	Latencies []Latency `json:"latencies,omitempty"`
}

// Benchmark is what is particular to one.
type Benchmark struct {
	// Title names what the figures measure, and what has been subtracted.
	Title string
	// Baseline returns the group of runs that a run is compared in, and whether the run is the group's baseline, which is
	// subtracted from the others of its packet size.
	Baseline func(what, who string) (group string, is bool)
	// Judge compares rows with the goals.
	Judge func(*Rows)
	// Markdown is the tables of docs/performance.md.
	Markdown func(Result) string
}

const (
	warmUp        = "warm-up"
	maxDominators = 12
)

// copies are the kernel's functions that copy packets.
var copies = []string{"memcpy", "memcpy_orig", "__memcpy"}

// Main is the command of a benchmark's report. Its arguments are folders, one of each machine, with machine.json, the plugin's
// run.N, the workload's runs.txt and the guest's symbols.
func Main(b Benchmark) {
	out := flag.String("out", "", "JSON file to write")
	tables := flag.String("markdown", "", "file to write the tables of docs/performance.md to")
	flag.Parse()
	if err := b.run(os.Stdout, flag.Args(), *out, *tables); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func (b Benchmark) run(w io.Writer, folders []string, out, tables string) error {
	var result Result
	for _, raw := range folders {
		if err := b.add(&result, raw); err != nil {
			return err
		}
	}
	found := newRows(result.Rows)
	found.latencies = result.Latencies
	b.Judge(found)
	result.Goals = found.goals
	if err := Write(out, result, tables, b.Markdown(result)); err != nil {
		return err
	}
	return b.print(w, result)
}

// Write leaves a result as JSON, and its tables.
func Write(out string, result any, tables, text string) error {
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(tables, []byte(text), 0o644)
}

// add appends what was measured on one machine.
func (b Benchmark) add(result *Result, raw string) error {
	machine, err := readMachine(raw)
	if err != nil {
		return err
	}
	runs, err := readRuns(raw)
	if err != nil {
		return err
	}
	rows, err := b.compare(runs)
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].Setting = machine.Setting
	}
	rates, err := readRates(raw)
	if err != nil {
		return err
	}
	latencies, err := readLatencies(raw)
	if err != nil {
		return err
	}
	result.Machines = append(result.Machines, machine)
	result.Rows = append(result.Rows, rows...)
	result.Rates = append(result.Rates, rates...)
	result.Latencies = append(result.Latencies, latencies...)
	return nil
}

// compare nets every run against the baseline of its group and packet size. The last baseline counts; where there are
// several, that they are equal is what shows that the runs are comparable.
func (b Benchmark) compare(runs []measurement) ([]Row, error) {
	type groupKey struct {
		group string
		size  int
	}
	baselines := map[groupKey]measurement{}
	for _, m := range runs {
		if group, is := b.Baseline(m.what, m.who); is {
			baselines[groupKey{group, m.size}] = m
		}
	}
	var rows []Row
	for _, m := range runs {
		if m.what == warmUp {
			continue
		}
		group, is := b.Baseline(m.what, m.who)
		base, ok := baselines[groupKey{group, m.size}]
		if !ok {
			return nil, fmt.Errorf("%s, %s: no baseline was measured for packets of %d bytes", m.what, m.who, m.size)
		}
		if is {
			base = measurement{}
		}
		row := newRow(m, base)
		row.baseline = is
		rows = append(rows, row)
	}
	return rows, nil
}

func newRow(m, base measurement) Row {
	n := float64(m.packets)
	row := Row{
		Case: m.what, Who: m.who, Queues: m.queues, PacketSize: m.size,
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

func (b Benchmark) print(w io.Writer, result Result) error {
	fmt.Fprintf(w, "Guest instructions per packet, %s:\n", b.Title)
	for _, machine := range result.Machines {
		if err := printRows(w, machine, result.Rows); err != nil {
			return err
		}
	}
	if err := PrintGoals(w, fmt.Sprintf("Goals, %d bytes", Smallest), result.Goals); err != nil {
		return err
	}
	printRates(w, result.Rates)
	printLatencies(w, result.Latencies)
	fmt.Fprintln(w, "\nWhat dominates:")
	for _, row := range result.Rows {
		if row.baseline {
			continue
		}
		var parts []string
		for _, cost := range row.Dominators {
			parts = append(parts, fmt.Sprintf("%s %.0f", cost.Function, cost.Instructions))
		}
		fmt.Fprintf(w, "  %s%s, %s x%d, %d bytes: %s\n", row.prefix(), row.Case, row.Who, row.Queues, row.PacketSize,
			strings.Join(parts, ", "))
	}
	return nil
}

// printRows prints those of one machine.
func printRows(w io.Writer, machine Machine, rows []Row) error {
	fmt.Fprintf(w, "\n%s:\n\n", machine)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "case\treader\tqueues\tbytes\ttotal\tkernel\tcopy\tuser\tlocked\t")
	for _, row := range rows {
		if row.Setting == machine.Setting {
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%.1f\t%.1f\t%.0f\t%.1f\t%.2f\t\n", row.Case, row.Who, row.Queues, row.PacketSize,
				row.Total(), row.InstructionsKernel, row.InstructionsCopy, row.InstructionsUser, row.LockedOperations)
		}
	}
	return table.Flush()
}
