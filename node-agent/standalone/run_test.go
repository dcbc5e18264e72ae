// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/datapath"
)

// A file that an editor has emptied, and is about to write, is not read because an interface came just then.
func TestAFileIsNotReadWhileItIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ring.yaml")
	ring := "apiVersion: ringcap.io/v1alpha1\nkind: CaptureRing\nmetadata: {name: mirror}\nspec: {interfaces: [{name: eth0}]}\n"
	require.NoError(t, os.WriteFile(file, []byte(ring), 0o644))
	r := &Runner{folder: Folder{Path: filepath.Dir(file)}, Changed: datapath.NewSignal()}
	asked := func() int {
		spec, _, known := r.desired()
		assert.True(t, known)
		return len(spec.Rings)
	}
	assert.Equal(t, 1, asked())
	require.NoError(t, os.Truncate(file, 0))
	assert.Equal(t, 1, asked())
	r.folderChanged()
	assert.Equal(t, 0, asked(), "it has stayed empty")
	require.NoError(t, os.WriteFile(file, []byte(ring), 0o644))
	assert.Equal(t, 0, asked())
	r.readTime = r.readTime.Add(-resync - time.Second)
	assert.Equal(t, 1, asked(), "a change that nobody told of")
}
