// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheFolderIsWatched(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "manifests")
	require.NoError(t, os.Mkdir(folder, 0o755))
	changes := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, watchFolder(ctx, folder, func() { changes <- struct{}{} }))
	changed := func(what string) {
		t.Helper()
		select {
		case <-changes:
		case <-time.After(20 * time.Second):
			t.Fatalf("not heard of: %s", what)
		}
	}
	file := filepath.Join(folder, "a.yaml")
	for range 3 {
		require.NoError(t, os.WriteFile(file, []byte("a"), 0o644))
	}
	changed("a new file")
	time.Sleep(2 * quiet)
	require.LessOrEqual(t, len(changes), 1, "writes at one time are one change")
	require.NoError(t, os.Rename(file, file+".old"))
	changed("a file that goes")

	// The folder is replaced by another.
	require.NoError(t, os.RemoveAll(folder))
	changed("a folder that goes")
	require.NoError(t, os.Mkdir(folder, 0o755))
	for len(changes) > 0 {
		<-changes
	}
	changed("a folder that comes")
	require.NoError(t, os.WriteFile(file, []byte("b"), 0o644))
	changed("a file in the new folder")
}

func TestAFolderThatCannotBeWatched(t *testing.T) {
	require.ErrorContains(t, watchFolder(t.Context(), filepath.Join(t.TempDir(), "none"), func() {}), "watch the manifests in")
}
