// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"encoding/binary"
	"math/rand"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// acceptedByKernel has the running kernel check a program, as it would for any socket filter.
func acceptedByKernel(t testing.TB, prog []bpf.RawInstruction) error {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	filter := make([]unix.SockFilter, len(prog))
	for i, ins := range prog {
		filter[i] = unix.SockFilter{Code: ins.Op, Jt: ins.Jt, Jf: ins.Jf, K: ins.K}
	}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(filter)), Filter: unsafe.SliceData(filter)})
	if err == unix.ENOMEM {
		return nil // it is valid, but longer than what net.core.optmem_max lets a socket have; a tap has no such limit
	}
	return err
}

func TestKernelGivesTheWiresVerdict(t *testing.T) {
	for _, expr := range expressions {
		t.Run(expr, func(t *testing.T) {
			wire := compiled(t, expr)
			kernel, err := Kernel(wire)
			require.NoError(t, err)
			require.NoError(t, acceptedByKernel(t, kernel))
			matched := 0
			for _, p := range packets() {
				want := onWire(wire, p.wire())
				require.Equal(t, want, inKernel(kernel, p), "tag %+v, data % x", p.tag, p.data)
				if want != 0 {
					matched++
				}
			}
			t.Logf("%d instructions, %d in the kernel; %d of %d packets matched", len(wire), len(kernel), matched, len(packets()))
		})
	}
}

// What has no use for a tag is not made longer.
func TestKernelLeavesAloneWhatIsBeforeTheTag(t *testing.T) {
	for _, expr := range []string{"", "ether host 02:00:00:00:00:01", "ether multicast"} {
		prog := compiled(t, expr)
		kernel, err := Kernel(prog)
		require.NoError(t, err)
		require.Equal(t, prog, kernel, expr)
	}
}

func TestKernelRefuses(t *testing.T) {
	end := bpf.RawInstruction{Op: retK, K: 1}
	tooLong := make([]bpf.RawInstruction, MaxInstructions)
	for i := range tooLong {
		tooLong[i] = bpf.RawInstruction{Op: ld | sizeH | modeAbs, K: 13}
	}
	tooLong[len(tooLong)-1] = end
	var allWords []bpf.RawInstruction
	for word := range uint32(memWords) {
		allWords = append(allWords, bpf.RawInstruction{Op: st, K: word})
	}
	allWords = append(allWords, bpf.RawInstruction{Op: ld | sizeW | modeAbs, K: 10}, end)

	for name, test := range map[string]struct {
		prog    []bpf.RawInstruction
		want    error
		message string
	}{
		"nothing":        {nil, ErrInvalidProgram, "0 instructions"},
		"no return":      {[]bpf.RawInstruction{{Op: ld | modeImm}}, ErrInvalidProgram, "does not end in a return"},
		"unknown code":   {[]bpf.RawInstruction{{Op: 0xffff}, end}, ErrInvalidProgram, "instruction 0: unknown code 0xffff"},
		"jump too far":   {[]bpf.RawInstruction{{Op: jmp | opJeq, Jf: 1}, end}, ErrInvalidProgram, "jump beyond the end"},
		"ja too far":     {[]bpf.RawInstruction{{Op: jmp | opJa, K: 1}, end}, ErrInvalidProgram, "jump beyond the end"},
		"loop":           {[]bpf.RawInstruction{{Op: jmp | opJa, K: 0xffffffff}, end}, ErrInvalidProgram, "jump backwards"},
		"division":       {[]bpf.RawInstruction{{Op: alu | opDiv}, end}, ErrInvalidProgram, "division by zero"},
		"shift":          {[]bpf.RawInstruction{{Op: alu | opLsh, K: 32}, end}, ErrInvalidProgram, "shift by 32"},
		"scratch place":  {[]bpf.RawInstruction{{Op: st, K: 16}, end}, ErrInvalidProgram, "no word 16"},
		"scratch unset":  {[]bpf.RawInstruction{{Op: ld | modeMem, K: 2}, end}, ErrInvalidProgram, "word 2 is read before it is written"},
		"too long":       {tooLong, ErrNotRepresentable, "at most 4096"},
		"scratch in use": {allWords, ErrNotRepresentable, "instruction 16: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Kernel(test.prog)
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, test.message)
		})
	}
	require.ErrorIs(t, ErrNotRepresentable, capture.ErrUnsupported)
}

