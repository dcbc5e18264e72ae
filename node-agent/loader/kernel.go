// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/engine/kmod"
	"github.com/ringcap/ringcap/operator/api/sizing"
)

// RunningKernel is the kernel that this process runs on.
type RunningKernel struct {
	// Sys is a sysfs that contains the securityfs. A container's own /sys has none.
	Sys string
	// RunDir is the folder of the module's device nodes.
	RunDir string
}

// Probe implements Kernel.
func (RunningKernel) Probe() (kmod.Info, error) { return kmod.Probe() }

// Load implements Kernel by finit_module(2), with no parameters.
func (RunningKernel) Load(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	log := openLog()
	defer log.close()
	err = unix.FinitModule(int(file.Fd()), "", 0)
	return log.read(), err
}

// LoadContent implements Kernel by init_module(2).
func (RunningKernel) LoadContent(module []byte) (string, error) {
	log := openLog()
	defer log.close()
	err := unix.InitModule(module, "")
	return log.read(), err
}

// SupportsModules implements Kernel. A kernel without module support has no list of modules.
func (RunningKernel) SupportsModules() bool {
	_, err := os.Stat("/proc/modules")
	return err == nil
}

// SignaturesEnforced implements Kernel.
func (k RunningKernel) SignaturesEnforced() bool {
	text, err := os.ReadFile(filepath.Join(k.Sys, "module/module/parameters/sig_enforce"))
	return err == nil && strings.HasPrefix(string(text), "Y")
}

// Lockdown implements Kernel. The active mode is the one in brackets.
func (k RunningKernel) Lockdown() string {
	text, err := os.ReadFile(filepath.Join(k.Sys, "kernel/security/lockdown"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "[")
	mode, _, _ := strings.Cut(rest, "]")
	return mode
}

// SourceVersion implements Kernel.
func (k RunningKernel) SourceVersion() string {
	text, _ := os.ReadFile(filepath.Join(k.Sys, "module/ringcap/srcversion"))
	return strings.TrimSpace(string(text))
}

// Unload implements Kernel by delete_module(2), which does not wait.
func (k RunningKernel) Unload() error {
	engine := kmod.New(k.RunDir, sizing.MaxLanes)
	failed, err := engine.Apply(context.Background(), capture.Plan{}, capture.Observation{})
	for name, problem := range failed {
		err = errors.Join(err, fmt.Errorf("%s: %w", name, problem))
	}
	if err != nil {
		return err
	}
	err = unix.DeleteModule("ringcap", unix.O_NONBLOCK)
	if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EBUSY) {
		return err
	}
	if modules, _ := filepath.Glob(filepath.Join(k.Sys, "module/ringcap/holders/*")); len(modules) > 0 {
		return fmt.Errorf("the modules %s (%w)", strings.Join(modules, ", "), err)
	}
	return fmt.Errorf("a process that has a queue open (%w)", err)
}

// Missing implements Kernel, by the names of all symbols, which every user may read.
func (RunningKernel) Missing(symbols []string) []string {
	text, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		return nil
	}
	there := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 2 {
			there[words[2]] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(symbols), func(name string) bool { return there[name] })
}

// kernelLog is /dev/kmsg from a certain time on. It is -1 for users that may not read it (without CAP_SYSLOG where
// dmesg is restricted).
type kernelLog int

func openLog() kernelLog {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	if _, err := unix.Seek(fd, 0, unix.SEEK_END); err != nil {
		unix.Close(fd)
		return -1
	}
	return kernelLog(fd)
}

func (log kernelLog) close() {
	if log >= 0 {
		unix.Close(int(log))
	}
}

// read returns the lines since then that are about the module. They begin with its name.
func (log kernelLog) read() string {
	var lines []string
	record := make([]byte, 8192)
	for log >= 0 {
		n, err := unix.Read(int(log), record)
		if errors.Is(err, unix.EPIPE) {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		_, text, _ := strings.Cut(string(record[:n]), ";")
		if line, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(line, "ringcap: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " / ")
}
