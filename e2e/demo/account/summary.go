// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"
)

// Summary is the outcome of a replay.
type Summary struct {
	AddsUp   bool     `json:"addsUp"`
	Problems []string `json:"problems,omitempty"`
	Packets  int      `json:"packets"`
	Bytes    uint64   `json:"bytes"`
	Nodes    []Node   `json:"nodes"`
}

// Summarize reads and checks a run.
func Summarize(run Run, options Options) (Summary, error) {
	nodes, err := run.Nodes()
	if err != nil {
		return Summary{}, err
	}
	input, err := run.Input()
	if err != nil {
		return Summary{}, err
	}
	options.Protocols = input.Protocols
	for _, node := range nodes {
		for i := range node.Queues {
			node.Queues[i].Displaced = displaced(input.Digests, node.Queues[i].Written)
		}
	}
	problems := Check(input.Digests, nodes, options)
	return Summary{
		AddsUp: len(problems) == 0, Problems: problems, Packets: len(input.Digests), Bytes: input.Bytes, Nodes: nodes,
	}, nil
}

// Print writes the summary as text: a table of the nodes, one of their queues, and whether all adds up.
func (s Summary) Print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 2, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "node\tsent\ton the wire\tseen\tfiltered\tqueue\tdelivered\tdropped\ttcpdump wrote\t")
	for _, node := range s.Nodes {
		for i, queue := range node.Queues {
			if i == 0 {
				fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t", node.Name, node.Sent, node.OnWire, node.Seen, node.Filtered)
			} else {
				fmt.Fprint(table, "\t\t\t\t\t")
			}
			fmt.Fprintf(table, "%d\t%d\t%s\t%d\t\n", queue.Queue, queue.Delivered, dropText(queue), queue.WrittenPackets)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, node := range s.Nodes {
		fmt.Fprintf(w, "%s: engine %s, kernel %s: %s\n", node.Name, node.Engine, node.Kernel, node.EngineReason)
		for _, queue := range node.Queues {
			fmt.Fprintf(w, "%s: queue %d is read by %s%s\n", node.Name, queue.Queue, consumerName(queue), reorderText(queue))
		}
	}
	fmt.Fprintln(w)
	for _, problem := range s.Problems {
		fmt.Fprintf(w, "unaccounted: %s\n", problem)
	}
	_, err := fmt.Fprintln(w, s.verdict())
	return err
}

func dropText(queue Queue) string {
	if len(queue.Dropped) == 0 {
		return "0"
	}
	var parts []string
	for reason, packets := range queue.Dropped {
		parts = append(parts, fmt.Sprintf("%s %d", reason, packets))
	}
	sort.Strings(parts)
	return strings.Join(parts, ", ")
}

func reorderText(queue Queue) string {
	var text string
	if queue.Reordered > 0 {
		text = fmt.Sprintf("; %d packets were written after a later one", queue.Reordered)
	}
	if queue.Displaced > 0 && queue.Drops() == 0 {
		text += fmt.Sprintf("; %d packets were captured beside their place on the wire, none within a protocol", queue.Displaced)
	}
	return text
}

func (s Summary) verdict() string {
	if !s.AddsUp {
		return fmt.Sprintf("It does NOT add up: see the %d lines above.", len(s.Problems))
	}
	var lost uint64
	for _, node := range s.Nodes {
		lost += node.LostBeforeWire + node.Filtered + node.SampledOut
		for _, queue := range node.Queues {
			lost += queue.Drops()
		}
	}
	text := fmt.Sprintf("Everything adds up: %d packets (%d bytes) to each of %d nodes, ", s.Packets, s.Bytes, len(s.Nodes))
	if lost == 0 {
		return text + "every one written once, unchanged, in the order of the wire within each protocol, and from the same queue on every node."
	}
	return text + fmt.Sprintf("%d lost or filtered on the way and counted as such, the others written once, unchanged, in the order of the wire within each protocol.", lost)
}
