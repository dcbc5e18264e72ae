// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
)

// interval between two attempts.
const interval = time.Second

// insist calls do again until it succeeds or the API server refuses what it wants. An API server that cannot be reached, starts
// or is overloaded does not end an uninstall: it is tried again until the context ends. What is in the way is written to out
// when it changes.
func insist(ctx context.Context, out io.Writer, do func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		err := do(ctx)
		if err == nil || !mayPass(err) {
			return true, err
		}
		if ctx.Err() == nil && (last == nil || last.Error() != err.Error()) {
			fmt.Fprintf(out, "trying again: %v\n", err)
			last = err
		}
		return false, nil
	})
	if err != nil && ctx.Err() != nil && last != nil {
		return fmt.Errorf("gave up: %w", last)
	}
	return err
}

// mayPass reports whether the request can succeed without a change: it had no answer, or that of a server with a fault or too
// many requests. A right or a kind that is missing stays missing.
func mayPass(err error) bool {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		code := answer.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	}
	return !meta.IsNoMatchError(err)
}
