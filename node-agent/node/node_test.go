// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCountCPUs(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-1": 2, "0-3,8-11": 8, "0,2,4-5": 4} {
		got, err := countCPUs(list)
		require.NoError(t, err)
		assert.Equal(t, want, got, list)
	}
	for _, list := range []string{"", "all", "3-1"} {
		_, err := countCPUs(list)
		assert.Error(t, err, list)
	}
}

func TestIdentityAndCPUsOfThisMachine(t *testing.T) {
	id, err := ReadIdentity()
	require.NoError(t, err)
	assert.Len(t, id.BootID, 36)
	assert.NotEmpty(t, id.KernelRelease)
	cpus, err := PossibleCPUs()
	require.NoError(t, err)
	assert.Positive(t, cpus)
}

func TestInterfacesHaveLoopback(t *testing.T) {
	interfaces, err := Interfaces()
	require.NoError(t, err)
	var names []string
	for _, i := range interfaces {
		names = append(names, i.Name)
	}
	assert.Contains(t, names, "lo")
}

// A reader finds the old content or the new, and nothing is left beside it.
func TestWriteJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "state.json")
	for _, value := range []string{"first", "second"} {
		require.NoError(t, WriteJSON(path, value))
		var got string
		require.NoError(t, ReadJSON(path, &got))
		assert.Equal(t, value, got)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	assert.ErrorIs(t, ReadJSON(path+"x", new(string)), os.ErrNotExist)
	assert.Error(t, WriteJSON("/proc/none/state.json", 1))
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o644))
	assert.ErrorContains(t, ReadJSON(path, new(string)), "decode "+path)
}
