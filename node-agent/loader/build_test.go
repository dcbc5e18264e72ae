// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// TestBuilderSaysWhy: what a builder could not do comes out of the loader behind it. Real headers and a real compiler
// are in node-agent/tests/build.
func TestBuilderSaysWhy(t *testing.T) {
	// Not as make's child: make passes its depth on in the environment.
	t.Setenv("MAKELEVEL", "0")
	t.Setenv("MAKEFLAGS", "")
	headers, source := t.TempDir(), t.TempDir()
	b := Builder{Source: source, Headers: headers, Out: t.TempDir(), Log: io.Discard, Identity: identity}
	l := Loader{Mode: Load, ModulesDir: t.TempDir(), BuiltDir: b.Out, Identity: identity, Kernel: &fakeKernel{probe: errAbsent}}

	build := func() Outcome {
		t.Helper()
		outcome, err := b.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, outcome, l.Run())
		return outcome
	}
	outcome := build()
	assert.Equal(t, v1.ReasonHeadersMissing, outcome.Reason)
	assert.Contains(t, outcome.Message, "install linux-headers-6.1.0-test")

	folder := filepath.Join(headers, identity.KernelRelease, "build")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "Makefile"), []byte("modules:\n\t@echo ringcap.c:7: error: no such thing >&2; false\n"), 0o644))
	outcome = build()
	assert.Equal(t, v1.ReasonBuildFailed, outcome.Reason)
	assert.Contains(t, outcome.Message, "ringcap.c:7: error: no such thing / make: *** [Makefile:2: modules] Error 1")

	require.NoError(t, os.WriteFile(filepath.Join(source, "Kbuild"), []byte("here"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "Makefile"), []byte("modules:\n\t@cp $(M)/Kbuild $(M)/ringcap.ko\n"), 0o644))
	for _, how := range []string{"was built with", "was built before"} {
		outcome, err := b.Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, v1.ReasonLoaded, outcome.Reason)
		assert.Contains(t, outcome.Message, how)
	}
	kernel := &fakeKernel{probe: errAbsent, info: current}
	l.Kernel = kernel
	assert.True(t, l.Run().Ready)
	assert.Equal(t, []string{filepath.Join(b.Out, identity.KernelRelease, "ringcap.ko")}, kernel.loaded)
}
