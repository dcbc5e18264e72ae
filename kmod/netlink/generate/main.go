// SPDX-License-Identifier: Apache-2.0

// generate writes what follows from kmod/netlink/ringcap.yaml, in the repository's root: the enumerations of linux/ringcap.h, and
// the node agent's messages.
//
//	go run ./kmod/netlink/generate           writes it
//	go run ./kmod/netlink/generate --check   writes nothing; fails and names the files that are out of date
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

const (
	specFile   = "kmod/netlink/ringcap.yaml"
	headerFile = "kmod/include/uapi/linux/ringcap.h"
	agentFile  = "node-agent/engine/kmod/uapi.go"
)

func main() {
	if err := run(".", len(os.Args) > 1 && os.Args[1] == "--check"); err != nil {
		fmt.Fprintf(os.Stderr, "kmod/netlink/generate: %v\n", err)
		os.Exit(1)
	}
}

// run writes the files that are out of date; with check it only returns an error if there are any.
func run(root string, check bool) error {
	text, err := os.ReadFile(filepath.Join(root, specFile))
	if err != nil {
		return err
	}
	header, err := os.ReadFile(filepath.Join(root, headerFile))
	if err != nil {
		return err
	}
	files, err := generate(text, header)
	if err != nil {
		return err
	}
	for _, path := range []string{headerFile, agentFile} {
		is, err := os.ReadFile(filepath.Join(root, path))
		switch {
		case err == nil && bytes.Equal(is, files[path]):
			continue
		case check:
			return fmt.Errorf("%s is out of date: run 'make generate' and commit the result", path)
		}
		if err := os.WriteFile(filepath.Join(root, path), files[path], 0o644); err != nil {
			return err
		}
		fmt.Println("generated", path)
	}
	return nil
}

// generate returns the files' contents by their paths. The header's is that of header with other enumerations.
func generate(text, header []byte) (map[string][]byte, error) {
	s, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", specFile, err)
	}
	filled, err := s.fillHeader(string(header))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", headerFile, err)
	}
	agent, err := s.goFile()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", agentFile, err)
	}
	return map[string][]byte{headerFile: []byte(filled), agentFile: agent}, nil
}
