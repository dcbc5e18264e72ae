// SPDX-License-Identifier: Apache-2.0

// Command report compares what bench/agent measured with the goals. Its argument is a file in which each line with a
// figure begins with "figure". It prints the goals, and writes figures and goals as JSON.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ringcap/ringcap/bench/report"
)

// Figure is one line of TestManyRings.
type Figure struct {
	Engine string `json:"engine"`
	Kernel string `json:"kernel"`
	// Rings is their number, Queues that of each.
	Rings  int     `json:"rings"`
	Queues int     `json:"queues"`
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
}

// Result is the JSON file.
type Result struct {
	Figures []Figure      `json:"figures"`
	Goals   []report.Goal `json:"goals"`
}

// The goals are for a real machine. The module's figures are of an emulated one.
const engine = "EBPF"

var limits = []struct {
	what  string
	limit float64
}{
	{"CPU of an idle agent", 1},
	{"first packet at a consumer", 2},
	{"10,000 rules, from the manifest to the status", 1},
	{"another 10,000 rules, from the manifest to the status", 1},
}

func main() {
	out := flag.String("out", "", "JSON file to write")
	tables := flag.String("markdown", "", "file to write the table of goals to")
	flag.Parse()
	if err := run(os.Stdout, flag.Args(), *out, *tables); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, args []string, out, tables string) error {
	if len(args) != 1 {
		return errors.New("one file of figures is expected")
	}
	file, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer file.Close()
	figures, err := readFigures(file)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	result := Result{Figures: figures, Goals: judge(figures)}
	t := report.NewTables(report.Result{Goals: result.Goals})
	t.Goals()
	if err := report.Write(out, result, tables, t.String()); err != nil {
		return err
	}
	return report.PrintGoals(w, "Goals", result.Goals)
}

func readFigures(r io.Reader) ([]Figure, error) {
	var figures []Figure
	for lines := bufio.NewScanner(r); lines.Scan(); {
		text, is := strings.CutPrefix(lines.Text(), "figure ")
		if !is {
			continue
		}
		var figure Figure
		if err := json.Unmarshal([]byte(text), &figure); err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		figures = append(figures, figure)
	}
	return figures, nil
}

func judge(figures []Figure) []report.Goal {
	var goals []report.Goal
	for _, l := range limits {
		name, value := "eBPF, "+l.what, (*float64)(nil)
		for _, f := range figures {
			if f.Engine == engine && f.What == l.what {
				name, value = name+", "+f.Unit, &f.Value
			}
		}
		goals = append(goals, report.NewGoal(name, l.limit, value))
	}
	return goals
}
