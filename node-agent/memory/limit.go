// SPDX-License-Identifier: Apache-2.0

// Package memory limits how much of a node's memory queues may take.
package memory

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// agentReserve is the part of the memory limit that queues leave for the agent itself, in bytes.
const agentReserve = 16 << 20

// ErrLimit names the limit and what to do.
var ErrLimit = errors.New("queues count against the memory limit of the agent's container: make it greater, or the " +
	"queues smaller or fewer")

// memoryFiles are the files in which a version of cgroups reports memory: Linux,
// Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.
type memoryFiles struct {
	mount, controller, limit, usage string
	// cached names the lines of memory.stat with memory that the kernel can reclaim from the page cache.
	cached []string
}

var memoryVersions = []memoryFiles{
	{"/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
		[]string{"total_inactive_file", "total_active_file"}},
	{"/sys/fs/cgroup", "", "memory.max", "memory.current", []string{"inactive_file", "active_file"}},
}

// RoomFor refuses a map for which the memory limit of this process has no room. The kernel refuses it too, but only
// once everything up to the limit is taken. Then the next page that any thread of the agent touches gets the agent
// killed. If no limit can be read, only the kernel decides.
func RoomFor(size uint64) error {
	limit, used, cache, limited := ownMemory()
	if !limited || used+size+agentReserve <= limit {
		return nil
	}
	// This is read only now, because the kernel must add it up.
	used -= min(used, cache())
	if used+size+agentReserve <= limit {
		return nil
	}
	return fmt.Errorf("%w: %d bytes and a reserve of %d are more than the limit of %d leaves: %w",
		capture.ErrNoMemory, size, agentReserve, limit, ErrLimit)
}

// agentRoom returns how much the memory limit of this process leaves for queues. Without a limit, it returns more
// than there can be.
func agentRoom() uint64 {
	limit, used, cache, limited := ownMemory()
	if !limited {
		return math.MaxUint64
	}
	used -= min(used, cache())
	return limit - min(limit, used+agentReserve)
}

// ownMemory returns the memory limit of this process and its use, in bytes. cache returns how much of that the kernel
// can reclaim. limited is false if no limit can be read.
func ownMemory() (limit, used uint64, cache func() uint64, limited bool) {
	for _, files := range memoryVersions {
		folder := files.folder()
		limit, err := readNumber(filepath.Join(folder, files.limit))
		if err != nil {
			continue
		}
		used, err := readNumber(filepath.Join(folder, files.usage))
		if err != nil {
			continue
		}
		return limit, used, func() uint64 { return files.cache(folder) }, true
	}
	return 0, 0, nil, false
}

// folder returns this process's folder in the hierarchy, or the root of the mount: a container has no access to
// others.
func (f memoryFiles) folder() string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return f.mount
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 || fields[1] != f.controller {
			continue
		}
		// If only a part of the hierarchy is mounted, only the end of the path exists there.
		for path := strings.TrimPrefix(fields[2], "/"); path != ""; _, path, _ = strings.Cut(path, "/") {
			folder := filepath.Join(f.mount, path)
			if _, err := os.Stat(filepath.Join(folder, f.limit)); err == nil {
				return folder
			}
		}
	}
	return f.mount
}

// cache returns what the kernel can reclaim; 0 if it does not report that.
func (f memoryFiles) cache(folder string) uint64 {
	text, err := os.ReadFile(filepath.Join(folder, "memory.stat"))
	if err != nil {
		return 0
	}
	var sum uint64
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if slices.Contains(f.cached, name) {
			n, _ := strconv.ParseUint(value, 10, 64)
			sum += n
		}
	}
	return sum
}

// readNumber reads a file with one number. "max" is no number.
func readNumber(path string) (uint64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}
