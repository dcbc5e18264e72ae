// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Smallest is the size of the packets that goals are for unless they say otherwise, bytes without FCS.
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
	On        Setting
}

// sizedKey names a row.
type sizedKey struct {
	Key
	size int
}

// Rows are what was measured, and the goals that it was compared with.
type Rows struct {
	found     map[sizedKey]Row
	latencies []Latency
	goals     []Goal
}

func findable(rows []Row) map[sizedKey]Row {
	found := map[sizedKey]Row{}
	for _, row := range rows {
		found[sizedKey{Key{row.Case, row.Who, row.Queues, row.Setting}, row.PacketSize}] = row
	}
	return found
}

func newRows(rows []Row) *Rows { return &Rows{found: findable(rows)} }

// Limit is a goal: that figure of the row is at most limit.
func (r *Rows) Limit(name string, limit float64, figure func(Row) float64, key Key) {
	r.goal(name, limit, func(rows []Row) float64 { return figure(rows[0]) }, sizedKey{key, Smallest})
}

// LimitRatio is a goal: that a costs at most limit times what b does.
func (r *Rows) LimitRatio(name string, limit float64, a, b Key) {
	r.LimitRatioAt(Smallest, name, limit, a, b)
}

// LimitRatioAt is LimitRatio for packets of that size, in bytes.
func (r *Rows) LimitRatioAt(size int, name string, limit float64, a, b Key) {
	r.goal(name, limit, func(rows []Row) float64 { return rows[0].Total() / rows[1].Total() }, sizedKey{a, size}, sizedKey{b, size})
}

// LimitAdded is a goal: that what a costs more than b is at most limit times what c costs more than d.
func (r *Rows) LimitAdded(name string, limit float64, a, b, c, d Key) {
	r.goal(name, limit, func(rows []Row) float64 {
		return (rows[0].Total() - rows[1].Total()) / (rows[2].Total() - rows[3].Total())
	}, sizedKey{a, Smallest}, sizedKey{b, Smallest}, sizedKey{c, Smallest}, sizedKey{d, Smallest})
}

// LimitPerByte is a goal: that each byte more of a packet, between these sizes, costs at most limit instructions.
func (r *Rows) LimitPerByte(name string, limit float64, key Key, from, to int) {
	r.goal(name, limit, func(rows []Row) float64 {
		return (rows[1].Total() - rows[0].Total()) / float64(to-from)
	}, sizedKey{key, from}, sizedKey{key, to})
}

func (r *Rows) goal(name string, limit float64, value func([]Row) float64, needs ...sizedKey) {
	var rows []Row
	for _, key := range needs {
		row, ok := r.found[key]
		if !ok {
			r.goals = append(r.goals, NewGoal(name, limit, nil))
			return
		}
		rows = append(rows, row)
	}
	v := value(rows)
	r.goals = append(r.goals, NewGoal(name, limit, &v))
}

// NewGoal compares a value with its limit; nil is one that was not measured.
func NewGoal(name string, limit float64, value *float64) Goal {
	return Goal{Name: name, Limit: limit, Value: value, Reached: value != nil && *value <= limit}
}

// PrintGoals prints a table of them under a title.
func PrintGoals(w io.Writer, title string, goals []Goal) error {
	fmt.Fprintf(w, "\n%s:\n\n", title)
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
