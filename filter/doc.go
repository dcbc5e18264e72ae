// SPDX-License-Identifier: Apache-2.0

// Package filter makes kernel filters from pcap-filter(7) expressions, in three steps that callers combine:
//
//   - [Compiler.Compile] has libpcap compile an expression to classic BPF. The program is one over the packet as on the
//     wire, VLAN tags inline.
//   - [Kernel] turns that into a program over the packet as Linux holds it, where the outermost tag is not in the data but
//     beside it. The kernel module runs this one.
//   - [EBPF] translates the latter into a function for the eBPF engine's tc program.
//
// All three give the same verdict for the same packet. Nothing in here keeps state.
package filter

import (
	"errors"
	"fmt"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// MaxInstructions is the length of the longest program that the kernel loads (BPF_MAXINSNS).
const MaxInstructions = 4096

var (
	// ErrCompilerUnavailable means that the compiler could not be run or did not work. The expression may be valid.
	ErrCompilerUnavailable = errors.New("the filter compiler cannot be run")
	// ErrInvalidProgram means that the kernel would not load the program. The error names the instruction.
	ErrInvalidProgram = errors.New("not a valid BPF program")
	// ErrNotRepresentable means that a valid program has no equivalent in the kernel. The error names the
	// instruction.
	ErrNotRepresentable = fmt.Errorf("the filter cannot be applied in the kernel: %w", capture.ErrUnsupported)
)

// ExpressionError is the reason why libpcap refuses an expression.
type ExpressionError struct {
	// Message is libpcap's message, in one line.
	Message string
}

func (e *ExpressionError) Error() string { return e.Message }
