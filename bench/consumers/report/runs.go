// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Run is one trial. What has no comment is that of trial.c.
type Run struct {
	Program string `json:"program"`
	// Source is where packets come from: af-packet, ebpf or kmod.
	Source string `json:"source"`
	Round  int    `json:"round"`
	// Rate is how many packets a second were asked for, Sent how many were sent, in SendingSeconds.
	Rate           int     `json:"rate"`
	Sent           int     `json:"sent"`
	SendingSeconds float64 `json:"sendingSeconds"`
	// WindowSeconds is from the first packet until all must have been read. CPUSeconds, user and system, and the switches are of it.
	WindowSeconds       float64 `json:"windowSeconds"`
	CPUSeconds          float64 `json:"cpuSeconds"`
	VoluntarySwitches   int     `json:"voluntarySwitches"`
	InvoluntarySwitches int     `json:"involuntarySwitches"`
	// What begins with Whole is of the program's whole life, from wait4.
	WholeUserSeconds         float64 `json:"wholeUserSeconds"`
	WholeSystemSeconds       float64 `json:"wholeSystemSeconds"`
	WholeVoluntarySwitches   int     `json:"wholeVoluntarySwitches"`
	WholeInvoluntarySwitches int     `json:"wholeInvoluntarySwitches"`
	// Status is the program's exit status.
	Status int `json:"status"`
	// Received is how many packets the program says that it got, Dropped how many its source lost.
	Received int `json:"received"`
	Dropped  int `json:"dropped"`
}

// Skipped is what was not run, and why.
type Skipped struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// words are what a program says of the packets at its end; the last time counts.
type words struct{ received, dropped *regexp.Regexp }

var programWords = map[string]words{
	"tcpdump": {
		regexp.MustCompile(`^(\d+) packets? captured`),
		regexp.MustCompile(`^(\d+) packets? dropped by kernel`),
	},
	"dumpcap": {
		regexp.MustCompile(`^Packets captured: (\d+)`),
		regexp.MustCompile(`^Packets received/dropped on interface '.*': \d+/(\d+) `),
	},
	// Counters of libpcap are those of a second before, but for the summary, which AF_PACKET does not have.
	"suricata": {
		regexp.MustCompile(`^decoder\.pkts +\| Total +\| (\d+)`),
		regexp.MustCompile(`pcap total:\d+ recv:\d+ drop:(\d+)|device: mirror0: packets: \d+, drops: (\d+) `),
	},
}

// measured is what one machine's runs.txt has.
type measured struct {
	machine Machine
	runs    []Run
	// failed has why, by row.
	failed map[key]string
}

// key is a row.
type key struct {
	program, source string
	rate            int
}

// readRuns reads what run and trials have printed: "machine" and what it is; "| " and a line of a program's, then "run" and the
// figures of this trial; "failed PROGRAM SOURCE RATE ROUND STATUS"; "skip WHAT: WHY"; "load BEFORE AFTER".
func readRuns(from io.Reader) (measured, error) {
	m := measured{failed: map[key]string{}}
	var said []string
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "machine":
			if err := json.Unmarshal([]byte(rest), &m.machine); err != nil {
				return m, fmt.Errorf("machine %s: %w", rest, err)
			}
		case "|":
			// dumpcap begins a line over one that it counted in.
			said = append(said, strings.Trim(rest, "\r"))
		case "run":
			run, err := readRun(rest, said)
			if err != nil {
				return m, err
			}
			m.runs = append(m.runs, run)
			said = nil
		case "failed":
			if err := m.fail(rest); err != nil {
				return m, err
			}
			said = nil
		case "skip":
			what, why, _ := strings.Cut(rest, ": ")
			m.machine.Skipped = append(m.machine.Skipped, Skipped{what, why})
		case "load":
			if _, err := fmt.Sscan(rest, &m.machine.LoadBefore, &m.machine.LoadAfter); err != nil {
				return m, fmt.Errorf("load %s: %w", rest, err)
			}
		}
	}
	if m.machine.Kernel == "" && lines.Err() == nil {
		return m, errors.New("no line says which machine this is: the trials did not begin")
	}
	return m, lines.Err()
}

func readRun(figures string, said []string) (Run, error) {
	var run Run
	if err := json.Unmarshal([]byte(figures), &run); err != nil {
		return run, fmt.Errorf("run %s: %w", figures, err)
	}
	patterns, ok := programWords[run.Program]
	if !ok {
		return run, fmt.Errorf("run %s: what %q says of its packets is not known", figures, run.Program)
	}
	run.Received, run.Dropped = lastNumber(patterns.received, said), lastNumber(patterns.dropped, said)
	return run, nil
}

// lastNumber is that of the last line that matches; -1 if there is none.
func lastNumber(pattern *regexp.Regexp, lines []string) int {
	number := -1
	for _, line := range lines {
		if match := pattern.FindStringSubmatch(line); match != nil {
			number, _ = strconv.Atoi(strings.Join(match[1:], ""))
		}
	}
	return number
}

func (m *measured) fail(line string) error {
	var k key
	var round, status int
	if _, err := fmt.Sscanf(line, "%s %s %d %d %d", &k.program, &k.source, &k.rate, &round, &status); err != nil {
		return fmt.Errorf("failed %s: %w", line, err)
	}
	m.failed[k] = fmt.Sprintf("round %d: the trial ended with %d", round, status)
	if status == late {
		m.failed[k] = fmt.Sprintf("round %d: the sender was late each time", round)
	}
	return nil
}

// late is trial's exit status when the sender did not keep the rate.
const late = 3

// wrong says why a run's figures mean nothing, if so.
func (r Run) wrong() string {
	switch {
	case r.Status != 0:
		return fmt.Sprintf("round %d: %s ended with %d", r.Round, r.Program, r.Status)
	case r.Received < 0 || r.Dropped < 0:
		return fmt.Sprintf("round %d: %s does not say what it received and what was dropped", r.Round, r.Program)
	case r.Received+r.Dropped != r.Sent:
		return fmt.Sprintf("round %d: %d sent, but %d received and %d dropped", r.Round, r.Sent, r.Received, r.Dropped)
	}
	return ""
}
