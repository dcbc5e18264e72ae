// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// lockedBuffer is written to by the engine while a test reads.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// The agent reports a container without a seccomp filter. On a machine without Kubernetes it reports nothing.
func TestUnconfinedConsumersAreTold(t *testing.T) {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	require.NoError(t, err)
	require.Equal(t, mode == 0, isUnconfined(int32(os.Getpid())))
	require.False(t, isUnconfined(0), "one that is not visible")
	if mode != 0 {
		t.Skip("this process has a seccomp filter")
	}
	for _, contained := range []bool{true, false} {
		var out lockedBuffer
		l := newLab(t)
		e := l.engine(func(o *Options) {
			o.Logger = slog.New(slog.NewTextHandler(&out, nil))
			if contained {
				o.Authorizer = AuthorizerFunc(func(context.Context, int, capture.QueueID) error { return nil })
			}
		})
		l.apply(e, l.plan(1))
		l.consume("mirror", 0).detach()
		l.detached(e, "mirror", 0)
		const wanted = "the consumer has no seccomp filter"
		require.Eventually(t, func() bool { return strings.Contains(out.String(), "the consumer is gone") }, 10*time.Second,
			time.Millisecond)
		if contained {
			require.Contains(t, out.String(), wanted)
		} else {
			require.NotContains(t, out.String(), wanted)
		}
	}
}
