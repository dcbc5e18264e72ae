// SPDX-License-Identifier: Apache-2.0

// Package wait waits for what others make ready, tells what it waits for, and in the end why it waited in vain.
package wait

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// interval between two looks.
const interval = time.Second

// until looks until missing is empty, and writes what is missing to out whenever that changes. The error, when the context
// ends before, says what is missing then; one of the look itself does not end the wait, for it may pass.
func until(ctx context.Context, out io.Writer, look func(context.Context) (missing string, err error)) error {
	said := ""
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		missing, err := look(ctx)
		if ctx.Err() != nil {
			return false, nil
		}
		if err != nil {
			missing = err.Error()
		}
		if missing != said && missing != "" {
			fmt.Fprintln(out, "waiting:", missing)
		}
		said = missing
		return missing == "", nil
	})
	if err != nil {
		return fmt.Errorf("waited in vain: %s", said)
	}
	return nil
}
