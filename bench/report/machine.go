// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Machine is where rows were measured. Benchmarks that have one only leave all but Kernel out.
type Machine struct {
	// Kernel is its release.
	Kernel string `json:"kernel"`
	Setting
}

// Setting is what benchmarks vary of a machine.
type Setting struct {
	// Series of the kernel, of e2e/kernels.
	Series string `json:"series,omitempty"`
	// Possible is how many processors the kernel expects, those included that are not there.
	Possible int `json:"possibleProcessors,omitempty"`
	// Producers is on how many of them packets arrive at once.
	Producers int `json:"producers,omitempty"`
}

func (m Machine) String() string {
	text := "Kernel " + m.Kernel
	if m.Possible > 0 {
		text += fmt.Sprintf(", possible processors: %d, producers: %d", m.Possible, m.Producers)
	}
	return text
}

func (s Setting) String() string {
	text := fmt.Sprintf("%s, %d possible processors", s.Series, s.Possible)
	if s.Producers > 1 {
		text += fmt.Sprintf(", %d producers", s.Producers)
	}
	return text
}

// prefix comes before a row's name, for benchmarks that have several settings.
func (s Setting) prefix() string {
	if s == (Setting{}) {
		return ""
	}
	return s.String() + ": "
}

// readMachine reads machine.json, which the benchmark's run leaves beside what it measured.
func readMachine(raw string) (Machine, error) {
	var m Machine
	path := filepath.Join(raw, "machine.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
