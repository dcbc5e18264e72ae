// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/engine/ebpf"
)

// On a kernel that consumers could harm, there is no eBPF engine, and what an earlier agent made there is removed. If the
// test cannot be made once, an engine that is in use stays.
func TestTheEBPFEngineIsRefusedWhereConsumersCouldDoHarm(t *testing.T) {
	folder := t.TempDir()
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	busy := errors.New("too many open files")
	answers := []error{busy, busy, busy, nil, errors.New("is not asked again")}
	safe := func() error {
		answer := answers[0]
		answers = answers[1:]
		return answer
	}
	p := ebpfProvider(agentFlags{nodePaths: nodePaths{bpffs: folder}}, consumers{}, safe)
	for range 5 {
		assert.True(t, p.Probe(t.Context()).Available)
	}
	assert.Len(t, answers, 1)
	assert.Equal(t, 1, strings.Count(log.String(), "could not be checked"), "a change is logged, not a state")
	assert.False(t, p.Present())

	p = ebpfProvider(agentFlags{nodePaths: nodePaths{bpffs: folder}}, consumers{}, func() error { return fmt.Errorf("%w", ebpf.ErrOverlap) })
	fact := p.Probe(t.Context())
	assert.False(t, fact.Available)
	assert.Contains(t, fact.Why, "CVE-2024-41009")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "ringcap"), 0o700))
	assert.True(t, p.Present())
}
