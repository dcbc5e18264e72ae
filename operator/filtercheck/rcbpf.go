// SPDX-License-Identifier: Apache-2.0

package filtercheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/ringcap/ringcap/operator/plan"
)

// rcbpfTimeout is the longest that the compiler may take; it needs milliseconds.
const rcbpfTimeout = 10 * time.Second

// badExpression is rcbpf's exit status for an expression that does not compile; any other failure is not about it.
const badExpression = 1

// Rcbpf returns a compiler that runs the rcbpf program (lib/tools/rcbpf.c), by which the nodes' agents compile too.
func Rcbpf(program string) func(expression string) error {
	return func(expression string) error {
		ctx, cancel := context.WithTimeout(context.Background(), rcbpfTimeout)
		defer cancel()
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, program)
		cmd.Stdin = strings.NewReader(expression)
		cmd.Stderr = &stderr
		err := cmd.Run()
		if err == nil {
			return nil
		}
		text := strings.TrimSpace(stderr.String())
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == badExpression && text != "" {
			return errors.New(text)
		}
		return fmt.Errorf("%w: %s: %w %s", plan.ErrFilterUnknown, program, err, text)
	}
}
