// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/plan"
)

// threadedTunable is the kernel's threaded NAPI: a thread polls each RX queue. In PF_RING this is TNAPI.
func threadedTunable(sys string) tunable {
	path := func(dev string) string { return filepath.Join(sys, "class", "net", dev, "threaded") }
	return tunable{
		name: "threadedPolling", setting: plan.SettingThreadedPolling, stage: stageThreads,
		read: func(dev string) (string, error) {
			text, err := os.ReadFile(path(dev))
			if errors.Is(err, os.ErrNotExist) {
				return "", fmt.Errorf("%s is not there: %w", path(dev), errNotSupported)
			}
			return onOff(strings.TrimSpace(string(text)) != "0"), err
		},
		write: func(dev, value string) error {
			text := "0"
			if value == on {
				text = "1"
			}
			err := os.WriteFile(path(dev), []byte(text), 0)
			if errors.Is(err, unix.EOPNOTSUPP) {
				return fmt.Errorf("it polls nothing (NAPI) as it is set now: %w", errNotSupported)
			}
			return err
		},
	}
}

// pollingCPUsTunable holds the CPUs of the polling threads: "napi/eth0-8193=2 napi/eth0-8194=0-3". The threads exist
// while polling is threaded. Threads that ended need nothing.
func pollingCPUsTunable(sys string) tunable {
	return tunable{
		name: "threadedPolling.cpus", setting: plan.SettingPollingCPUs, stage: stagePlacement,
		resolve: func(dev, desired string) (string, error) {
			cpus, err := parseCPUs(desired)
			if err != nil {
				return "", fmt.Errorf("%w: %w", err, errOutOfRange)
			}
			threads, err := pollingThreads(sys, dev)
			return pairs(assign(threads, cpus)), err
		},
		read: func(dev string) (string, error) {
			threads, err := pollingThreads(sys, dev)
			if err != nil {
				return "", err
			}
			pinned := map[string]string{}
			for _, t := range threads {
				var set unix.CPUSet
				if err := unix.SchedGetaffinity(t.pid, &set); err != nil {
					return "", fmt.Errorf("read the CPUs of %s: %w", t.name, err)
				}
				pinned[t.name] = formatCPUs(&set)
			}
			return pairs(pinned), nil
		},
		write: func(dev, value string) error {
			threads, err := pollingThreads(sys, dev)
			if err != nil {
				return err
			}
			return pin(threads, parsePairs(value))
		},
	}
}

// thread is a kernel thread that polls.
type thread struct {
	name string
	pid  int
}

// pollingThreads finds an interface's threads by their name, in the order of their NAPI ids, which is mostly the
// order of the queues. Before Linux 6.8, only the name tells which interface a thread polls. There it also finds
// threads of an interface with the same name in another network namespace.
func pollingThreads(sys, dev string) ([]thread, error) {
	text, err := os.ReadFile(filepath.Join(sys, "class", "net", dev, "threaded"))
	if err != nil || strings.TrimSpace(string(text)) == "0" {
		return nil, nil
	}
	processes, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, err
	}
	var threads []thread
	for _, path := range processes {
		name, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(name), "napi/"+dev+"-") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			threads = append(threads, thread{strings.TrimSpace(string(name)), pid})
		}
	}
	slices.SortFunc(threads, func(x, y thread) int { return x.number() - y.number() })
	return threads, nil
}

// number returns the NAPI id, which is at the end of the name.
func (t thread) number() int {
	n, _ := strconv.Atoi(t.name[strings.LastIndex(t.name, "-")+1:])
	return n
}

// assign gives each thread a CPU, in turn.
func assign(threads []thread, cpus []int) map[string]string {
	pinned := map[string]string{}
	for i, t := range threads {
		pinned[t.name] = strconv.Itoa(cpus[i%len(cpus)])
	}
	return pinned
}

func pin(threads []thread, pinned map[string]string) error {
	for _, t := range threads {
		text, ok := pinned[t.name]
		if !ok {
			continue
		}
		cpus, err := parseCPUs(text)
		if err != nil {
			return err
		}
		var set unix.CPUSet
		for _, cpu := range cpus {
			set.Set(cpu)
		}
		err = unix.SchedSetaffinity(t.pid, &set)
		if errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("none of the CPUs %s is there: %w", text, errOutOfRange)
		}
		if err != nil {
			return fmt.Errorf("put %s on CPU %s: %w", t.name, text, err)
		}
	}
	return nil
}

// maxCPU is the greatest CPU number that unix.CPUSet can hold.
const maxCPU = 1023

// parseCPUs reads a list as in cpuset(7), such as 0-2,5.
func parseCPUs(text string) ([]int, error) {
	cpus, err := capture.ParseNumbers(text, maxCPU)
	if err != nil {
		return nil, fmt.Errorf("CPUs: %w", err)
	}
	return cpus, nil
}

func formatCPUs(set *unix.CPUSet) string {
	const limit = 1024
	var parts []string
	for cpu := 0; cpu < limit; cpu++ {
		if !set.IsSet(cpu) {
			continue
		}
		last := cpu
		for last+1 < limit && set.IsSet(last+1) {
			last++
		}
		if last == cpu {
			parts = append(parts, strconv.Itoa(cpu))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", cpu, last))
		}
		cpu = last
	}
	return strings.Join(parts, ",")
}
