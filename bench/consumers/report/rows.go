// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/bench/report"
)

const (
	sockets = "af-packet"

	// watermarkPackets is the number of packets of 60 bytes that reach the watermark, where the ring has its defaults: a tenth of a
	// lane of 8 MiB, in slots of 96 bytes.
	watermarkPackets = (8 << 20) / 10 / 96

	cpuLimit, wakeLimit = 1, 1
)

var (
	programs = []string{"tcpdump", "dumpcap", "suricata"}
	engines  = []struct{ source, name string }{{"ebpf", "eBPF"}, {"kmod", "module"}}
	// ownTimeouts are the seconds that a program tells libpcap to wait: for a first packet, and for fewer than the watermark. Suricata has threads that sleep for other reasons.
	ownTimeouts = map[string]float64{"tcpdump": 1, "dumpcap": 0.25}
)

// Machine is one that was measured on.
type Machine struct {
	Kernel     string `json:"kernel"`
	Processors int    `json:"processors"`
	// Emulated is a VM whose processors are a program.
	Emulated bool `json:"emulated"`
	// LoadBefore and LoadAfter are the averages of a minute of what the processors belong to.
	LoadBefore float64   `json:"loadBefore"`
	LoadAfter  float64   `json:"loadAfter"`
	Skipped    []Skipped `json:"skipped,omitempty"`
	Rows       []Row     `json:"rows"`
}

// Row is a program at a rate on a source: medians of its runs.
type Row struct {
	Program             string  `json:"program"`
	Source              string  `json:"source"`
	Rate                int     `json:"rate"`
	CPUSeconds          float64 `json:"cpuSeconds"`
	WholeCPUSeconds     float64 `json:"wholeCPUSeconds"`
	VoluntarySwitches   float64 `json:"voluntarySwitches"`
	InvoluntarySwitches float64 `json:"involuntarySwitches"`
	PacketsPerSecond    float64 `json:"packetsPerSecond"`
	// Dropped is of all runs.
	Dropped int `json:"dropped"`
	// Ratio is CPUSeconds / that of AF_PACKET; absent for itself.
	Ratio *float64 `json:"ratio,omitempty"`
	// WakeUps is VoluntarySwitches / (the program's timeouts in this time + the watermarks reached); absent for AF_PACKET, and where a program sleeps for other reasons.
	WakeUps *float64 `json:"wakeUps,omitempty"`
	// Refused says why there are no figures.
	Refused string `json:"refused,omitempty"`
	Runs    []Run  `json:"runs"`
}

func (r Row) key() key { return key{r.Program, r.Source, r.Rate} }

// median of an even number is the mean of the two in the middle.
func median(of []Run, figure func(Run) float64) float64 {
	var values []float64
	for _, run := range of {
		values = append(values, figure(run))
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// makeRows has them in the order of their first runs.
func makeRows(m measured) []Row {
	var order []key
	runs := map[key][]Run{}
	for _, run := range m.runs {
		k := key{run.Program, run.Source, run.Rate}
		if runs[k] == nil {
			order = append(order, k)
		}
		runs[k] = append(runs[k], run)
	}
	for k := range m.failed {
		if runs[k] == nil {
			order = append(order, k)
		}
	}
	var rows []Row
	for _, k := range order {
		rows = append(rows, newRow(k, runs[k], m.failed[k]))
	}
	compare(rows)
	return rows
}

func newRow(k key, runs []Run, failed string) Row {
	row := Row{Program: k.program, Source: k.source, Rate: k.rate, Runs: runs, Refused: failed}
	for _, run := range runs {
		if wrong := run.wrong(); wrong != "" && row.Refused == "" {
			row.Refused = wrong
		}
		row.Dropped += run.Dropped
	}
	if row.Refused != "" {
		return row
	}
	row.CPUSeconds = median(runs, func(r Run) float64 { return r.CPUSeconds })
	row.WholeCPUSeconds = median(runs, func(r Run) float64 { return r.WholeUserSeconds + r.WholeSystemSeconds })
	row.VoluntarySwitches = median(runs, func(r Run) float64 { return float64(r.VoluntarySwitches) })
	row.InvoluntarySwitches = median(runs, func(r Run) float64 { return float64(r.InvoluntarySwitches) })
	row.PacketsPerSecond = median(runs, func(r Run) float64 { return float64(r.Sent) / r.SendingSeconds })
	if own, ok := ownTimeouts[k.program]; ok && k.source != sockets {
		wakeUps := median(runs, func(r Run) float64 {
			return float64(r.VoluntarySwitches) / (r.WindowSeconds/own + float64(r.Sent)/watermarkPackets)
		})
		row.WakeUps = &wakeUps
	}
	return row
}

func compare(rows []Row) {
	found := findable(rows)
	for i := range rows {
		beside, ok := found[key{rows[i].Program, sockets, rows[i].Rate}]
		if rows[i].Source == sockets || rows[i].Refused != "" || !ok || beside.Refused != "" || beside.CPUSeconds == 0 {
			continue
		}
		ratio := rows[i].CPUSeconds / beside.CPUSeconds
		rows[i].Ratio = &ratio
	}
}

func findable(rows []Row) map[key]Row {
	found := map[key]Row{}
	for _, row := range rows {
		found[row.key()] = row
	}
	return found
}

// judge compares with the goals the first machine that has an engine: a real one comes before an emulated one. A goal is for all
// rates, so its value is that of the worst.
func judge(machines []Machine) []report.Goal {
	var goals []report.Goal
	for _, engine := range engines {
		on, suffix := machineWith(machines, engine.source)
		add := func(program, what string, limit float64, figure func(Row) *float64) {
			at, worst := on.worst(program, engine.source, figure)
			goals = append(goals, report.NewGoal(engine.name+", "+program+at+": "+what+suffix, limit, worst))
		}
		for _, program := range programs {
			add(program, "CPU time / AF_PACKET", cpuLimit, func(r Row) *float64 { return r.Ratio })
		}
		for _, program := range programs {
			if _, counted := ownTimeouts[program]; counted {
				add(program, "wake-ups / (timeouts + watermarks)", wakeLimit, func(r Row) *float64 { return r.WakeUps })
			}
		}
	}
	return goals
}

// worst is the greatest figure of a program's rows, and the rates that these are of. One row without a figure, and there is none.
func (m Machine) worst(program, source string, figure func(Row) *float64) (at string, worst *float64) {
	var rates []string
	known := true
	for _, row := range m.Rows {
		if row.Program != program || row.Source != source {
			continue
		}
		rates = append(rates, thousands(row.Rate))
		value := figure(row)
		known = known && value != nil
		if value != nil && (worst == nil || *value > *worst) {
			worst = value
		}
	}
	if len(rates) > 0 {
		at = " at " + strings.Join(rates, ", ") + " a second"
	}
	if !known {
		return at, nil
	}
	return at, worst
}

func machineWith(machines []Machine, source string) (on Machine, suffix string) {
	for _, emulated := range []bool{false, true} {
		for _, machine := range machines {
			if machine.Emulated == emulated && slices.ContainsFunc(machine.Rows, func(r Row) bool { return r.Source == source }) {
				if emulated {
					suffix = ", emulated"
				}
				return machine, suffix
			}
		}
	}
	return on, ""
}

// thousands writes 20,000 for 20000.
func thousands(n int) string {
	text := fmt.Sprint(n)
	var parts []string
	for len(text) > 3 {
		parts = append([]string{text[len(text)-3:]}, parts...)
		text = text[:len(text)-3]
	}
	return strings.Join(append([]string{text}, parts...), ",")
}
