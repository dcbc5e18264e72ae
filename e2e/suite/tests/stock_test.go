// SPDX-License-Identifier: Apache-2.0

// Package tests has tests of the suite's shell functions, which need no cluster.
package tests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A libpcap is known to be ours by its texts, in whatever folder it was compiled, with debug information.
func TestKnowsRingcap(t *testing.T) {
	stock, err := filepath.Abs("../stock.sh")
	require.NoError(t, err)
	for name, row := range map[string]struct {
		folder, text string
		knows        bool
	}{
		"the distribution's":                   {"src", "a text", false},
		"the distribution's, compiled by us":   {"with space/ringcap", "a text", false},
		"with our module":                      {"src", "/run/ringcap", true},
		"with our module, in a folder of ours": {"ringcap", "/run/ringcap", true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), row.folder)
			require.NoError(t, os.MkdirAll(folder, 0o755))
			source := "#include <stdio.h>\nint say(void);\nint say(void) { return puts(\"" + row.text + "\"); }\n"
			require.NoError(t, os.WriteFile(filepath.Join(folder, "pcap.c"), []byte(source), 0o644))
			compiler := exec.Command("cc", "-g", "-shared", "-fPIC", "-o", "libpcap.so", "pcap.c")
			compiler.Dir = folder
			said, err := compiler.CombinedOutput()
			require.NoError(t, err, "%s", said)
			err = exec.Command("bash", "-o", "pipefail", "-c", `. "$1"; knows_ringcap "$2"`, "bash", stock, filepath.Join(folder, "libpcap.so")).Run()
			var status *exec.ExitError
			require.True(t, err == nil || errors.As(err, &status) && status.ExitCode() == 1, "%v", err)
			require.Equal(t, row.knows, err == nil)
		})
	}
}
