// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// ErrOverlap means that consumers could corrupt the kernel's memory on this kernel.
var ErrOverlap = errors.New("this kernel lacks the fix of CVE-2024-41009 (mid-2024): who reads a ring buffer could make records overlap, and corrupt the kernel's memory. " +
	"Update the kernel, or load the kernel module")

// CheckOverlap tests, without harm, whether a consumer can make the kernel hand out parts of a ring buffer that are
// still being written. If so, the error is ErrOverlap. Any other error is the reason why the test could not be made.
func CheckOverlap() error { return checkOverlap(true) }

// Results of the program: it could reserve none of the two records, the first, or both.
const (
	gotNone = iota + 1
	gotFirst
	gotBoth
)

// checkOverlap claims, as a ring buffer's consumer, that three quarters of it are read. Then a program reserves two
// records of that size. With busy, the first is still being written when the second is reserved. Without it, for
// tests, the first is complete.
func checkOverlap(busy bool) error {
	page := os.Getpagesize()
	buffer, err := ebpf.NewMap(&ebpf.MapSpec{Name: "ringcap_probe", Type: ebpf.RingBuf, MaxEntries: uint32(4 * page)})
	if err != nil {
		return fmt.Errorf("make an eBPF ring buffer: %w", explainRights(err))
	}
	defer buffer.Close()
	position, err := unix.Mmap(buffer.FD(), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map the consumer's position of an eBPF ring buffer: %w", err)
	}
	defer func() { _ = unix.Munmap(position) }()
	binary.NativeEndian.PutUint64(position, uint64(3*page))
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "ringcap_probe", Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: reserveTwice(buffer.FD(), 3*page, busy),
	})
	if err != nil {
		return fmt.Errorf("load an eBPF program: %w", explainLoad(err))
	}
	defer program.Close()
	got, err := program.Run(&ebpf.RunOptions{Data: make([]byte, 64)})
	switch {
	case err != nil:
		return fmt.Errorf("run an eBPF program: %w", explainRights(err))
	case got == gotBoth:
		return ErrOverlap
	case got != gotFirst:
		return fmt.Errorf("an eBPF ring buffer that is empty gives out no record (%d)", got)
	}
	return nil
}

// reserveTwice writes nothing into the records, and discards them.
func reserveTwice(buffer, size int, busy bool) asm.Instructions {
	reserve := asm.Instructions{
		asm.LoadMapPtr(asm.R1, buffer), asm.Mov.Imm(asm.R2, int32(size)), asm.Mov.Imm(asm.R3, 0), asm.FnRingbufReserve.Call(),
	}
	discard := func(record asm.Register) asm.Instructions {
		const noWakeup = 1
		return asm.Instructions{asm.Mov.Reg(asm.R1, record), asm.Mov.Imm(asm.R2, noWakeup), asm.FnRingbufDiscard.Call()}
	}
	var p asm.Instructions
	add := func(parts ...asm.Instructions) {
		for _, part := range parts {
			p = append(p, part...)
		}
	}
	add(reserve, asm.Instructions{asm.JEq.Imm(asm.R0, 0, "none"), asm.Mov.Reg(asm.R6, asm.R0)})
	if !busy {
		add(discard(asm.R6))
	}
	add(reserve, asm.Instructions{asm.JEq.Imm(asm.R0, 0, "first")}, discard(asm.R0))
	if busy {
		add(discard(asm.R6))
	}
	add(asm.Instructions{asm.Mov.Imm(asm.R0, gotBoth), asm.Return()})
	first := len(p)
	if busy {
		add(discard(asm.R6))
	}
	add(asm.Instructions{asm.Mov.Imm(asm.R0, gotFirst), asm.Return()})
	p[first] = p[first].WithSymbol("first")
	return append(p, asm.Mov.Imm(asm.R0, gotNone).WithSymbol("none"), asm.Return())
}
