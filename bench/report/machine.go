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
}

func (m Machine) String() string {
	text := "Kernel " + m.Kernel
	if m.Possible > 0 {
		text += fmt.Sprintf(", possible processors: %d", m.Possible)
	}
	return text
}

// String is what comes before a row's name, where there is something to tell.
func (s Setting) String() string {
	if s == (Setting{}) {
		return ""
	}
	return fmt.Sprintf("%s, %d possible: ", s.Series, s.Possible)
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
