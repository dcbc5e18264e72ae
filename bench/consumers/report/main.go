// SPDX-License-Identifier: Apache-2.0

// Command report makes of what bench/consumers measured a table and the goals on standard output, a JSON file, and the tables
// of docs/performance.md. Its arguments are folders, one of each machine, with runs.txt.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/ringcap/ringcap/bench/report"
)

// Result is the JSON file.
type Result struct {
	Machines []Machine     `json:"machines"`
	Goals    []report.Goal `json:"goals"`
}

func main() {
	out := flag.String("out", "", "JSON file to write")
	tables := flag.String("markdown", "", "file to write the tables of docs/performance.md to")
	flag.Parse()
	if err := run(os.Stdout, flag.Args(), *out, *tables); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, folders []string, out, tables string) error {
	var result Result
	for _, folder := range folders {
		machine, err := readMachine(folder)
		if err != nil {
			return err
		}
		result.Machines = append(result.Machines, machine)
	}
	result.Goals = judge(result.Machines)
	if err := report.Write(out, result, tables, markdown(result)); err != nil {
		return err
	}
	for _, machine := range result.Machines {
		if err := printMachine(w, machine); err != nil {
			return err
		}
	}
	return report.PrintGoals(w, fmt.Sprintf("Goals, packets of %d bytes", report.Smallest), result.Goals)
}

func readMachine(folder string) (Machine, error) {
	file, err := os.Open(filepath.Join(folder, "runs.txt"))
	if err != nil {
		return Machine{}, err
	}
	defer file.Close()
	m, err := readRuns(file)
	if err != nil {
		return Machine{}, fmt.Errorf("%s: %w", file.Name(), err)
	}
	m.machine.Rows = makeRows(m)
	return m.machine, nil
}

func (m Machine) String() string {
	text := fmt.Sprintf("Kernel %s, %d processors, load %.1f to %.1f", m.Kernel, m.Processors, m.LoadBefore, m.LoadAfter)
	if m.Emulated {
		text += " on the machine that emulates it"
	}
	return text
}

func printMachine(w io.Writer, machine Machine) error {
	fmt.Fprintf(w, "\nMedians, CPU time is user + system while packets come. %s:\n\n", machine)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "program\tsource\tpackets/s\tsent at\tCPU s\tratio\twhole life s\tvoluntary\tinvoluntary\twake-ups\tdropped\truns\t")
	for _, row := range machine.Rows {
		if row.Refused != "" {
			fmt.Fprintf(table, "%s\t%s\t%d\trefused\t\t\t\t\t\t\t\t%d\t  %s\n", row.Program, row.Source, row.Rate, len(row.Runs), row.Refused)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%.0f\t%.4f\t%s\t%.3f\t%.0f\t%.0f\t%s\t%d\t%d\t\n", row.Program, row.Source, row.Rate, row.PacketsPerSecond,
			row.CPUSeconds, optional(row.Ratio), row.WholeCPUSeconds, row.VoluntarySwitches, row.InvoluntarySwitches,
			optional(row.WakeUps), row.Dropped, len(row.Runs))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, skipped := range machine.Skipped {
		fmt.Fprintf(w, "%s skipped: %s\n", skipped.What, skipped.Why)
	}
	return nil
}

func optional(figure *float64) string {
	if figure == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *figure)
}
