// SPDX-License-Identifier: Apache-2.0

package report

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

var (
	ours    = Key{"plain", "ringcap", 1, Setting{}}
	another = Key{"plain", "other", 1, Setting{}}

	oursLate = LatencyKey{"plain", "ringcap", 1, 32}
)

var testBenchmark = Benchmark{
	Title:    "a test",
	Baseline: func(what, _ string) (string, bool) { return "", what == "baseline" },
	Judge: func(rows *Rows) {
		rows.LimitRatio("ours / another's", 0.5, ours, another)
		rows.LimitLatency("ours, late", 200, oursLate)
		rows.LimitLatency("another's, late", 200, LatencyKey{Case: "plain", Who: "other"})
	},
	Markdown: func(result Result) string {
		t := NewTables(result)
		t.Table([]string{"reader", "60 bytes", "1500 bytes"},
			[]Line{{"ringcap, 1 queue", []string{t.Cell(ours, 60), t.Cell(ours, 1500)}}})
		t.Goals()
		t.Dominators(ours, another)
		return t.String() + "rates: " + t.RateCell(ours, 60) + ", " + t.RateCell(another, 60) + "\n" +
			"latencies: " + t.LatencyCell(oursLate) + "; " + t.LatencyCell(LatencyKey{}) + "\n"
	},
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "symbols", "ffffffff81000000 T receive\nffffffff81000100 t copy\nffffffffc0000000 t put\t[ringcap]\n")
	write(t, dir, "runs.txt", "run warm-up ringcap 1 60 10 10\nrun baseline no-reader 0 60 10 0\nnoise\nrun plain ringcap 1 60 10 10\n"+
		"latency plain ringcap 1 60 10000 32 131388 196323 990721\n")
	write(t, dir, "rates.txt", "trial plain\nrate plain ringcap 1 60 idle 264200 exact\nrate plain ringcap 1 60 busy 4000000 lower\n")
	write(t, dir, "run.0", "400000 1 1 0\n")
	write(t, dir, "run.1", "ffffffff81000010 10 10 1\n400000 5 10 0\n")
	write(t, dir, "run.2", "ffffffff81000010 10 10 1\nffffffff81000150 3 10 0\nffffffffc0000020 20 10 2\n400000 7 10 0\n")

	var table bytes.Buffer
	out, tables := filepath.Join(dir, "out.json"), filepath.Join(dir, "out.md")
	write(t, dir, "machine.json", `{"kernel": "6.1.0-1"}`)
	other := t.TempDir()
	write(t, other, "machine.json", `{"kernel": "6.1.0-1", "series": "6.1", "possibleProcessors": 8, "producers": 4}`)
	for _, name := range []string{"symbols", "run.0", "run.1", "run.2"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		write(t, other, name, string(data))
	}
	write(t, other, "runs.txt", "run warm-up ringcap 1 60 10 10\nrun baseline no-reader 0 60 10 0\nrun plain ringcap 1 60 20 20\n")
	require.NoError(t, testBenchmark.run(&table, []string{dir, other}, out, tables))

	var result Result
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &result))
	require.Len(t, result.Rows, 4)
	require.Equal(t, Setting{}, result.Rows[1].Setting)
	require.Equal(t, Setting{"6.1", 8, 4}, result.Rows[3].Setting)
	require.Equal(t, []Machine{{Kernel: "6.1.0-1"}, {"6.1.0-1", Setting{"6.1", 8, 4}}}, result.Machines)
	require.Equal(t, 10.0, result.Rows[0].InstructionsKernel)
	require.Equal(t, 1.0, result.Rows[0].LockedOperations)
	ringcap := result.Rows[1]
	require.Equal(t, 23.0, ringcap.InstructionsKernel)
	require.Equal(t, 2.0, ringcap.InstructionsUser)
	require.Equal(t, 2.0, ringcap.LockedOperations)
	require.Equal(t, Cost{"put[ringcap]", 20}, ringcap.Dominators[0])
	require.Equal(t, Rate{"plain", "ringcap", 1, 60, "busy", 4000000, true}, result.Rates[1])
	require.Contains(t, table.String(), "  plain, ringcap x1, 60 bytes: put[ringcap] 20, copy 3, user 2")
	require.Contains(t, table.String(), "  6.1, 8 possible processors, 4 producers: plain, ringcap x1, 60 bytes: ")
	require.Contains(t, table.String(), "\nKernel 6.1.0-1, possible processors: 8, producers: 4:\n")
	require.Contains(t, table.String(), "60 bytes, idle: 264200\n")
	text, err := os.ReadFile(tables)
	require.NoError(t, err)
	require.Contains(t, string(text), "| ringcap, 1 queue | 23 + 2, 2.0 | - |\n")
	require.Contains(t, string(text), "| ours / another's | 0.50 | - | not measured |\n")
	require.Contains(t, string(text), "- plain, ringcap x1: `put` 20\n")
	require.Contains(t, string(text), "rates: 264, ≥ 4000, -\n")
	require.Equal(t, []Latency{{"plain", "ringcap", 1, 60, 10000, 32, 131388, 196323, 990721}}, result.Latencies)
	require.Contains(t, table.String(), "plain, ringcap x1, 60 bytes, 10000 packets/s in groups of 32: 131.4, 196.3, 990.7\n")
	require.Contains(t, string(text), "latencies: 131.4, 196.3; -\n")
	require.Contains(t, string(text), "| ours, late | 200.00 | 196.32 | reached |\n")
	require.Contains(t, string(text), "| another's, late | 200.00 | - | not measured |\n")
}

