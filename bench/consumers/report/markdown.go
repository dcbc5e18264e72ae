// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/ringcap/ringcap/bench/report"
)

func markdown(result Result) string {
	t := report.NewTables(report.Result{Goals: result.Goals})
	for _, machine := range result.Machines {
		machine.table(t)
	}
	t.Goals()
	return t.String()
}

// table has a line for each program and rate, and two columns for each engine that there is.
func (m Machine) table(t *report.Tables) {
	found := findable(m.Rows)
	head := []string{m.String(), "AF_PACKET"}
	has := map[string]bool{}
	for _, row := range m.Rows {
		has[row.Source] = true
	}
	for _, engine := range engines {
		if has[engine.source] {
			head = append(head, engine.name, "ratio")
		}
	}
	var lines []report.Line
	seen := map[key]bool{}
	for _, row := range m.Rows {
		first := key{row.Program, sockets, row.Rate}
		if seen[first] {
			continue
		}
		seen[first] = true
		cells := []string{cell(found, first)}
		for _, engine := range engines {
			if has[engine.source] {
				k := key{row.Program, engine.source, row.Rate}
				cells = append(cells, cell(found, k), ratio(found[k]))
			}
		}
		lines = append(lines, report.Line{Label: fmt.Sprintf("%s, %s a second", row.Program, thousands(row.Rate)), Cells: cells})
	}
	t.Table(head, lines)
}

// cell is CPU time and voluntary switches.
func cell(found map[key]Row, k key) string {
	row, ok := found[k]
	switch {
	case !ok:
		return "-"
	case row.Refused != "":
		return "refused"
	}
	return fmt.Sprintf("%.1f ms, %.0f", row.CPUSeconds*1000, row.VoluntarySwitches)
}

func ratio(row Row) string {
	if row.Ratio == nil {
		return "-"
	}
	digits := 2
	if *row.Ratio >= 10 {
		digits = 0
	}
	return fmt.Sprintf("**%.*f**", digits, *row.Ratio)
}
