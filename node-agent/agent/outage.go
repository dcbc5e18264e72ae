// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"log/slog"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outage logs a repeated failure only when it begins, when the API server's reason changes, and when it is over.
// Errors of the network count as one reason, because their texts differ each time. Any goroutine may use it.
type outage struct {
	// begun and ended are the log's messages.
	begun, ended string

	mu     sync.Mutex
	lasts  bool
	reason metav1.StatusReason
}

// note records the outcome of one try.
func (o *outage) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch reason := apierrors.ReasonForError(err); {
	case err == nil && o.lasts:
		slog.Info(o.ended)
		o.lasts = false
	case err == nil:
	case !o.lasts || reason != o.reason:
		slog.Warn(o.begun, "error", err)
		o.lasts, o.reason = true, reason
	default:
		slog.Debug(o.begun, "error", err)
	}
}
