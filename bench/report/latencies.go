// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Latency is how long packets took at a rate, from their sender to the far end of what is measured.
type Latency struct {
	Case       string `json:"case"`
	Who        string `json:"who"`
	Queues     int    `json:"queues"`
	PacketSize int    `json:"packetSize"`
	// PacketsPerSecond of emulated time, in which an instruction takes a nanosecond.
	PacketsPerSecond int `json:"packetsPerSecond"`
	// Group is how many packets are sent at once.
	Group int `json:"group"`
	// P50, P99 and Most are in nanoseconds of emulated time.
	P50  int `json:"p50"`
	P99  int `json:"p99"`
	Most int `json:"most"`
}

// LatencyKey names one.
type LatencyKey struct {
	Case, Who     string
	Queues, Group int
}

func (l Latency) key() LatencyKey { return LatencyKey{l.Case, l.Who, l.Queues, l.Group} }

// readLatencies reads the workload's lines "latency CASE WHO QUEUES SIZE RATE GROUP P50 P99 MOST".
func readLatencies(raw string) ([]Latency, error) {
	file, err := os.Open(filepath.Join(raw, "runs.txt"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var latencies []Latency
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var l Latency
		if !strings.HasPrefix(lines.Text(), "latency ") {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "latency %s %s %d %d %d %d %d %d %d", &l.Case, &l.Who, &l.Queues, &l.PacketSize,
			&l.PacketsPerSecond, &l.Group, &l.P50, &l.P99, &l.Most); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file.Name(), lines.Text(), err)
		}
		latencies = append(latencies, l)
	}
	return latencies, lines.Err()
}

func findLatency(latencies []Latency, key LatencyKey) (Latency, bool) {
	for _, l := range latencies {
		if l.key() == key {
			return l, true
		}
	}
	return Latency{}, false
}

// LimitLatency is a goal: that 99 of 100 packets take at most limit microseconds.
func (r *Rows) LimitLatency(name string, limit float64, key LatencyKey) {
	l, ok := findLatency(r.latencies, key)
	if !ok {
		r.goals = append(r.goals, NewGoal(name, limit, nil))
		return
	}
	value := microseconds(l.P99)
	r.goals = append(r.goals, NewGoal(name, limit, &value))
}

// LatencyCell is the median and the 99th percentile, in microseconds.
func (t *Tables) LatencyCell(key LatencyKey) string {
	l, ok := findLatency(t.latencies, key)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.1f, %.1f", microseconds(l.P50), microseconds(l.P99))
}

func microseconds(ns int) float64 { return float64(ns) / 1000 }

func printLatencies(w io.Writer, latencies []Latency) {
	if len(latencies) > 0 {
		fmt.Fprintln(w, "\nLatencies, microseconds, p50, p99 and most:")
	}
	for _, l := range latencies {
		fmt.Fprintf(w, "  %s, %s x%d, %d bytes, %d packets/s in groups of %d: %.1f, %.1f, %.1f\n", l.Case, l.Who, l.Queues,
			l.PacketSize, l.PacketsPerSecond, l.Group, microseconds(l.P50), microseconds(l.P99), microseconds(l.Most))
	}
}
