// SPDX-License-Identifier: Apache-2.0

// generate writes what follows from the code of monitoring/ and from the metrics of agent and operator:
//
//	go run ./monitoring/generate           writes it
//	go run ./monitoring/generate --check   writes nothing; fails and names the files that are out of date
package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	files, err := all()
	if err == nil && len(os.Args) > 1 && os.Args[1] == "--check" {
		err = check(files)
	} else if err == nil {
		err = write(files)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "monitoring/generate: %v\n", err)
		os.Exit(1)
	}
}

// all are the files' contents by their paths below the repository's root.
func all() (map[string][]byte, error) {
	return map[string][]byte{"docs/metrics.md": metricsPage()}, nil
}

func check(files map[string][]byte) error {
	var stale []string
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, files[path]) {
			stale = append(stale, path)
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("out of date: %v: run 'make generate' and commit the result", stale)
	}
	return nil
}

func write(files map[string][]byte) error {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if is, err := os.ReadFile(path); err == nil && bytes.Equal(is, files[path]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[path], 0o644); err != nil {
			return err
		}
		fmt.Println("generated", path)
	}
	return nil
}
