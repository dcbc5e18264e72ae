// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/node-agent/capture"
)

func TestCompile(t *testing.T) {
	prog, err := Compiler{Path: rcbpf(t)}.Compile(context.Background(), "ether[0] = 1", 96)
	require.NoError(t, err)
	require.Equal(t, []bpf.RawInstruction{
		{Op: ld | sizeB | modeAbs}, {Op: jmp | opJeq, Jf: 1, K: 1}, {Op: retK, K: 96}, {Op: retK},
	}, prog)
}

func TestCompileByEnvironment(t *testing.T) {
	t.Setenv(CompilerEnv, rcbpf(t))
	prog, err := Compile(context.Background(), "", 1)
	require.NoError(t, err)
	require.Equal(t, []bpf.RawInstruction{{Op: retK, K: 1}}, prog)
}

func TestCompileSaysWhatLibpcapSays(t *testing.T) {
	for expr, message := range map[string]string{
		"tcp port":                              "syntax error",
		"host 300.1.1.1":                        "300.1.1.1",
		"ip and\x01 tcp":                        "",
		"port; rm -rf /":                        "",
		"ip6 host 10.0.0.1":                     "",
		"inbound":                               "set the ring's direction",
		"tcp and not outbound":                  "set the ring's direction",
		"ifindex 3":                             "name its interfaces",
		strings.Repeat("tcp or ", 5000) + "udp": "longer than",
		strings.Repeat("(", 4000):               "",
	} {
		_, err := Compiler{Path: rcbpf(t)}.Compile(context.Background(), expr, 65535)
		var invalid *ExpressionError
		require.ErrorAs(t, err, &invalid, "%.40q", expr)
		require.Contains(t, invalid.Error(), message)
		require.NotContains(t, invalid.Error(), "\n")
		require.NotEmpty(t, invalid.Error())
	}
}

func TestCompileRefusesLoops(t *testing.T) {
	for _, expr := range []string{"ip protochain 6", "ip6 protochain 6"} {
		_, err := Compiler{Path: rcbpf(t)}.Compile(context.Background(), expr, 65535)
		require.ErrorIs(t, err, ErrNotRepresentable)
		require.ErrorIs(t, err, capture.ErrUnsupported)
		require.ErrorContains(t, err, "protochain")
	}
}

// fakeCompiler replaces rcbpf by a shell script.
func fakeCompiler(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), compilerName)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	return path
}

func TestCompilerUnavailable(t *testing.T) {
	for name, test := range map[string]struct{ script, message string }{
		"fails":                       {"echo 'no memory' >&2; exit 2", "no memory"},
		"fails silently":              {"exit 1", "exit status 1"},
		"dies":                        {"kill -SEGV $$", "segmentation fault"},
		"prints nothing":              {"", "printed 1 lines"},
		"prints too few":              {"echo 2; echo 6 0 0 0", "printed 2 lines"},
		"prints nonsense":             {"echo 1; echo 6 0 0 many", "where an instruction should be"},
		"prints what is out of range": {"echo 1; echo 6 0 256 0", "where an instruction should be"},
		"prints no program":           {"echo 1; echo 0 0 0 0", "does not end in a return"},
		"does not stop":               {"exec cat /dev/zero", "did not finish"},
		"prints very much":            {"head -c 3000000 /dev/zero", "more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Compiler{Path: fakeCompiler(t, test.script), Timeout: 2 * time.Second}
			_, err := c.Compile(context.Background(), "ip", 96)
			require.ErrorIs(t, err, ErrCompilerUnavailable)
			require.ErrorContains(t, err, test.message)
			require.NotErrorIs(t, err, ErrNotRepresentable)
		})
	}
	_, err := Compiler{Path: "/nonexistent/rcbpf"}.Compile(context.Background(), "ip", 96)
	require.ErrorIs(t, err, ErrCompilerUnavailable)
	require.ErrorIs(t, err, os.ErrNotExist)
	t.Setenv("PATH", t.TempDir())
	t.Setenv(CompilerEnv, "")
	_, err = Compile(context.Background(), "ip", 96)
	require.ErrorIs(t, err, ErrCompilerUnavailable)
	require.ErrorContains(t, err, CompilerEnv)
}

func TestCompileIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Compiler{Path: fakeCompiler(t, "exec cat /dev/zero")}.Compile(ctx, "ip", 96)
	require.ErrorIs(t, err, ErrCompilerUnavailable)
	require.ErrorIs(t, err, context.Canceled)
}
