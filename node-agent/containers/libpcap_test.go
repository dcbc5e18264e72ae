// SPDX-License-Identifier: Apache-2.0

package containers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func builds(t *testing.T, content string) string {
	t.Helper()
	folder := t.TempDir()
	for _, f := range libpcapFiles {
		path := filepath.Join(folder, f.name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(f.name+content), 0o644))
	}
	return folder
}

func TestALibraryLivesAsLongAsItIsWanted(t *testing.T) {
	l := Library{From: builds(t, "1"), To: t.TempDir()}
	require.NoError(t, l.Withdraw(), "nothing is there yet")
	require.NoError(t, l.Provide())
	for _, mount := range l.Mounts() {
		assert.FileExists(t, mount.Host)
	}
	path := filepath.Join(l.To, "musl/libpcap.so.1")
	was, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), was.Mode(), "of other users' containers")

	require.NoError(t, l.Provide())
	same, err := os.Stat(path)
	require.NoError(t, err)
	assert.True(t, os.SameFile(was, same), "what is the same stays")

	// A new agent's build is another file: running containers keep theirs.
	held, err := os.Open(path)
	require.NoError(t, err)
	defer held.Close()
	l.From = builds(t, "2")
	require.NoError(t, l.Provide())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "musl/libpcap.so.12", string(text))
	text = make([]byte, 64)
	n, err := held.Read(text)
	require.NoError(t, err)
	assert.Equal(t, "musl/libpcap.so.11", string(text[:n]))

	require.NoError(t, l.Withdraw())
	left, err := os.ReadDir(l.To)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestAnAgentWithoutBuilds(t *testing.T) {
	assert.ErrorContains(t, Library{From: t.TempDir(), To: t.TempDir()}.Provide(), "spec.consumers.injectLibpcap: open ")
}
