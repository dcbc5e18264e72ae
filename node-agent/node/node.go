// SPDX-License-Identifier: Apache-2.0

// Package node reads what an agent must know of the machine that it runs on, and keeps small state files there.
package node

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// maxCPU is beyond any that a kernel is built for.
const maxCPU = 1<<16 - 1

// Identity is one boot of one kernel on one machine: what was set in a kernel is gone with it.
type Identity struct {
	BootID        string `json:"bootID"`
	KernelRelease string `json:"kernelRelease"`
}

// ReadIdentity reads it from the running kernel.
func ReadIdentity() (Identity, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, fmt.Errorf("read the boot id: %w", err)
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return Identity{}, fmt.Errorf("read the kernel's release: %w", err)
	}
	return Identity{BootID: strings.TrimSpace(string(id)), KernelRelease: unix.ByteSliceToString(uts.Release[:])}, nil
}

// PossibleCPUs is the number of CPUs that this kernel may ever have, and for which it makes per-CPU memory.
func PossibleCPUs() (int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/possible")
	if err != nil {
		return 0, fmt.Errorf("read the possible CPUs: %w", err)
	}
	return countCPUs(strings.TrimSpace(string(text)))
}

// countCPUs counts a kernel's CPU list, as 0-3,8-11.
func countCPUs(list string) (int, error) {
	cpus, err := capture.ParseNumbers(list, maxCPU)
	if err != nil {
		return 0, fmt.Errorf("%q is not a list of CPUs: %w", list, err)
	}
	return len(cpus), nil
}
