// SPDX-License-Identifier: Apache-2.0

// Package wait waits for objects to become ready, prints what it waits for, and in the end returns what was still missing.
package wait

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// interval between two checks.
const interval = time.Second

// until repeats check until missing is empty, and writes what is missing to out when it changes. If the context ends first, the
// error contains what is missing then. An error of check does not end the wait, because it may pass.
func until(ctx context.Context, out io.Writer, check func(context.Context) (missing string, err error)) error {
	last := ""
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		missing, err := check(ctx)
		if ctx.Err() != nil {
			return false, nil
		}
		if err != nil {
			missing = err.Error()
		}
		if missing != last && missing != "" {
			fmt.Fprintln(out, "waiting:", missing)
		}
		last = missing
		return missing == "", nil
	})
	if err != nil {
		return fmt.Errorf("gave up waiting: %s", last)
	}
	return nil
}
