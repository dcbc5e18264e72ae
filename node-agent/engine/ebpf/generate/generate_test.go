// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is in the tree is what the object has; a file that differs is noticed, and written again.
func TestTypesFollowFromTheObject(t *testing.T) {
	t.Chdir("../../../..")
	require.NoError(t, run(true))

	folder := t.TempDir()
	for _, file := range []string{objectFile, typesFile} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(folder, filepath.Dir(file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), text, 0o644))
	}
	t.Chdir(folder)
	text, err := os.ReadFile(typesFile)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(typesFile, append(text, "// more\n"...), 0o644))
	assert.ErrorContains(t, run(true), "out of date")
	require.NoError(t, run(false))
	assert.NoError(t, run(true))
	require.NoError(t, os.Remove(objectFile))
	assert.ErrorContains(t, run(true), "make bpf")
}

func TestMissingTypesAreRefused(t *testing.T) {
	output, constants := &btf.Struct{Name: "output", Size: 4}, &btf.Enum{Name: "constants", Size: 4}
	for want, types := range map[string][]btf.Type{"enum constants": {output}, "struct config": {constants, output}} {
		builder, err := btf.NewBuilder(types, nil)
		require.NoError(t, err)
		all, err := builder.Spec()
		require.NoError(t, err)
		_, err = declare(all)
		assert.ErrorContains(t, err, want)
	}
}

func TestIdentifier(t *testing.T) {
	for member, want := range map[string]string{"snaplen": "SnapLen", "xdp_verdict": "XDPVerdict", "w": "W", "resv2": "_", "id": "ID"} {
		assert.Equal(t, want, identifier(member))
	}
}
