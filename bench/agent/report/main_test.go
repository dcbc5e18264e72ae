// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const measured = `ordinary output
figure {"engine":"EBPF","queues":23,"what":"CPU of an idle agent","value":0.9,"unit":"% of a core"}
figure {"engine":"EBPF","queues":23,"what":"first packet at a consumer","value":2.5,"unit":"s"}
figure {"engine":"KernelModule","what":"10,000 rules, from the manifest to the status","value":22,"unit":"s"}
`

func TestReport(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	require.NoError(t, os.WriteFile(path("figures"), []byte(measured), 0o644))
	var printed bytes.Buffer
	require.NoError(t, run(&printed, []string{path("figures")}, path("agent.json"), path("agent.md")))
	require.Contains(t, printed.String(), "0.90  reached")
	require.Contains(t, printed.String(), "2.50  missed")
	require.Contains(t, printed.String(), "not measured", "the module's 22 seconds are of an emulated machine")
	written, err := os.ReadFile(path("agent.json"))
	require.NoError(t, err)
	require.Contains(t, string(written), `"name": "eBPF, CPU of an idle agent, % of a core"`)
	require.Contains(t, string(written), `"what": "10,000 rules, from the manifest to the status"`)
}

func TestBadInput(t *testing.T) {
	folder := t.TempDir()
	bad := filepath.Join(folder, "figures")
	require.NoError(t, os.WriteFile(bad, []byte("figure {broken\n"), 0o644))
	require.ErrorContains(t, run(&bytes.Buffer{}, []string{bad}, "", ""), `"{broken"`)
	require.ErrorContains(t, run(&bytes.Buffer{}, nil, "", ""), "one file")
}
