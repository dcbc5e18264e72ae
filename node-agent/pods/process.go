// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// podProcess is a process of a pod.
type podProcess struct {
	pid   int
	began uint64 // ticks since boot
}

// processesOf lists a pod's processes, the oldest first. The oldest is of its sandbox. Later ones may make namespaces
// of their own.
func processesOf(cgroups Cgroups, uid string) ([]podProcess, error) {
	pids, err := cgroups.Processes(uid)
	if err != nil && !errors.Is(err, ErrNoPod) {
		return nil, err
	}
	var processes []podProcess
	for _, pid := range pids {
		// Processes may end during this loop.
		if began, err := startTime(pid); err == nil {
			processes = append(processes, podProcess{pid, began})
		}
	}
	slices.SortFunc(processes, func(x, y podProcess) int { return cmp.Or(cmp.Compare(x.began, y.began), x.pid-y.pid) })
	return processes, nil
}

// namespace returns the number that the node's network namespace has for the process's network namespace. It is -1 if
// no interface leads there. It is also -1 for the node's own namespace, in which a process is before it enters its
// pod's. The kernel tells the number to every process.
func (p podProcess) namespace() (int, error) {
	id, err := netlink.GetNetNsIdByPid(p.pid)
	if errors.Is(err, unix.ESRCH) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("ask for the number of a pod's network namespace: %w", err)
	}
	// By now, another process may have the number.
	if began, err := startTime(p.pid); err != nil || began != p.began {
		return -1, nil
	}
	return id, nil
}

// startTime returns when a process began. This is field 22 of its stat, the 20th after the name. The name is in
// brackets and may contain anything.
func startTime(pid int) (uint64, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/stat"
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
