// SPDX-License-Identifier: Apache-2.0

// Command bpf follows what is pinned in a bpffs beyond the removal of the pins: the kernel keeps a map, program or link for as
// long as anything refers to it.
//
//	bpf pinned FOLDER    prints "map ID NAME", "prog ID NAME" or "link ID TYPE" of what is pinned below the folder, and "prog ID" of links
//	bpf alive <LINES     prints those of such lines whose objects the kernel has still
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/pin"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "pinned":
		err = pinned(os.Args[2], os.Stdout)
	case len(os.Args) == 2 && os.Args[1] == "alive":
		err = alive(os.Stdin, os.Stdout)
	default:
		err = errors.New("usage: bpf pinned FOLDER | bpf alive <LINES")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bpf:", err)
		os.Exit(1)
	}
}

func pinned(folder string, out io.Writer) error {
	for each, err := range pin.WalkDir(folder, nil) {
		if err != nil {
			return err
		}
		if err := describe(each.Object, out); err != nil {
			return fmt.Errorf("%s: %w", each.Path, err)
		}
	}
	return nil
}

func describe(object io.Closer, out io.Writer) error {
	switch object := object.(type) {
	case *ebpf.Map:
		info, err := object.Info()
		if err != nil {
			return err
		}
		id, _ := info.ID()
		fmt.Fprintln(out, "map", id, info.Name)
	case *ebpf.Program:
		info, err := object.Info()
		if err != nil {
			return err
		}
		id, _ := info.ID()
		fmt.Fprintln(out, "prog", id, info.Name)
	case link.Link:
		info, err := object.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "link %d %v\nprog %d\n", info.ID, info.Type, info.Program)
	}
	return nil
}

func alive(lines io.Reader, out io.Writer) error {
	scanner := bufio.NewScanner(lines)
	for scanner.Scan() {
		var kind string
		var id uint32
		if _, err := fmt.Sscan(scanner.Text(), &kind, &id); err != nil {
			return fmt.Errorf("%q: %w", scanner.Text(), err)
		}
		object, err := byID(kind, id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("%s %d: %w", kind, id, err)
		default:
			fmt.Fprintln(out, scanner.Text())
			object.Close()
		}
	}
	return scanner.Err()
}

func byID(kind string, id uint32) (io.Closer, error) {
	switch kind {
	case "map":
		return ebpf.NewMapFromID(ebpf.MapID(id))
	case "prog":
		return ebpf.NewProgramFromID(ebpf.ProgramID(id))
	case "link":
		return link.NewFromID(link.ID(id))
	}
	return nil, fmt.Errorf("no kind %q", kind)
}
