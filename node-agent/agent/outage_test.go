// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// lockedBuffer may still be written to while it is read.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// logged is what do logs, a line each, without times.
func logged(t *testing.T, do func()) string {
	t.Helper()
	var out lockedBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	defer slog.SetDefault(before)
	do()
	return out.String()
}

func TestAnOutageIsLoggedOnce(t *testing.T) {
	o := outage{begun: "down", ended: "up"}
	assert.Equal(t, `level=WARN msg=down error="port 1: i/o timeout"
level=WARN msg=down error=no
level=INFO msg=up
level=WARN msg=down error=again
`, logged(t, func() {
		o.note(nil)
		o.note(errors.New("port 1: i/o timeout"))
		o.note(errors.New("port 2: i/o timeout"))
		o.note(apierrors.NewUnauthorized("no"))
		o.note(nil)
		o.note(nil)
		o.note(errors.New("again"))
	}))
}
