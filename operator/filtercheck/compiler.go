// SPDX-License-Identifier: Apache-2.0

package filtercheck

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringcap/ringcap/filter"
	"github.com/ringcap/ringcap/operator/plan"
)

// snapLength does not matter for whether an expression compiles.
const snapLength = 65535

// Compiler returns a compiler that does what the nodes' agents do with a filter, so that what it accepts they can load.
// path is rcbpf's; empty: beside this program, else in the path.
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
