// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
)

// Tables is a text of tables for docs/performance.md, made of a result. What was not measured is a dash.
type Tables struct {
	text      strings.Builder
	found     map[sizedKey]Row
	goals     []Goal
	rates     []Rate
	latencies []Latency
}

// NewTables is an empty text on result.
func NewTables(result Result) *Tables {
	return &Tables{found: findable(result.Rows), goals: result.Goals, rates: result.Rates, latencies: result.Latencies}
}

// Line is a row of a published table: its label and its columns.
type Line struct {
	Label string
	Cells []string
}

// Table adds one.
func (t *Tables) Table(head []string, lines []Line) {
	fmt.Fprintf(&t.text, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, l := range lines {
		fmt.Fprintf(&t.text, "| %s | %s |\n", l.Label, strings.Join(l.Cells, " | "))
	}
	t.text.WriteByte('\n')
}

// Goals adds the table of the goals.
func (t *Tables) Goals() {
	var lines []Line
	for _, goal := range t.goals {
		measured, verdict := "-", "not measured"
		if goal.Value != nil {
			measured, verdict = fmt.Sprintf("%.2f", *goal.Value), "**missed**"
		}
		if goal.Reached {
			verdict = "reached"
		}
		lines = append(lines, Line{goal.Name, []string{fmt.Sprintf("%.2f", goal.Limit), measured, verdict}})
	}
	t.Table([]string{"goal", "limit", "measured", ""}, lines)
}

// Dominators adds a line for each of the keys: the functions that cost at least five instructions of the smallest packets.
func (t *Tables) Dominators(keys ...Key) {
	for _, key := range keys {
		row, ok := t.found[sizedKey{key, Smallest}]
		if !ok {
			continue
		}
		var parts []string
		for _, cost := range row.Dominators {
			if cost.Instructions >= 5 {
				name, _, _ := strings.Cut(cost.Function, "[")
				parts = append(parts, fmt.Sprintf("`%s` %.0f", name, cost.Instructions))
			}
		}
		fmt.Fprintf(&t.text, "- %s%s, %s x%d: %s\n", key.On.prefix(), key.Case, key.Who, key.Queues, strings.Join(parts, ", "))
	}
}

// Cell is a row's instructions in the kernel + the consumer, and locked operations.
func (t *Tables) Cell(key Key, size int) string {
	row, ok := t.found[sizedKey{key, size}]
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.0f + %.0f, %.1f", row.InstructionsKernel, row.InstructionsUser, row.LockedOperations)
}

// Row is that of a key and a packet size.
func (t *Tables) Row(key Key, size int) (Row, bool) {
	row, ok := t.found[sizedKey{key, size}]
	return row, ok
}

func (t *Tables) String() string { return t.text.String() }
