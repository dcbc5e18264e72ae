// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// account is what the programs have taken until a moment: this process (the operator, and the little that the measuring
// takes) and its children, kube-apiserver and etcd.
type account struct {
	at       time.Time
	programs map[string]usage
}

// usage of one program.
type usage struct {
	cpu time.Duration
	// resident memory, now and at most, bytes.
	resident, peak int64
}

// operator is this process in an account.
const operator = "operator"

// take takes the account: proc_pid_stat(5), proc_pid_status(5).
func take(t *testing.T) account {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	a := account{time.Now(), map[string]usage{}}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		name, pid, parent, cpu := parseStat(t, string(text))
		switch os.Getpid() {
		case pid:
			a.programs[operator] = memory(t, pid, cpu)
		case parent:
			a.programs[name] = memory(t, pid, cpu)
		}
	}
	return a
}

func parseStat(t *testing.T, text string) (name string, pid, parent int, cpu time.Duration) {
	t.Helper()
	const ticksPerSecond = 100 // USER_HZ, the same on all that Go runs on
	head, rest, _ := strings.Cut(text, ") ")
	number, name, _ := strings.Cut(head, " (")
	var state string
	var user, system, skip int
	_, err := fmt.Sscan(number, &pid)
	require.NoError(t, err)
	_, err = fmt.Sscan(rest, &state, &parent, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &user, &system)
	require.NoError(t, err)
	return name, pid, parent, time.Duration(user+system) * time.Second / ticksPerSecond
}

func memory(t *testing.T, pid int, cpu time.Duration) usage {
	t.Helper()
	u := usage{cpu: cpu}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			u.resident = kib << 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			u.peak = kib << 10
		}
	}
	return u
}

// since is the CPU time of all programs from an earlier account to this one.
func (a account) since(earlier account) (all time.Duration) {
	for name, u := range a.programs {
		all += u.cpu - earlier.programs[name].cpu
	}
	return all
}

// log prints what a phase took that began with an account, and returns the account at its end.
func (a account) log(t *testing.T, phase string) account {
	t.Helper()
	now := take(t)
	took := now.at.Sub(a.at)
	parts := []string{}
	for name, u := range now.programs {
		cpu := u.cpu - a.programs[name].cpu
		parts = append(parts, fmt.Sprintf("%s %.1f s, %d MiB (at most %d)", name, cpu.Seconds(), u.resident>>20, u.peak>>20))
	}
	slices.Sort(parts)
	t.Logf("bench-operator: %s: %.1f s, %.1f s of CPU; %s", phase, took.Seconds(), now.since(a).Seconds(), strings.Join(parts, "; "))
	return now
}
