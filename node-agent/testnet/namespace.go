// SPDX-License-Identifier: Apache-2.0

// Package testnet gives tests a network of their own.
package testnet

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netns"
)

// Enter makes a quiet network namespace and keeps the test's goroutine in it until the test is over. Without root the test is
// skipped. The handle is closed at the end.
func Enter(t testing.TB) netns.NsHandle {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes a network namespace")
	}
	runtime.LockOSThread()
	origin, err := netns.Get()
	require.NoError(t, err)
	own, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() {
		own.Close()
		// A thread that cannot go back stays locked, and ends with its goroutine.
		if netns.Set(origin) == nil {
			runtime.UnlockOSThread()
		}
		origin.Close()
	})
	require.NoError(t, Quiet())
	return own
}

// Quiet turns off IPv6, which sends packets by itself, on all new interfaces of the thread's namespace.
func Quiet() error {
	return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
}
