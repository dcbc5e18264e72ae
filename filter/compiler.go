// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/bpf"
)

const (
	compilerName = "rcbpf"
	// CompilerEnv names the environment variable with the path of the rcbpf binary.
	CompilerEnv = "RINGCAP_RCBPF"

	defaultTimeout = 10 * time.Second
	maxOutput      = 1 << 20 // bytes; far more than 4096 instructions take
	maxMessage     = 1 << 10 // bytes of the compiler's message that are kept
)

// Compiler runs rcbpf, the libpcap compiler as a separate program. An expression that makes libpcap misbehave ends
// that process, not the caller. The zero value is ready, and safe for concurrent use.
type Compiler struct {
	// Path of rcbpf. If it is empty, rcbpf is $RINGCAP_RCBPF, or beside this executable, or in $PATH.
	Path string
	// Timeout for one expression, 10 s if zero.
	Timeout time.Duration
}

// Compile calls Compile of the zero Compiler.
func Compile(ctx context.Context, expr string, snapLen int) ([]bpf.RawInstruction, error) {
	return Compiler{}.Compile(ctx, expr, snapLen)
}

// Compile makes a program over Ethernet packets as on the wire. The program returns snapLen (bytes) for those that
// match expr, and 0 for others. An empty expression matches all. The error is an *ExpressionError if expr is at
// fault, ErrNotRepresentable if the kernel could not run the program, else ErrCompilerUnavailable.
func (c Compiler) Compile(ctx context.Context, expr string, snapLen int) ([]bpf.RawInstruction, error) {
	path, err := c.find()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCompilerUnavailable, err)
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, message := &limitedBuffer{limit: maxOutput}, &limitedBuffer{limit: maxMessage}
	cmd := exec.CommandContext(ctx, path, strconv.Itoa(snapLen))
	cmd.Stdin = strings.NewReader(expr)
	cmd.Stdout, cmd.Stderr = out, message
	cmd.Env = []string{"LC_ALL=C"}
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return nil, explain(ctx, path, err, message.String())
	}
	prog, err := parse(out)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCompilerUnavailable, path, err)
	}
	if slices.ContainsFunc(prog, loadsMetadata) {
		return nil, &ExpressionError{Message: "inbound, outbound and ifindex are no part of a packet, and a ring's filter sees nothing else: " +
			"set the ring's direction, and name its interfaces"}
	}
	if slices.ContainsFunc(prog, isLoop) {
		return nil, fmt.Errorf("%w: it has a loop, as \"protochain\" does: give the protocol's offset instead", ErrNotRepresentable)
	}
	if len(prog) > MaxInstructions {
		return nil, fmt.Errorf("%w: it has %d instructions, at most %d can be loaded", ErrNotRepresentable, len(prog), MaxInstructions)
	}
	if err := validate(prog); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCompilerUnavailable, path, err)
	}
	return prog, nil
}

func (c Compiler) find() (string, error) {
	if c.Path != "" {
		return c.Path, nil
	}
	if path := os.Getenv(CompilerEnv); path != "" {
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), compilerName)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(compilerName)
	if err != nil {
		return "", fmt.Errorf("%s is neither beside this program nor in $PATH; set %s to its path", compilerName, CompilerEnv)
	}
	return path, nil
}

// badExpression is rcbpf's exit status for an expression that does not compile.
const badExpression = 1

func explain(ctx context.Context, path string, err error, message string) error {
	message = strings.TrimSpace(message)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s did not finish: %w", ErrCompilerUnavailable, path, context.Cause(ctx))
	case errors.As(err, &exit) && exit.ExitCode() == badExpression && message != "":
		return &ExpressionError{Message: message}
	case message != "":
		return fmt.Errorf("%w: %s: %w: %s", ErrCompilerUnavailable, path, err, message)
	}
	return fmt.Errorf("%w: %s: %w", ErrCompilerUnavailable, path, err)
}

// parse reads the output of rcbpf: the number of instructions, and then one instruction on each line.
func parse(out *limitedBuffer) ([]bpf.RawInstruction, error) {
	if out.exceeded {
		return nil, fmt.Errorf("printed more than %d bytes", out.limit)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	count, err := strconv.Atoi(lines[0])
	if err != nil || count != len(lines)-1 {
		return nil, fmt.Errorf("printed %d lines, the first of which should be the number of the others but is %.40q", len(lines), lines[0])
	}
	prog := make([]bpf.RawInstruction, count)
	for i, line := range lines[1:] {
		ins := &prog[i]
		if n, err := fmt.Sscanf(line, "%d %d %d %d", &ins.Op, &ins.Jt, &ins.Jf, &ins.K); n != 4 || err != nil {
			return nil, fmt.Errorf("printed %.40q where an instruction should be", line)
		}
	}
	return prog, nil
}

// limitedBuffer keeps the first limit bytes and drops the rest, so that the writer does not block. It has no
// ReadFrom, which would bypass the limit.
type limitedBuffer struct {
	kept     bytes.Buffer
	limit    int
	exceeded bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	keep := min(len(p), b.limit-b.kept.Len())
	b.exceeded = b.exceeded || keep < len(p)
	b.kept.Write(p[:keep])
	return len(p), nil
}

func (b *limitedBuffer) String() string { return b.kept.String() }