func TestReportRefuses(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no runs":     {"symbols": "", "runs.txt": ""},
		"no counts":   {"symbols": "", "runs.txt": "run baseline no-reader 0 60 10 0\n"},
		"no baseline": {"symbols": "", "runs.txt": "run plain ringcap 1 60 10 10\n", "run.0": "400000 1 1 0\n"},
		"bad counts":  {"symbols": "", "runs.txt": "run baseline no-reader 0 60 10 0\n", "run.0": "x\n"},
		"bad machine": {"symbols": "", "runs.txt": "run baseline no-reader 0 60 10 0\n", "run.0": "400000 1 1 0\n", "machine.json": "6.1"},
		"bad symbols": {"symbols": "x\n", "runs.txt": ""},
		"bad rate": {"symbols": "", "runs.txt": "run baseline no-reader 0 60 10 0\n", "run.0": "400000 1 1 0\n",
			"rates.txt": "rate plain ringcap 1 60 idle fast exact\n"},
		"bad latency": {"symbols": "", "runs.txt": "run baseline no-reader 0 60 10 0\nlatency plain ringcap 1 60 slow\n", "run.0": "400000 1 1 0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "machine.json", "{}")
			for file, text := range files {
				write(t, dir, file, text)
			}
			require.Error(t, testBenchmark.run(&bytes.Buffer{}, []string{dir}, filepath.Join(dir, "out.json"), filepath.Join(dir, "out.md")))
		})
	}
}

func TestGoals(t *testing.T) {
	many := Setting{Series: "6.1", Possible: 64}
	a, b, absent := Key{"a", "r", 1, many}, Key{"b", "r", 1, many}, Key{"b", "r", 1, Setting{}}
	measured := []Row{
		{Case: "a", Who: "r", Queues: 1, PacketSize: 60, InstructionsKernel: 285, InstructionsUser: 15, LockedOperations: 1.5},
		{Case: "a", Who: "r", Queues: 1, PacketSize: 1500, InstructionsKernel: 9000},
		{Case: "b", Who: "r", Queues: 1, PacketSize: 60, InstructionsKernel: 590, InstructionsUser: 10},
	}
	for i := range measured {
		measured[i].Setting = many
	}
	rows := newRows(measured)
	rows.LimitRatio("half", 0.50, a, b)
	rows.Limit("locked", 1, func(r Row) float64 { return r.LockedOperations }, a)
	rows.LimitRatio("unknown", 1, a, absent)
	rows.LimitRatioAt(1500, "large", 1, a, b)
	rows.LimitAdded("added", 0.5, b, a, b, a)
	rows.LimitPerByte("a byte", 6.5, a, Smallest, 1500)
	require.Equal(t, 0.5, *rows.goals[0].Value)
	require.True(t, rows.goals[0].Reached)
	require.False(t, rows.goals[1].Reached)
	require.Nil(t, rows.goals[2].Value)
	require.False(t, rows.goals[2].Reached)
	require.Nil(t, rows.goals[3].Value)
	require.Equal(t, 1.0, *rows.goals[4].Value)
	require.False(t, rows.goals[4].Reached)
	require.InDelta(t, 6.04, *rows.goals[5].Value, 0.01)

	var table bytes.Buffer
	require.NoError(t, PrintGoals(&table, "Goals", rows.goals))
	require.Regexp(t, `half +at most 0.50 +0.50 +reached`, table.String())
	require.Regexp(t, `locked +at most 1.00 +1.50 +missed`, table.String())
	require.Regexp(t, `unknown +at most 1.00 +not measured`, table.String())
}
