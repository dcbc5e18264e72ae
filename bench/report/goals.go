// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Smallest is the size of the packets that all goals are for, bytes without FCS.
const Smallest = 60

// Goal is one that the project has set itself, and what was measured.
type Goal struct {
	// Name of what is limited.
	Name string `json:"name"`
	// Limit is the greatest value that reaches it.
	Limit float64 `json:"limit"`
	// Value was measured; absent when what it is made of was not.
	Value *float64 `json:"value,omitempty"`
	// Reached reports whether Value is within Limit.
	Reached bool `json:"reached"`
}

// Key names a row among those of one packet size.
type Key struct {
	Case, Who string
	Queues    int
}

// Rows are those of the smallest packets, and the goals that they were compared with.
type Rows struct {
	found map[Key]Row
	goals []Goal
}

func newRows(rows []Row) *Rows {
	found := map[Key]Row{}
	for _, row := range rows {
		if row.PacketSize == Smallest {
			found[Key{row.Case, row.Who, row.Queues}] = row
		}
	}
	return &Rows{found: found}
}

// Limit is a goal: that figure of the row is at most limit.
func (r *Rows) Limit(name string, limit float64, figure func(Row) float64, key Key) {
	r.goal(name, limit, func() float64 { return figure(r.found[key]) }, key)
}

// LimitRatio is a goal: that a costs at most limit times what b does.
func (r *Rows) LimitRatio(name string, limit float64, a, b Key) {
	r.goal(name, limit, func() float64 { return r.found[a].Total() / r.found[b].Total() }, a, b)
}

func (r *Rows) goal(name string, limit float64, value func() float64, needs ...Key) {
	g := Goal{Name: name, Limit: limit}
	for _, key := range needs {
		if _, ok := r.found[key]; !ok {
			r.goals = append(r.goals, g)
			return
		}
	}
	v := value()
	g.Value, g.Reached = &v, v <= limit
	r.goals = append(r.goals, g)
}

func printGoals(w io.Writer, goals []Goal) error {
	fmt.Fprintf(w, "\nGoals, %d bytes:\n\n", Smallest)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, g := range goals {
		switch {
		case g.Value == nil:
			fmt.Fprintf(table, "  %s\tat most %.2f\t\tnot measured\n", g.Name, g.Limit)
		case g.Reached:
			fmt.Fprintf(table, "  %s\tat most %.2f\t%.2f\treached\n", g.Name, g.Limit, *g.Value)
		default:
			fmt.Fprintf(table, "  %s\tat most %.2f\t%.2f\tmissed\n", g.Name, g.Limit, *g.Value)
		}
	}
	return table.Flush()
}
