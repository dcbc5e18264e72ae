// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Goal is one that the project has set itself, and what was measured. All are for the smallest packets.
type Goal struct {
	// Name says what is limited.
	Name string `json:"name"`
	// Limit is the greatest value that reaches it.
	Limit float64 `json:"limit"`
	// Value was measured; absent when what it is made of was not.
	Value *float64 `json:"value,omitempty"`
	// Reached says whether Value is within Limit.
	Reached bool `json:"reached"`
}

const smallest = 60

// rowKey names a row of the smallest packets.
type rowKey struct {
	what, who string
	queues    int
}

var (
	oneQueue   = rowKey{"plain", "ringcap", 1}
	fourQueues = rowKey{"plain", "ringcap", 4}
	quick      = rowKey{"plain", "ringcap-quick", 1}
	tpacket    = rowKey{"plain", "tpacket-v3", 1}
	fanout     = rowKey{"plain", "tpacket-v3-fanout-hash", 4}
	pcap       = rowKey{"libpcap", "ringcap", 1}
	fewRules   = rowKey{"10-wildcard-rules", "ringcap", 1}
	manyRules  = rowKey{"10000-wildcard-rules", "ringcap", 1}
	noModule   = rowKey{"no-module", "no-reader", 0}
)

func total(r Row) float64  { return r.InstructionsKernel + r.InstructionsUser }
func user(r Row) float64   { return r.InstructionsUser }
func locked(r Row) float64 { return r.LockedOperations }

// judge compares the rows with the goals.
func judge(rows []Row) []Goal {
	found := map[rowKey]Row{}
	for _, row := range rows {
		if row.PacketSize == smallest {
			found[rowKey{row.Case, row.Who, row.Queues}] = row
		}
	}
	var goals []Goal
	goal := func(name string, limit float64, value func() float64, needs ...rowKey) {
		g := Goal{Name: name, Limit: limit}
		for _, key := range needs {
			if _, ok := found[key]; !ok {
				goals = append(goals, g)
				return
			}
		}
		v := value()
		g.Value, g.Reached = &v, v <= limit
		goals = append(goals, g)
	}
	ratio := func(a, b rowKey) func() float64 {
		return func() float64 { return total(found[a]) / total(found[b]) }
	}
	of := func(key rowKey, figure func(Row) float64) func() float64 {
		return func() float64 { return figure(found[key]) }
	}
	goal("one queue / TPACKET_V3", 0.50, ratio(oneQueue, tpacket), oneQueue, tpacket)
	goal("four balanced queues / PACKET_FANOUT_HASH", 0.27, ratio(fourQueues, fanout), fourQueues, fanout)
	goal("quick mode / TPACKET_V3", 0.45, ratio(quick, tpacket), quick, tpacket)
	goal("locked operations, one queue", 1, of(oneQueue, locked), oneQueue)
	goal("locked operations, four queues", 1, of(fourQueues, locked), fourQueues)
	goal("consumer's instructions, libringcap", 15, of(oneQueue, user), oneQueue)
	goal("consumer's instructions, libpcap", 60, of(pcap, user), pcap)
	goal("10,000 wildcard rules of 8 shapes / 10", 1.5, ratio(manyRules, fewRules), manyRules, fewRules)
	goal("instructions of other traffic by an idle module", 5, func() float64 { return -total(found[noModule]) }, noModule)
	return goals
}

func printGoals(w io.Writer, goals []Goal) error {
	fmt.Fprintf(w, "\nGoals, %d bytes:\n\n", smallest)
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
