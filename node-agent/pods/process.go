// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/access"
)

// namespaces are network namespaces by the UID of their pod. They live as long as they are open.
type namespaces map[string]*os.File

func (n namespaces) close() {
	for _, file := range n {
		file.Close()
	}
}

// process is a pod's.
type process struct {
	pid   int
	began uint64 // ticks since boot
}

// openNamespaces finds the namespaces of the wanted pods by their processes. The oldest of a pod counts, which is its
// sandbox's: later ones may make namespaces of their own. Of a pod without a process in another namespace than the
// node's there is none, as of one that is about to enter it.
func openNamespaces(proc string, wanted map[string]bool) (namespaces, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("list the node's processes: %w", err)
	}
	own, err := inode("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	oldest := map[string]process{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// Processes end while they are looked at.
		uid, err := access.PodOf(proc, pid)
		if err != nil || !wanted[uid] {
			continue
		}
		began, err := beginning(proc, pid)
		if err != nil {
			continue
		}
		if other, known := oldest[uid]; known && other.began <= began {
			continue
		}
		if is, err := inode(namespacePath(proc, pid)); err == nil && is != own {
			oldest[uid] = process{pid, began}
		}
	}
	return open(proc, oldest)
}

func open(proc string, oldest map[string]process) (namespaces, error) {
	found := namespaces{}
	for uid, p := range oldest {
		file, err := os.Open(namespacePath(proc, p.pid))
		if err != nil {
			continue
		}
		// Its number may be another's by now.
		if began, err := beginning(proc, p.pid); err != nil || began != p.began {
			file.Close()
			continue
		}
		found[uid] = file
	}
	return found, nil
}

func namespacePath(proc string, pid int) string {
	return filepath.Join(proc, strconv.Itoa(pid), "ns", "net")
}

func inode(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, fmt.Errorf("look at %s: %w", path, err)
	}
	return st.Ino, nil
}

// beginning is when a process began: field 22 of its stat, the 20th after the name, which is in brackets and may hold
// anything.
func beginning(proc string, pid int) (uint64, error) {
	path := filepath.Join(proc, strconv.Itoa(pid), "stat")
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	const field = 19
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= field {
		return 0, fmt.Errorf("%s is too short", path)
	}
	return strconv.ParseUint(string(fields[field]), 10, 64)
}
