// SPDX-License-Identifier: Apache-2.0

package filtercheck

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringcap/ringcap/filter"
	"github.com/ringcap/ringcap/operator/plan"
)

// snapLength has no influence on whether an expression compiles.
const snapLength = 65535

// Compiler returns a compiler that does the same as the nodes' agents, so that agents can load each filter that it accepts. path
// is the path of rcbpf; empty: beside this program, else in PATH.
func Compiler(path string) func(expression string) error {
	c := filter.Compiler{Path: path}
	return func(expression string) error {
		program, err := c.Compile(context.Background(), expression, snapLength)
		if errors.Is(err, filter.ErrCompilerUnavailable) {
			return fmt.Errorf("%w: %w", plan.ErrFilterUnknown, err)
		}
		if err == nil {
			_, err = filter.Kernel(program)
		}
		return err
	}
}
