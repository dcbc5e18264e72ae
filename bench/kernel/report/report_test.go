// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "symbols", "ffffffff81000000 T receive\nffffffff81000100 t copy\nffffffffc0000000 t put\t[ringcap]\n")
	write(t, dir, "runs.txt", "run warm-up ringcap 1 60 10 10\nrun baseline no-reader 0 60 10 0\nnoise\nrun plain ringcap 1 60 10 10\n")
	write(t, dir, "run.0", "400000 1 1 0\n")
	write(t, dir, "run.1", "ffffffff81000010 10 10 1\n400000 5 10 0\n")
	write(t, dir, "run.2", "ffffffff81000010 10 10 1\nffffffff81000150 3 10 0\nffffffffc0000020 20 10 2\n400000 7 10 0\n")

	var table bytes.Buffer
	out, tables := filepath.Join(dir, "kernel.json"), filepath.Join(dir, "kernel.md")
	require.NoError(t, run(&table, dir, "6.1", out, tables))

	var result Result
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &result))
	require.Len(t, result.Rows, 2)
	require.Equal(t, 10.0, result.Rows[0].InstructionsKernel)
	require.Equal(t, 1.0, result.Rows[0].LockedOperations)
	ringcap := result.Rows[1]
	require.Equal(t, 23.0, ringcap.InstructionsKernel)
	require.Equal(t, 2.0, ringcap.InstructionsUser)
	require.Equal(t, 2.0, ringcap.LockedOperations)
	require.Equal(t, Cost{"put[ringcap]", 20}, ringcap.Dominators[0])
	require.Contains(t, table.String(), "put[ringcap] 20, copy 3, user 2")
	text, err := os.ReadFile(tables)
	require.NoError(t, err)
	require.Contains(t, string(text), "| ringcap, 1 queue | 23 + 2, 2.0 | - | - |\n")
	require.Contains(t, string(text), "| one queue / TPACKET_V3 | 0.50 | - | not measured |\n")
	require.Contains(t, string(text), "- plain, ringcap x1: `put` 20\n")
}

func TestReportRefuses(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no runs":     {"symbols": "", "runs.txt": ""},
		"no counts":   {"symbols": "", "runs.txt": "run baseline no-reader 0 60 10 0\n"},
		"no baseline": {"symbols": "", "runs.txt": "run plain ringcap 1 60 10 10\n", "run.0": "400000 1 1 0\n"},
		"bad counts":  {"symbols": "", "runs.txt": "run baseline no-reader 0 60 10 0\n", "run.0": "x\n"},
		"bad symbols": {"symbols": "x\n", "runs.txt": ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range files {
				write(t, dir, file, text)
			}
			require.Error(t, run(&bytes.Buffer{}, dir, "6.1", filepath.Join(dir, "out.json"), filepath.Join(dir, "out.md")))
		})
	}
}

func TestGoals(t *testing.T) {
	goals := map[string]Goal{}
	for _, g := range judge([]Row{
		{Case: "plain", Who: "ringcap", Queues: 1, PacketSize: 60, InstructionsKernel: 285, InstructionsUser: 15, LockedOperations: 1.5},
		{Case: "plain", Who: "ringcap", Queues: 1, PacketSize: 1500, InstructionsKernel: 9000},
		{Case: "plain", Who: "tpacket-v3", Queues: 1, PacketSize: 60, InstructionsKernel: 590, InstructionsUser: 10},
		{Case: "no-module", Who: "no-reader", PacketSize: 60, InstructionsKernel: -6},
	}) {
		goals[g.Name] = g
	}
	require.True(t, goals["one queue / TPACKET_V3"].Reached)
	require.Equal(t, 0.5, *goals["one queue / TPACKET_V3"].Value)
	require.True(t, goals["consumer's instructions, libringcap"].Reached)
	require.False(t, goals["locked operations, one queue"].Reached)
	require.False(t, goals["instructions of other traffic by an idle module"].Reached)
	require.Nil(t, goals["quick mode / TPACKET_V3"].Value)
	require.False(t, goals["quick mode / TPACKET_V3"].Reached)

	var table bytes.Buffer
	require.NoError(t, printGoals(&table, judge(nil)))
	require.Contains(t, table.String(), "not measured")
}
