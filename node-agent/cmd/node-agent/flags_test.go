// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/loader"
)

func TestBadCommandLines(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	for name, test := range map[string]struct {
		args    []string
		message string
	}{
		"no node name":         {nil, "NODE_NAME is not set"},
		"unknown command":      {[]string{"fly"}, `no command "fly"`},
		"unknown flag":         {[]string{"--fast"}, "-fast"},
		"a stray argument":     {[]string{"agent", "--standalone", "x", "y"}, `unexpected argument "y"`},
		"a relative folder":    {[]string{"--run-dir", "run", "--standalone", "x"}, `--run-dir "run": must be an absolute path`},
		"no user's number":     {[]string{"--standalone", "x", "--uids", "1,root"}, `"root" is not a user's number`},
		"keep in a cluster":    {[]string{"--node-name", "n", "--keep"}, "are for --standalone"},
		"no metrics":           {[]string{"--node-name", "n", "--metrics-address", ""}, "the kubelet's probes need it"},
		"unknown mode":         {[]string{"load-module", "--mode", "Build"}, "must be Load, Preloaded or Disabled"},
		"too hasty":            {[]string{"--node-name", "n", "--cut-off-after", "1s"}, "--cut-off-after 1s: must be between 10s and 10m"},
		"no log level":         {[]string{"--standalone", "x", "--log-level", "loud"}, "loud"},
		"no memory reserve":    {[]string{"--standalone", "x", "--memory-reserve", "some"}, `"some": must be a percentage of the node's memory`},
		"cleanup of an unsure": {[]string{"cleanup", "--bpffs", "bpf"}, `--bpffs "bpf": must be an absolute path`},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			err := run(context.Background(), test.args, &out, &errOut)
			assert.ErrorIs(t, err, errUsage)
			assert.Contains(t, errOut.String(), test.message)
		})
	}
}

func TestVersionAndHelp(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), []string{"version"}, &out, &out))
	assert.Equal(t, version+"\n", out.String())
	require.NoError(t, run(context.Background(), []string{"help"}, &out, &out))
	assert.Contains(t, out.String(), "--standalone DIR")
}

// The init container succeeds also where the module cannot be loaded, and reports the outcome.
func TestLoadModuleNeverFailsANode(t *testing.T) {
	runDir := filepath.Join(t.TempDir(), "run")
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), []string{"load-module", "--mode", "Disabled", "--run-dir", runDir}, &out, &out))
	assert.Contains(t, out.String(), "Disabled: ")
	text, err := os.ReadFile(filepath.Join(runDir, loader.OutcomeFile))
	require.NoError(t, err)
	var outcome loader.Outcome
	require.NoError(t, json.Unmarshal(text, &outcome))
	assert.Equal(t, "Disabled", outcome.Reason)
	assert.NotEmpty(t, outcome.BootID)
}
