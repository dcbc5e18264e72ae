// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Probe reports whether this kernel can run the engine. If not, the error has the reason and what to do. Probe loads
// the program of taps, attaches it nowhere, and leaves nothing behind.
func Probe() error {
	if err := probe(); err != nil {
		return fmt.Errorf("this kernel (%s) cannot run the eBPF engine: %w", kernelRelease(), err)
	}
	return nil
}

func probe() error {
	spec, err := loadSpec()
	if err != nil {
		return err
	}
	chooseDirect(spec, false)
	// The program of the other direction differs in one flag. XDP is only for rings that ask for it.
	delete(spec.Programs, egressProgram)
	delete(spec.Programs, xdpProgram)
	// As in a ring with one queue.
	cpus := possibleCPUs()
	shape := newQueueShape(1, minQueueBytes, cpus)
	config := programConfig{SnapLen: maxSnapLen, Parsed: parseMax, NrOutputs: 1, CPUs: uint32(cpus), CPUMask: cpuSlots(cpus) - 1}
	config.Outputs[0] = outputConfig{Queues: 1, Lanes: 1, LaneSize: shape.laneSize, HeadSize: shape.headSize, HdrLen: shortHeader}
	spec.Maps[tableMap(0)].InnerMap = shape.dataSpec()
	if err := spec.Variables[configVariable].Set(config); err != nil {
		return fmt.Errorf("configure the eBPF program: %w", err)
	}
	if err := setConstants(spec, nil); err != nil {
		return err
	}
	collection, err := ebpf.NewCollection(spec)
	if errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w: it was built without the bpf system call (CONFIG_BPF_SYSCALL)", err)
	}
	if err != nil {
		return fmt.Errorf("load the eBPF program: %w", explainLoad(err))
	}
	collection.Close()
	return CheckOverlap()
}

// kernelRelease returns what uname -r prints.
func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}

// newAttacher returns the best way to attach that this kernel supports.
func newAttacher(p pins) (attacher, error) {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "ringcap_probe", Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()},
	})
	if err != nil {
		return nil, fmt.Errorf("load an eBPF program: %w", explainLoad(err))
	}
	defer program.Close()
	// No interface has this number. A kernel with tcx reports this; a kernel without tcx does not look for the
	// interface.
	l, err := link.AttachTCX(link.TCXOptions{
		Interface: math.MaxInt32, Program: program, Attach: ebpf.AttachTCXIngress,
	})
	switch {
	case err == nil:
		return tcx{}, l.Close()
	case errors.Is(err, unix.ENODEV):
		return tcx{}, nil
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EINVAL):
		return clsact{pins: p}, nil
	default:
		return nil, fmt.Errorf("attach an eBPF program: %w", explainRights(err))
	}
}
