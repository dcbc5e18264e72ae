// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// answer is the plain-C classifier's result for a packet in a cluster.
type answer struct {
	l3Off, l4Off, l3Proto, l4Proto, flags, tpid, tci uint32
	hash                                             [2]uint32
	queue                                            [2]int // the second is -1 where there is no second copy
}

// oraclePath is the oracle's binary: RINGCAP_ORACLE, or compiled here.
var oraclePath = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("RINGCAP_ORACLE"); path != "" {
		return path, nil
	}
	folder, err := os.MkdirTemp("", "rco")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "oracle")
	out, err := exec.Command("cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-I../../../kmod/classify",
		"-I../../../kmod/include/uapi", "-o", path, "oracle/oracle.c").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile oracle/oracle.c: %w: %s", err, out)
	}
	return path, nil
})

// ask asks the oracle about packets, in a cluster of which the queues in the mask are attended.
func ask(t *testing.T, c capture.Cluster, attended uint64, frames [][]byte) []answer {
	t.Helper()
	if len(frames) == 0 {
		return nil
	}
	path, err := oraclePath()
	require.NoError(t, err)
	var input bytes.Buffer
	for _, frame := range frames {
		fmt.Fprintf(&input, "%d %d %s %d %x %d %s\n", c.Balance, number(c.Inner), hex.EncodeToString(c.HashKey[:]), c.Queues, attended,
			c.WhenUnattended, hex.EncodeToString(frame))
	}
	command := exec.Command(path)
	command.Stdin = &input
	out, err := command.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, len(frames))
	answers := make([]answer, len(frames))
	for i, line := range lines {
		a := &answers[i]
		_, err := fmt.Sscan(line, &a.l3Off, &a.l4Off, &a.l3Proto, &a.l4Proto, &a.flags, &a.tpid, &a.tci, &a.hash[0], &a.queue[0],
			&a.hash[1], &a.queue[1])
		require.NoError(t, err)
	}
	return answers
}

func number(on bool) int {
	if on {
		return 1
	}
	return 0
}
