// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/loader"
	"github.com/ringcap/ringcap/node-agent/node"
)

// An agent that was killed while it wrote left files that no other one finished.
func TestCleanupRemovesWhatWasNotFinished(t *testing.T) {
	folder := t.TempDir()
	paths := nodePaths{runDir: filepath.Join(folder, "run"), bpffs: filepath.Join(folder, "bpf"), sys: "/sys"}
	plugin := filepath.Join(folder, "plugin")
	for _, path := range []string{
		paths.acceptedFile(), paths.poolFile(), paths.nicFile(), paths.driverFile(), filepath.Join(paths.runDir, loader.OutcomeFile),
		filepath.Join(plugin, acceptedName), filepath.Join(plugin, trialsName), filepath.Join(plugin, "musl", "libpcap.so.1"),
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(node.Unfinished(path), []byte("{"), 0o600))
	}
	require.NoError(t, removeAll(t.Context(), paths, node.Identity{BootID: "this"}))
	require.NoError(t, removePluginDir(plugin))
	assert.NoDirExists(t, paths.runDir)
	assert.NoDirExists(t, plugin)
}
