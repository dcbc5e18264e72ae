// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const machineLine = `machine {"kernel":"6.1.0-1","processors":2,"emulated":false}` + "\n"

// trial is what one leaves: a program's words of 4,000 packets, and its figures.
func trial(program, source string, round, rate int, cpu float64, switches int) string {
	said := map[string]string{
		"tcpdump": "| tcpdump: listening on x\n| 3999 packets captured\n| 4000 packets received by filter\n| 1 packet dropped by kernel\n",
		"dumpcap": "| Capturing on 'x'\n| \rPackets captured: 4000\n" +
			"| Packets received/dropped on interface 'x': 4000/0 (pcap:0/dumpcap:0/flushed:0/ps_ifdrop:0) (100.0%)\n",
		"suricata": "| decoder.pkts                                  | Total                     | 2000\n" +
			"| decoder.pkts                                  | Total                     | 3990\n",
	}[program]
	if program == "suricata" && source == sockets {
		said += "| Notice: device: mirror0: packets: 4000, drops: 10 (0.25%), invalid chksum: 0\n"
	} else if program == "suricata" {
		said += "| Info: pcap: rc-ebpf: pcap total:4000 recv:3990 drop:10 (0.2%)\n" +
			"| Notice: device: rc-ebpf: packets: 3000, drops: 0 (0.00%), invalid chksum: 0\n"
	}
	return said + fmt.Sprintf(`run {"program":"%s","source":"%s","round":%d,"rate":%d,"sent":4000,"sendingSeconds":4,"windowSeconds":5.5,`+
		`"cpuSeconds":%g,"voluntarySwitches":%d,"involuntarySwitches":3,"wholeUserSeconds":0.5,"wholeSystemSeconds":0.25,`+
		`"wholeVoluntarySwitches":900,"wholeInvoluntarySwitches":9,"status":0}`+"\n", program, source, round, rate, cpu, switches)
}

func read(t *testing.T, text string) measured {
	t.Helper()
	m, err := readRuns(strings.NewReader(machineLine + text))
	require.NoError(t, err)
	return m
}

func TestWhatProgramsSay(t *testing.T) {
	for _, program := range programs {
		for _, source := range []string{sockets, "ebpf"} {
			run := read(t, trial(program, source, 1, 1000, 0.5, 7)).runs[0]
			require.Equal(t, 4000, run.Received+run.Dropped, "%s on %s", program, source)
			require.Equal(t, map[string]int{"tcpdump": 1, "dumpcap": 0, "suricata": 10}[program], run.Dropped)
			require.Empty(t, run.wrong())
			require.Equal(t, 7, run.VoluntarySwitches)
		}
	}
}

func TestReadRuns(t *testing.T) {
	m := read(t, "noise\nskip kmod: not loaded\nfailed dumpcap ebpf 1000 2 3\nfailed dumpcap ebpf 20000 1 139\nload 0.5 2.25\n")
	require.Equal(t, Machine{Kernel: "6.1.0-1", Processors: 2, LoadBefore: 0.5, LoadAfter: 2.25, Skipped: []Skipped{{"kmod", "not loaded"}}}, m.machine)
	require.Equal(t, map[key]string{
		{"dumpcap", "ebpf", 1000}:  "round 2: the sender was late each time",
		{"dumpcap", "ebpf", 20000}: "round 1: the trial ended with 139",
	}, m.failed)

	for _, bad := range []string{"", "machine x\n", machineLine + "run {\n", machineLine + `run {"program":"vi"}` + "\n",
		machineLine + "failed dumpcap\n", machineLine + "load x\n"} {
		_, err := readRuns(strings.NewReader(bad))
		require.Error(t, err, bad)
	}
}

// wakeUpsDue is for trial: 5.5 timeouts of tcpdump's, and 4000 packets.
const wakeUpsDue = 5.5 + 4000.0/8738

func TestRowsAreMediansAndRatios(t *testing.T) {
	var text string
	for i, cpu := range []float64{0.5, 9, 0.25, 0.125, 1} {
		text += trial("tcpdump", sockets, i+1, 1000, cpu, 10) + trial("tcpdump", "ebpf", i+1, 1000, cpu/2, 100*(i+1))
	}
	rows := makeRows(read(t, text))
	require.Len(t, rows, 2)
	require.Equal(t, 0.5, rows[0].CPUSeconds)
	require.Nil(t, rows[0].Ratio)
	require.Nil(t, rows[0].WakeUps)
	require.Equal(t, 0.75, rows[0].WholeCPUSeconds)
	require.Equal(t, 5, rows[0].Dropped)
	require.Equal(t, 1000.0, rows[0].PacketsPerSecond)
	require.Equal(t, 0.5, *rows[1].Ratio)
	require.Equal(t, 300.0, rows[1].VoluntarySwitches)
	require.InDelta(t, 300/wakeUpsDue, *rows[1].WakeUps, 1e-9)

	require.Equal(t, 0.375, median(rows[0].Runs[2:4], func(r Run) float64 { return 3 * r.CPUSeconds / 1.5 }))
}

