// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// killer kills a process in the system call with which it takes its nth step, from inside the kernel. A step is a
// call that changes what outlives a process: what is pinned, attached or said to the module, files, settings of
// interfaces. Others leave nothing that the step before had not left.
type killer struct {
	t       *testing.T
	targets *ebpf.Map
}

// aim is how many steps a process took, and the one that it does not survive; 0 for none.
type aim struct{ Taken, Last uint64 }

var (
	bpfSteps = []uint64{
		unix.BPF_MAP_UPDATE_ELEM, unix.BPF_MAP_DELETE_ELEM, unix.BPF_MAP_UPDATE_BATCH, unix.BPF_OBJ_PIN, unix.BPF_MAP_FREEZE,
		unix.BPF_LINK_CREATE, unix.BPF_LINK_UPDATE, unix.BPF_LINK_DETACH,
	}
	steps = []uint64{
		unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_MKNODAT, unix.SYS_FCHMODAT,
		unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_IOCTL, unix.SYS_BIND,
	}
)

// A step's key is the number of the system call, and bpf's command besides.
const commandBits = 32

func newKiller(t *testing.T) *killer {
	t.Helper()
	k := &killer{t: t, targets: newMap(t, ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 16, MaxEntries: 16})}
	known := newMap(t, ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8, ValueSize: 4, MaxEntries: 64})
	for _, command := range bpfSteps {
		require.NoError(t, known.Put(uint64(unix.SYS_BPF)<<commandBits|command, uint32(1)))
	}
	for _, call := range steps {
		require.NoError(t, known.Put(call<<commandBits, uint32(1)))
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.RawTracepoint, License: "GPL", Instructions: killerProgram(t, k.targets, known),
	})
	require.NoError(t, err)
	t.Cleanup(func() { program.Close() })
	attached, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sys_enter", Program: program})
	require.NoError(t, err)
	t.Cleanup(func() { attached.Close() })
	return k
}

func newMap(t *testing.T, spec ebpf.MapSpec) *ebpf.Map {
	t.Helper()
	m, err := ebpf.NewMap(&spec)
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

// killerProgram runs at each system call of the machine, as sys_enter(struct pt_regs *regs, long id).
func killerProgram(t *testing.T, targets, known *ebpf.Map) asm.Instructions {
	// Where the test runs in a PID namespace of its own, it knows processes by their numbers there.
	var pids unix.Stat_t
	require.NoError(t, unix.Stat("/proc/self/ns/pid", &pids))
	const (
		context, target, key = asm.R6, asm.R7, asm.R8
		onStack              = -8
		firstArgument        = 112 // regs->di of x86-64
	)
	var onStackPointer = func(to asm.Register) asm.Instructions {
		return asm.Instructions{asm.Mov.Reg(to, asm.RFP), asm.Add.Imm(to, onStack)}
	}
	var program asm.Instructions
	add := func(some ...asm.Instruction) { program = append(program, some...) }
	lookUp := func(m *ebpf.Map) {
		add(onStackPointer(asm.R2)...)
		add(asm.LoadMapPtr(asm.R1, m.FD()), asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, "out"))
	}
	add(asm.Mov.Reg(context, asm.R1), asm.LoadImm(asm.R1, int64(pids.Dev), asm.DWord), asm.LoadImm(asm.R2, int64(pids.Ino), asm.DWord))
	add(onStackPointer(asm.R3)...)
	add(asm.Mov.Imm(asm.R4, 8), asm.FnGetNsCurrentPidTgid.Call(), asm.JNE.Imm(asm.R0, 0, "out"))
	add(asm.LoadMem(asm.R0, asm.RFP, onStack+4, asm.Word), asm.StoreMem(asm.RFP, onStack, asm.R0, asm.Word)) // the process, not the thread
	lookUp(targets)
	add(asm.Mov.Reg(target, asm.R0))
	add(asm.LoadMem(key, context, 8, asm.DWord), asm.Mov.Reg(asm.R9, key), asm.LSh.Imm(key, commandBits))
	add(asm.JNE.Imm(asm.R9, unix.SYS_BPF, "call"))
	add(onStackPointer(asm.R1)...)
	add(asm.Mov.Imm(asm.R2, 8), asm.LoadMem(asm.R3, context, 0, asm.DWord), asm.Add.Imm(asm.R3, firstArgument))
	add(asm.FnProbeReadKernel.Call(), asm.LoadMem(asm.R1, asm.RFP, onStack, asm.DWord), asm.Or.Reg(key, asm.R1))
	add(asm.StoreMem(asm.RFP, onStack, key, asm.DWord).WithSymbol("call"))
	lookUp(known)
	add(asm.Mov.Imm(asm.R1, 1), asm.AddAtomic.Mem(target, asm.R1, asm.DWord, 0))
	add(asm.LoadMem(asm.R1, target, 0, asm.DWord), asm.LoadMem(asm.R2, target, 8, asm.DWord))
	add(asm.JEq.Imm(asm.R2, 0, "out"), asm.JLT.Reg(asm.R1, asm.R2, "out"))
	add(asm.Mov.Imm(asm.R1, int32(unix.SIGKILL)), asm.FnSendSignal.Call())
	add(asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return())
	return program
}

// watch counts a process's steps, and kills it at the last if that is not 0.
func (k *killer) watch(pid, last int) {
	require.NoError(k.t, k.targets.Put(uint32(pid), aim{Last: uint64(last)}))
}

// taken ends the watching and returns how many steps the process took.
func (k *killer) taken(pid int) int {
	var a aim
	require.NoError(k.t, k.targets.Lookup(uint32(pid), &a))
	require.NoError(k.t, k.targets.Delete(uint32(pid)))
	return int(a.Taken)
}
