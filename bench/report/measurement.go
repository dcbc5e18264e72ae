// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// measurement is one run of the workload with what the plugin counted during it.
type measurement struct {
	what     string
	who      string
	queues   int
	size     int
	packets  int
	received int
	// kernel, user and locked are instructions in all.
	kernel, user, locked uint64
	// functions has the instructions by function; "user" is all that is not the kernel's.
	functions map[string]uint64
}

// readRuns reads the workload's lines "run CASE WHO QUEUES SIZE PACKETS RECEIVED", the Nth of which belongs to the plugin's
// file run.N.
func readRuns(raw string) ([]measurement, error) {
	symbols, err := readSymbols(filepath.Join(raw, "symbols"))
	if err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(raw, "runs.txt"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var runs []measurement
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var m measurement
		if !strings.HasPrefix(lines.Text(), "run ") {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "run %s %s %d %d %d %d", &m.what, &m.who, &m.queues, &m.size, &m.packets, &m.received); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file.Name(), lines.Text(), err)
		}
		if err := m.readCounts(filepath.Join(raw, fmt.Sprintf("run.%d", len(runs))), symbols); err != nil {
			return nil, err
		}
		runs = append(runs, m)
	}
	if len(runs) == 0 && lines.Err() == nil {
		return nil, fmt.Errorf("%s has no runs", file.Name())
	}
	return runs, lines.Err()
}

// readCounts reads what the plugin wrote: "address instructions executions locked" for each block of code.
func (m *measurement) readCounts(path string, symbols symbolTable) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	m.functions = map[string]uint64{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var address, insns, count, locked uint64
		if _, err := fmt.Sscanf(lines.Text(), "%x %d %d %d", &address, &insns, &count, &locked); err != nil {
			return fmt.Errorf("%s: %q: %w", path, lines.Text(), err)
		}
		m.locked += locked * count
		if address>>63 == 0 {
			m.user += insns * count
			m.functions["user"] += insns * count
			continue
		}
		m.kernel += insns * count
		m.functions[symbols.name(address)] += insns * count
	}
	return lines.Err()
}
