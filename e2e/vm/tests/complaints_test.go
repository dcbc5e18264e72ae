// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Only a log that was read and has no complaint passes. Tools that fail are stood in for by scripts in PATH.
func TestComplaints(t *testing.T) {
	const fine, trace, warning = "igb: link is up\n", "Call Trace:\n f+0x1\n", "WARNING: CPU: 0 PID: 7\n f+0x1\n"
	for name, row := range map[string]struct {
		log    string
		tools  map[string]string
		words  []string
		status int
		says   string
	}{
		"no complaint":                   {log: fine, words: []string{"-"}},
		"a warning, and what follows it": {log: fine + warning, words: []string{"-"}, status: 1, says: warning},
		"a call trace":                   {log: trace, words: []string{"--traces", "-"}, status: 1, says: trace},
		"a call trace that may be":       {log: trace, words: []string{"-"}},
		"dmesg's log":                    {tools: map[string]string{"dmesg": "echo BUG: of the kernel"}, status: 1, says: "BUG: of the kernel\n"},
		"an empty log":                   {words: []string{"-"}, status: 2, says: "log is empty"},
		"no file":                        {words: []string{"none"}, status: 2, says: "cannot be read"},
		"dmesg fails":                    {tools: map[string]string{"dmesg": "echo fine; exit 1"}, status: 2, says: "cannot be read"},
		"grep fails":                     {log: fine, tools: map[string]string{"grep": "exit 2"}, words: []string{"-"}, status: 2, says: "grep failed"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			for tool, script := range row.tools {
				require.NoError(t, os.WriteFile(filepath.Join(bin, tool), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
			}
			cmd := exec.Command("../complaints", row.words...)
			cmd.Env, cmd.Stdin = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")), strings.NewReader(row.log)
			said, err := cmd.Output()
			var exit *exec.ExitError
			require.True(t, err == nil || errors.As(err, &exit), "%v", err)
			require.Equal(t, row.status, cmd.ProcessState.ExitCode(), "%s", said)
			require.Contains(t, string(said), row.says)
		})
	}
}
