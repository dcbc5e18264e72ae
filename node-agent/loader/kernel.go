// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/engine/kmod"
)

// RunningKernel is the kernel that this process runs on.
type RunningKernel struct{}

// Probe implements Kernel.
func (RunningKernel) Probe() (kmod.Info, error) { return kmod.Probe() }

// Load implements Kernel by finit_module(2), with no parameters.
func (RunningKernel) Load(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.FinitModule(int(file.Fd()), "", 0)
}

// SupportsModules implements Kernel: a kernel without modules has no list of them.
func (RunningKernel) SupportsModules() bool {
	_, err := os.Stat("/proc/modules")
	return err == nil
}

// Lockdown implements Kernel; the mode in force is the bracketed one.
func (RunningKernel) Lockdown() string {
	text, err := os.ReadFile("/sys/kernel/security/lockdown")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "[")
	mode, _, _ := strings.Cut(rest, "]")
	return mode
}

// Log implements Kernel: the last lines of the kernel's log that name the module. It is empty for those who may not
// read the log (CAP_SYSLOG where dmesg is restricted).
func (RunningKernel) Log() string {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var last []string
	record := make([]byte, 8192)
	for {
		n, err := unix.Read(fd, record)
		if errors.Is(err, unix.EPIPE) {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		_, text, found := strings.Cut(string(record[:n]), ";")
		line, _, _ := strings.Cut(text, "\n")
		if found && strings.HasPrefix(line, "ringcap: ") {
			last = append(last, line)
		}
	}
	return strings.Join(last[max(0, len(last)-3):], " / ")
}
