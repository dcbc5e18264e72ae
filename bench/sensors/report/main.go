// SPDX-License-Identifier: Apache-2.0

// Command report is that of bench/sensors: libdaq's module for ringcap beside libdaq's own for packet sockets.
package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ringcap/ringcap/bench/report"
)

const (
	passive = "passive"
	inLine  = "in-line"
	bursts  = "-bursts"

	ringcap  = "daq-ringcap"
	afpacket = "daq-afpacket"

	// together is how many packets the workload sends at once in the second measurement of latencies.
	together = 32
)

var (
	benchmark = report.Benchmark{
		Title: "libdaq's modules on a veth, net of the same packets without a reader",
		Baseline: func(what, _ string) (string, bool) {
			what, inBursts := strings.CutSuffix(what, bursts)
			return strconv.FormatBool(inBursts), what == "baseline"
		},
		Judge:    judge,
		Markdown: markdown,
	}
	queues = []int{1, 2, 4}
	sizes  = []int{report.Smallest, 512, 1500}
)

func main() { report.Main(benchmark) }

func key(what, who string, queues int) report.Key {
	return report.Key{Case: what, Who: who, Queues: queues}
}

func judge(rows *report.Rows) {
	for _, what := range []string{passive, inLine, passive + bursts, inLine + bursts} {
		for _, n := range queues {
			rows.LimitRatio(fmt.Sprintf("%s, %s / daq_afpacket", label(what), counted(n)), 0.5, key(what, ringcap, n), key(what, afpacket, n))
		}
		for _, n := range queues[1:] {
			rows.LimitRatio(fmt.Sprintf("%s, %s / 1", label(what), counted(n)), 1.05, key(what, ringcap, n), key(what, ringcap, 1))
		}
	}
	for _, n := range queues {
		rows.LimitLatency(fmt.Sprintf("in line, %s, p99 in microseconds, 10,000 packets/s", counted(n)), 200,
			report.LatencyKey{Case: inLine, Who: ringcap, Queues: n, Group: 1})
	}
}

// label is how a case is called in tables.
func label(what string) string {
	what, inBursts := strings.CutSuffix(what, bursts)
	if what == inLine {
		what = "in line"
	}
	if inBursts {
		what += ", groups of 2,048"
	}
	return what
}

func counted(queues int) string {
	if queues == 1 {
		return "1 queue"
	}
	return fmt.Sprintf("%d queues", queues)
}

func instances(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("fanout by hash over %d", n)
}

// reader is a line of the published tables.
type reader struct {
	label, who string
	queues     int
}

func readers(what string) []reader {
	var all []reader
	if what == inLine {
		all = append(all, reader{"nobody attached", "unattended", 1})
	}
	for _, n := range queues {
		all = append(all, reader{"daq_afpacket, " + instances(n), afpacket, n}, reader{"daq_ringcap, " + counted(n), ringcap, n})
	}
	return all
}

func markdown(result report.Result) string {
	t := report.NewTables(result)
	for _, what := range []string{passive, inLine} {
		t.Table([]string{label(what), "60 bytes", "512 bytes", "1500 bytes", "60 bytes, groups of 2,048"}, bySize(t, what))
	}
	t.Table([]string{"in line, p50 and p99, microseconds", "one packet at a time", "groups of 32"}, latencies(t))
	t.Goals()
	for _, what := range []string{passive, inLine} {
		t.Dominators(key(what, afpacket, 1), key(what, ringcap, 1), key(what, afpacket, 4), key(what, ringcap, 4))
	}
	return t.String()
}

func bySize(t *report.Tables, what string) []report.Line {
	var lines []report.Line
	for _, r := range readers(what) {
		l := report.Line{Label: r.label}
		for _, size := range sizes {
			l.Cells = append(l.Cells, t.Cell(key(what, r.who, r.queues), size))
		}
		l.Cells = append(l.Cells, t.Cell(key(what+bursts, r.who, r.queues), report.Smallest))
		lines = append(lines, l)
	}
	return lines
}

func latencies(t *report.Tables) []report.Line {
	var lines []report.Line
	for _, r := range readers(inLine) {
		l := report.Line{Label: r.label}
		for _, group := range []int{1, together} {
			l.Cells = append(l.Cells, t.LatencyCell(report.LatencyKey{Case: inLine, Who: r.who, Queues: r.queues, Group: group}))
		}
		lines = append(lines, l)
	}
	return lines
}