// Conditional jumps reach 255 instructions; what the tag makes longer must go on to meet the same ends.
func TestKernelWidensJumps(t *testing.T) {
	for _, between := range []int{1, 60, 100, 127, 128, 250, 254} {
		prog := []bpf.RawInstruction{{Op: ld | sizeB | modeAbs}, {Op: jmp | opJeq, K: 2, Jt: uint8(between), Jf: uint8(between + 1)}}
		for range between {
			prog = append(prog, bpf.RawInstruction{Op: ld | sizeW | modeAbs, K: 10})
		}
		prog = append(prog, bpf.RawInstruction{Op: retK, K: 7}, bpf.RawInstruction{Op: retK, K: 8})
		kernel, err := Kernel(prog)
		require.NoError(t, err)
		require.NoError(t, acceptedByKernel(t, kernel))
		for _, p := range packets() {
			require.Equal(t, onWire(prog, p.wire()), inKernel(kernel, p), "%d between", between)
		}
	}
}

// decodeProgram makes a program of any bytes: mostly of codes that exist.
func decodeProgram(data []byte) []bpf.RawInstruction {
	codes := knownCodes()
	var prog []bpf.RawInstruction
	for ; len(data) >= 7 && len(prog) < 300; data = data[7:] {
		ins := bpf.RawInstruction{Op: uint16(data[0]), Jt: data[1], Jf: data[2], K: binary.BigEndian.Uint32(data[3:])}
		if data[0] < 240 {
			ins.Op = codes[int(data[0])%len(codes)]
		}
		prog = append(prog, ins)
	}
	return prog
}

func knownCodes() []uint16 {
	var codes []uint16
	for op := range uint16(256) {
		if known(op) {
			codes = append(codes, op)
		}
	}
	return codes
}

// checkAny checks the promises of Kernel for any program.
func checkAny(t testing.TB, prog []bpf.RawInstruction, wire []byte) {
	t.Helper()
	kernel, err := Kernel(prog)
	if err != nil {
		want := ErrNotRepresentable
		if validate(prog) != nil {
			want = ErrInvalidProgram
		}
		require.ErrorIs(t, err, want)
		return
	}
	require.NoError(t, validate(kernel))
	require.NoError(t, acceptedByKernel(t, kernel))
	p := strip(wire)
	require.Equal(t, onWire(prog, p.wire()), inKernel(kernel, p), "%+v on % x", prog, wire)
}

// randomProgram makes a valid one, without regard to sense.
func randomProgram(random *rand.Rand) []bpf.RawInstruction {
	codes := knownCodes()
	prog := make([]bpf.RawInstruction, 3+random.Intn(12))
	for word := range prog[:2] {
		prog[word] = bpf.RawInstruction{Op: st, K: uint32(word)}
	}
	for i := 2; i < len(prog)-1; i++ {
		rest := len(prog) - i - 1
		ins := bpf.RawInstruction{Op: codes[random.Intn(len(codes))], K: uint32(random.Intn(40))}
		if random.Intn(10) == 0 {
			ins.K = random.Uint32()
		}
		if class(ins.Op) == ret && random.Intn(4) > 0 {
			ins.Op = ld | sizeH | modeInd
		}
		if _, uses := scratchWord(ins); uses {
			ins.K %= 2
		}
		if class(ins.Op) == alu {
			ins.K = ins.K%31 + 1
		}
		if class(ins.Op) == jmp {
			ins.Jt, ins.Jf = uint8(random.Intn(rest)), uint8(random.Intn(rest))
			if ins.Op == jmp|opJa {
				ins.K %= uint32(rest)
			}
		}
		prog[i] = ins
	}
	prog[len(prog)-1] = bpf.RawInstruction{Op: retA}
	return prog
}

func TestKernelOfRandomPrograms(t *testing.T) {
	random := rand.New(rand.NewSource(3))
	for range 20000 {
		prog := randomProgram(random)
		require.NoError(t, validate(prog), "%+v", prog)
		checkAny(t, prog, packets()[random.Intn(len(packets()))].wire())
	}
}

func FuzzKernel(f *testing.F) {
	random := rand.New(rand.NewSource(4))
	for range 50 {
		seed := make([]byte, 7*(1+random.Intn(20)))
		random.Read(seed)
		f.Add(seed, packets()[random.Intn(len(packets()))].wire())
	}
	f.Fuzz(func(t *testing.T, program, wire []byte) {
		if len(wire) < 14 {
			return // Linux has no such packets
		}
		checkAny(t, decodeProgram(program), wire)
	})
}
