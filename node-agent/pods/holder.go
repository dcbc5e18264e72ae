// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// process describes a process.
type process struct {
	// there means that it has not ended.
	there bool
	name  string
	// start is its start time, in the kernel's ticks since boot. It tells processes of the same number apart.
	start uint64
	// pod is the UID of the pod that it runs in; empty if none is found.
	pod string
	// host means that it is in no container.
	host bool
}

// process describes the process with a number. 0 is a process that is not visible.
func (a Access) process(pid int) process {
	if pid == 0 {
		return process{}
	}
	name, state, start := a.stat(pid)
	if state == "" || state == "Z" || state == "X" {
		return process{}
	}
	// A process without a pod is not refused here.
	uid, _ := a.Cgroups.PodOf(a.Proc, pid)
	return process{there: true, name: name, start: start, pod: uid, host: uid == "" && a.isHosts(pid)}
}

// isHosts reports whether a process has the node's own mount namespace. A process without a pod need not have it,
// because a deleted pod has no cgroup any more.
func (a Access) isHosts(pid int) bool {
	own, err := os.Readlink(filepath.Join(a.Proc, strconv.Itoa(pid), "ns", "mnt"))
	if err != nil {
		return false
	}
	nodes, err := os.Readlink(filepath.Join(a.Proc, "1", "ns", "mnt"))
	return err == nil && own == nodes
}

// stat returns a process's name, state and start. They are empty for a process that does not exist.
func (a Access) stat(pid int) (name, state string, start uint64) {
	stat, err := os.ReadFile(filepath.Join(a.Proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", "", 0
	}
	return parseStat(stat)
}

// parseStat reads the name in /proc/<pid>/stat, and the state and the start that follow it. The name may contain
// anything.
func parseStat(stat []byte) (name, state string, start uint64) {
	// Indexes of the fields that follow the name.
	const stateAt, startAt = 0, 19
	from, to := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if from < 0 || to < from {
		return "", "", 0
	}
	fields := strings.Fields(string(stat[to+1:]))
	if len(fields) == 0 {
		return "", "", 0
	}
	if len(fields) > startAt {
		start, _ = strconv.ParseUint(fields[startAt], 10, 64)
	}
	return string(stat[from+1 : to]), fields[stateAt], start
}

// holder returns the process that attached, while it exists. Another process may have got its number since the
// holding was first seen.
func (k *Keeper) holder(h Holding) process {
	p := k.Access.process(h.PID)
	k.mu.Lock()
	defer k.mu.Unlock()
	if start, seen := k.starts[h]; seen && p.start > start {
		return process{}
	}
	return p
}

// Who describes a holding's process, for messages. Any goroutine may call it.
func (k *Keeper) Who(h Holding) string {
	p := k.holder(h)
	if p.there {
		return k.describe(h.PID, p)
	}
	var names []string
	for _, pid := range k.openers(h.Queue) {
		if p := k.Access.process(pid); p.there {
			names = append(names, k.describe(pid, p))
		}
	}
	if len(names) == 0 {
		names = []string{"a process that is not visible to the agent"}
	}
	text := strings.Join(names, " and ")
	if h.PID != 0 {
		text += fmt.Sprintf(", with the descriptors of process %d, which has ended", h.PID)
	}
	return text
}

func (k *Keeper) describe(pid int, p process) string {
	text := fmt.Sprintf("process %d (%s)", pid, p.name)
	if p.host {
		return text + ", which runs in no pod"
	}
	if p.pod == "" {
		return text
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if pod, known := k.names[p.pod]; known {
		return text + " of pod " + pod.String()
	}
	return text + " of the pod with UID " + p.pod
}

// scanInterval is how long a scan for open device nodes stays valid. Scanning all descriptors of a node is expensive.
const scanInterval = 30 * time.Second

// openers returns the processes that have the queue's device node open.
func (k *Keeper) openers(queue capture.QueueID) []int {
	k.scan.Lock()
	defer k.scan.Unlock()
	if now := k.Now(); k.opened == nil || now.Sub(k.scanned) >= scanInterval {
		k.opened, k.scanned = k.Access.openers(), now
	}
	return k.opened[fmt.Sprintf("%s/%d", queue.Cluster, queue.Queue)]
}

// openers returns the processes that have device nodes of queues open, by CLUSTER/QUEUE. Paths differ between
// containers, but end in that.
func (a Access) openers() map[string][]int {
	found := map[string][]int{}
	links, err := filepath.Glob(filepath.Join(a.Proc, "[0-9]*", "fd", "*"))
	if err != nil {
		return found
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		folder, queue := filepath.Split(target)
		cluster := filepath.Base(folder)
		parent := filepath.Dir(filepath.Clean(folder))
		if err != nil || !strings.HasSuffix(parent, "/ringcap") && !strings.HasSuffix(parent, "/ringcap/.dev") {
			continue
		}
		node := cluster + "/" + queue
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(link))))
		if pids := found[node]; err == nil && (len(pids) == 0 || pids[len(pids)-1] != pid) {
			found[node] = append(pids, pid)
		}
	}
	return found
}
