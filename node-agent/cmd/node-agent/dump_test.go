// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/safchain/ethtool"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/ringcap/ringcap/node-agent/engine/kmod"
)

// dump tells what there is on the machine, counters and processes apart, in lines that are the same for the same
// state: every file and pin, what the pins describe, what is attached to the interfaces and how they are set, what
// the module has, and what the agent holds open of the eBPF engine.
func (m *machine) dump(agent *process) map[string]int {
	m.t.Helper()
	lines := slices.Concat(m.dumpFiles(), m.dumpTables(), m.dumpInterfaces(), m.dumpModule(), m.dumpDescriptors(agent.Process.Pid))
	times := map[string]int{}
	for _, line := range lines {
		times[line]++
	}
	return times
}

// difference lists what one dump has more of than the other.
func difference(want, got map[string]int) (lines []string) {
	for line, times := range want {
		if got[line] < times {
			lines = append(lines, "missing: "+line)
		}
	}
	for line, times := range got {
		if want[line] < times {
			lines = append(lines, "surplus: "+line)
		}
	}
	return lines
}

// place is where in the node's tables a cluster is, which depends on where there was room.
var place = regexp.MustCompile(`(/clusters/[^/]+)_\d+`)

func (m *machine) dumpFiles() (lines []string) {
	for _, root := range []string{"bpf", "run"} {
		require.NoError(m.t, filepath.WalkDir(m.path(root), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // somebody removed it
			}
			require.NoError(m.t, err)
			line := place.ReplaceAllString(strings.TrimPrefix(path, m.base), "$1") + " " + entry.Type().String()
			switch entry.Name() {
			case "description":
				line += " " + m.description(path)
			case "nic.json":
				text, err := os.ReadFile(path)
				require.NoError(m.t, err)
				line += " " + string(text)
			}
			lines = append(lines, line)
			return nil
		}))
	}
	return lines
}

// description is the content of a pinned description, without the fields that vary between runs.
func (m *machine) description(path string) string {
	pinned, err := ebpf.LoadPinnedMap(path, nil)
	require.NoError(m.t, err)
	defer pinned.Close()
	content, err := pinned.LookupBytes(uint32(0))
	require.NoError(m.t, err)
	var fields map[string]any
	require.NoError(m.t, json.Unmarshal(content[4:4+binary.NativeEndian.Uint32(content)], &fields))
	for _, varies := range []string{"Base", "Bases", "Made", "Fingerprint"} {
		delete(fields, varies)
	}
	text, err := json.Marshal(fields)
	require.NoError(m.t, err)
	return string(text)
}

// dumpTables counts the places of the node's tables that are taken, and those with a consumer.
func (m *machine) dumpTables() (lines []string) {
	for _, name := range []string{"occupied", "attached"} {
		table, err := ebpf.LoadPinnedMap(filepath.Join(m.pinDir(), "v3", "tables", name), nil)
		if errors.Is(err, os.ErrNotExist) {
			continue // somebody removed it, and it is about to come back
		}
		require.NoError(m.t, err)
		// One of them has an element for each place, the other one element of all.
		taken, places := 0, make([]uint32, table.ValueSize()/4)
		for at := range table.MaxEntries() {
			require.NoError(m.t, table.Lookup(at, places))
			for _, value := range places {
				if value != 0 {
					taken++
				}
			}
		}
		table.Close()
		lines = append(lines, fmt.Sprintf("table %s: %d places", name, taken))
	}
	return lines
}

func (m *machine) dumpInterfaces() (lines []string) {
	tool, err := ethtool.NewEthtool()
	require.NoError(m.t, err)
	defer tool.Close()
	links, err := netlink.LinkList()
	require.NoError(m.t, err)
	for _, l := range links {
		a := l.Attrs()
		features, err := tool.Features(a.Name)
		require.NoError(m.t, err)
		lines = append(lines, fmt.Sprintf("interface %s: flags %x promiscuity %d xdp %v features %v", a.Name, a.RawFlags, a.Promisc,
			a.Xdp != nil && a.Xdp.Attached, features))
		lines = append(lines, m.dumpPrograms(a.Index)...)
		qdiscs, err := netlink.QdiscList(l)
		require.NoError(m.t, err)
		for _, q := range qdiscs {
			lines = append(lines, fmt.Sprintf("queueing discipline of %s: %s %x", a.Name, q.Type(), q.Attrs().Parent))
		}
		for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
			filters, _ := netlink.FilterList(l, parent) // none without a queueing discipline
			for _, f := range filters {
				b, ok := f.(*netlink.BpfFilter)
				if !ok {
					continue
				}
				line := fmt.Sprintf("filter of %s: %s %x", a.Name, b.Name, parent)
				if strings.HasPrefix(b.Name, "ringcap:") {
					line += " program " + m.programName(ebpf.ProgramID(b.Id))
				} else {
					line += fmt.Sprintf(" priority %d handle %x program %d", b.Attrs().Priority, b.Attrs().Handle, b.Id)
				}
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// dumpPrograms lists what is attached by tcx, in order.
func (m *machine) dumpPrograms(index int) (lines []string) {
	for _, hook := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
		attached, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: hook})
		if err != nil {
			continue // a kernel without tcx
		}
		for i, p := range attached.Programs {
			lines = append(lines, fmt.Sprintf("program %d at %s of %d: %s", i, hook, index, m.programName(p.ID)))
		}
	}
	return lines
}

// programName is empty for a program that is about to go.
func (m *machine) programName(id ebpf.ProgramID) string {
	program, err := ebpf.NewProgramFromID(id)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	require.NoError(m.t, err)
	defer program.Close()
	info, err := program.Info()
	require.NoError(m.t, err)
	return info.Name
}

// setting is a line of /proc/net/ringcap that tells how something is set.
var setting = regexp.MustCompile(`^(Name|Index|Transparent mode|Owned|Tap|Snap length|Filter|Output|Lanes|Lane size|Attached|Watermark|Timeout us|Ring|Promiscuity):`)

func (m *machine) dumpModule() (lines []string) {
	if _, err := kmod.Probe(); err != nil {
		return nil
	}
	observed, err := kmod.New(m.path("run"), 1).Observe(context.Background())
	require.NoError(m.t, err)
	for name, ring := range observed.Rings {
		lines = append(lines, fmt.Sprintf("ring %s has the rules %d", name, slices.Sorted(maps.Keys(ring.Rules))))
	}
	files, err := filepath.Glob("/proc/thread-self/net/ringcap/*/*")
	require.NoError(m.t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(m.t, err)
		for line := range strings.Lines(string(text)) {
			if setting.MatchString(line) {
				lines = append(lines, strings.TrimPrefix(file, "/proc/thread-self/")+": "+strings.TrimSpace(line))
			}
		}
	}
	return lines
}

// dumpDescriptors counts a process's descriptors of maps, programs and links.
func (m *machine) dumpDescriptors(pid int) (lines []string) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(m.t, err)
	held := map[string]int{}
	for _, file := range files {
		if what, _ := os.Readlink(file); strings.HasPrefix(what, "anon_inode:bpf") {
			held[strings.ReplaceAll(what, "_link", "-link")]++ // kernels spell it in two ways
		}
	}
	for _, what := range slices.Sorted(maps.Keys(held)) {
		lines = append(lines, fmt.Sprintf("the agent holds %d %s", held[what], what))
	}
	return lines
}