func TestRowsAreRefused(t *testing.T) {
	good := trial("tcpdump", "ebpf", 1, 1000, 0.5, 10)
	for why, text := range map[string]string{
		"round 1: 4000 sent, but 3998 received and 1 dropped":                 strings.Replace(good, "3999 packets", "3998 packets", 1),
		"round 1: tcpdump does not say what it received and what was dropped": strings.Replace(good, "3999 packets captured", "killed", 1),
		"round 1: tcpdump ended with 137":                                     strings.Replace(good, `"status":0`, `"status":137`, 1),
		"round 1: 4000 sent, but 3999 received and 2 dropped":                 strings.Replace(good, "1 packet dropped", "2 packets dropped", 1),
		"round 3: the sender was late each time":                              good + "failed tcpdump ebpf 1000 3 3\n",
	} {
		rows := makeRows(read(t, trial("tcpdump", sockets, 1, 1000, 0.5, 10)+text))
		require.Equal(t, why, rows[1].Refused)
		require.Nil(t, rows[1].Ratio)
		require.Zero(t, rows[1].CPUSeconds)
		require.Nil(t, judge([]Machine{{Rows: rows}})[0].Value, "%s", why)
	}
	// Of a source that is refused there are no ratios; what never ran has a row, too.
	rows := makeRows(read(t, good+"failed tcpdump af-packet 1000 1 1\n"))
	require.Len(t, rows, 2)
	require.Nil(t, rows[0].Ratio)
	require.Equal(t, "round 1: the trial ended with 1", rows[1].Refused)
}

func TestGoalsAreOfTheWorstRate(t *testing.T) {
	real := Machine{Rows: makeRows(read(t, trial("tcpdump", sockets, 1, 1000, 0.5, 10)+trial("tcpdump", "ebpf", 1, 1000, 0.25, 10)+
		trial("tcpdump", sockets, 1, 20000, 0.5, 10)+trial("tcpdump", "ebpf", 1, 20000, 0.75, 811)))}
	emulated := Machine{Emulated: true, Rows: makeRows(read(t, trial("tcpdump", sockets, 1, 1000, 0.5, 10)+
		trial("tcpdump", "ebpf", 1, 1000, 5, 10)+trial("tcpdump", "kmod", 1, 1000, 0.5, 10)))}
	goals := judge([]Machine{emulated, real})
	found := map[string]float64{}
	for _, goal := range goals {
		if goal.Value != nil {
			found[goal.Name] = *goal.Value
			require.Equal(t, *goal.Value <= 1, goal.Reached)
		}
	}
	require.Len(t, goals, 10)
	require.Equal(t, map[string]float64{
		"eBPF, tcpdump at 1,000, 20,000 a second: CPU time / AF_PACKET":                   1.5,
		"eBPF, tcpdump at 1,000, 20,000 a second: wake-ups / (timeouts + watermarks)":     811 / wakeUpsDue,
		"module, tcpdump at 1,000 a second: CPU time / AF_PACKET, emulated":               1,
		"module, tcpdump at 1,000 a second: wake-ups / (timeouts + watermarks), emulated": 10 / wakeUpsDue,
	}, found)
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	text := machineLine + "skip kmod: not loaded\n" + trial("dumpcap", sockets, 1, 1000, 0.005, 12) + trial("dumpcap", "ebpf", 1, 1000, 0.25, 3400) +
		trial("dumpcap", sockets, 1, 50000, 0.1, 12) + "failed dumpcap ebpf 50000 1 3\nload 1 2\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "runs.txt"), []byte(text), 0o644))
	var table bytes.Buffer
	out, tables := filepath.Join(dir, "out.json"), filepath.Join(dir, "out.md")
	require.NoError(t, run(&table, []string{dir}, out, tables))

	require.Contains(t, table.String(), "Kernel 6.1.0-1, 2 processors, load 1.0 to 2.0")
	require.Regexp(t, `dumpcap +ebpf +1000 +1000 +0.2500 +50.00 `, table.String())
	require.Regexp(t, `dumpcap +ebpf +50000 +refused .*the sender was late`, table.String())
	require.Contains(t, table.String(), "kmod skipped: not loaded")
	require.Regexp(t, `module, tcpdump: CPU time / AF_PACKET +at most 1.00 +not measured`, table.String())

	var result Result
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &result))
	require.Len(t, result.Machines[0].Rows, 4)
	require.Equal(t, 50.0, *result.Machines[0].Rows[1].Ratio)

	data, err = os.ReadFile(tables)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(data), "| Kernel 6.1.0-1, 2 processors, load 1.0 to 2.0 | AF_PACKET | eBPF | ratio |\n|---|---|---|---|\n"+
		"| dumpcap, 1,000 a second | 5.0 ms, 12 | 250.0 ms, 3400 | **50** |\n"+
		"| dumpcap, 50,000 a second | 100.0 ms, 12 | refused | - |\n\n"), string(data))

	require.Error(t, run(&table, []string{t.TempDir()}, out, tables))
}
