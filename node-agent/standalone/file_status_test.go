// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/status"
)

// The status file says of a refused manifest what standard output does, and of a good one nothing.
func TestTheStatusFileHasWhatIsRefused(t *testing.T) {
	folder := t.TempDir()
	r := &Runner{
		Options: Options{Folder: folder, StatusFile: filepath.Join(t.TempDir(), "status.json"), Out: io.Discard},
		Module:  func() status.Module { return status.Module{} },
		folder:  Folder{Path: folder},
	}
	written := func() map[string]any {
		require.NoError(t, r.read())
		r.publish(context.Background(), datapath.Report{})
		text, err := os.ReadFile(r.Options.StatusFile)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(text, &fields))
		return fields
	}
	ring := func(spec string) {
		text := "apiVersion: ringcap.io/v1alpha1\nkind: CaptureRing\nmetadata: {name: mirror}\nspec: " + spec + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(folder, "ring.yaml"), []byte(text), 0o644))
	}

	ring("{interfaces: [{name: eth0}], queuez: 2}")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "pod.yaml"), []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"), 0o644))
	file := written()
	require.Len(t, file["refused"], 1)
	assert.Contains(t, file["refused"].([]any)[0], "ring.yaml")
	assert.Contains(t, file["refused"].([]any)[0], "queuez")
	require.Len(t, file["ignored"], 1)
	assert.Contains(t, file["ignored"].([]any)[0], "pod.yaml")
	assert.Contains(t, file, "conditions", "the status is beside it, not below")

	ring("{interfaces: [{name: eth0}]}")
	require.NoError(t, os.Remove(filepath.Join(folder, "pod.yaml")))
	file = written()
	assert.NotContains(t, file, "refused")
	assert.NotContains(t, file, "ignored")
}
