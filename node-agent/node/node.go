// SPDX-License-Identifier: Apache-2.0

// Package node reads what an agent must know of its machine, and keeps small state files there.
package node

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// maxCPU is higher than the CPU numbers of any kernel.
const maxCPU = 1<<16 - 1

// Identity identifies one boot of one kernel on one machine. Settings in a kernel are lost with it.
type Identity struct {
	BootID        string `json:"bootID"`
	KernelRelease string `json:"kernelRelease"`
}

// ReadIdentity reads the identity from the running kernel.
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

// PossibleCPUs returns the number of CPUs that this kernel may ever have, and for which it makes per-CPU memory. It
// reads the number once.
func PossibleCPUs() (int, error) { return readPossibleCPUs() }

var readPossibleCPUs = sync.OnceValues(func() (int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/possible")
	if err != nil {
		return 0, fmt.Errorf("read the possible CPUs: %w", err)
	}
	return countCPUs(strings.TrimSpace(string(text)))
})

// countCPUs counts the CPUs of a kernel's list such as 0-3,8-11.
func countCPUs(list string) (int, error) {
	cpus, err := capture.ParseNumbers(list, maxCPU)
	if err != nil {
		return 0, fmt.Errorf("%q is not a list of CPUs: %w", list, err)
	}
	return len(cpus), nil
}
