// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// What `make bench-agent` is about: an agent with many rings and queues that has nothing to do, and one that is asked
// for something new. RINGCAP_BENCH="ENGINE RINGS QUEUES SECONDS" sets how many, and how long it is idle; a small case
// is among the ordinary tests. Figures are printed as lines of JSON after the word "figure".
func TestManyRings(t *testing.T) {
	engine, rings, queues, idle := v1.EngineEBPF, 8, 4, 2
	asked := os.Getenv("RINGCAP_BENCH")
	if asked != "" {
		_, err := fmt.Sscan(asked, &engine, &rings, &queues, &idle)
		require.NoError(t, err)
	}
	m := newMachine(t)
	m.timeout = 20 * time.Minute
	b := bench{m: m, engine: engine, rings: rings, queues: queues}
	for i := range (rings + 1) / 2 {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("a%d", i)}, PeerName: fmt.Sprintf("b%d", i)}
		require.NoError(t, netlink.LinkAdd(veth))
	}
	m.manifest("many.yaml", b.manifests())
	started := time.Now()
	agent := m.agent()
	s := m.eventually("all rings are ready", func(s v1.NodeCaptureStatus) bool { return b.ready(s, rings) })
	b.figure("rings made", time.Since(started).Seconds(), "s")
	var memory int64
	for _, cluster := range s.Clusters {
		memory += cluster.MemoryBytes
	}
	b.figure("memory of the queues", float64(memory)/(1<<20), "MiB")
	agent.kill()
	started = time.Now()
	agent = m.agent()
	m.eventually("all rings are adopted", func(s v1.NodeCaptureStatus) bool { return b.ready(s, rings) })
	b.figure("rings adopted by the next agent", time.Since(started).Seconds(), "s")

	time.Sleep(time.Duration(idle) * time.Second / 4) // it may look once more at what it has just adopted
	before := agent.cpu()
	time.Sleep(time.Duration(idle) * time.Second)
	b.figure("CPU of an idle agent", (agent.cpu()-before).Seconds()/float64(idle)*100, "% of a core")
	b.figure("memory of the agent", agent.resident(), "MiB")

	// Nobody captures on it yet, who would set it up.
	mirror, err := netlink.LinkByName("mirror0")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetUp(mirror))
	stop := m.traffic()
	t.Cleanup(stop)
	b.figure("first packet at a consumer", b.firstPacket("new").Seconds(), "s")
	b.change(agent, "10,000 rules", rings+4, func() { m.manifest("rules.yaml", b.rules(3334)) })
	b.change(agent, "another 10,000 rules", rings+5, func() {
		m.manifest("rules.yaml", strings.ReplaceAll(b.rules(3334), "10.9.", "10.8."))
		m.manifest("marker.yaml", b.ring("marker", "mirror0", 1))
	})
	stop()
	agent.interrupt(unix.SIGTERM)
}

// change measures from when something else is asked for until so many rings are there and as they should be.
func (b bench) change(agent *process, what string, rings int, ask func()) {
	before, began := agent.cpu(), time.Now()
	ask()
	b.m.eventually(what, func(s v1.NodeCaptureStatus) bool { return b.ready(s, rings) })
	b.figure(what+", from the manifest to the status", time.Since(began).Seconds(), "s")
	b.figure(what+", CPU time of the agent until then", (agent.cpu() - before).Seconds(), "s")
}

type bench struct {
	m             *machine
	engine        v1.Engine
	rings, queues int
}

func (b bench) figure(what string, value float64, unit string) {
	var kernel unix.Utsname
	require.NoError(b.m.t, unix.Uname(&kernel))
	line, err := json.Marshal(struct {
		Engine v1.Engine `json:"engine"`
		Kernel string    `json:"kernel"`
		Rings  int       `json:"rings"`
		Queues int       `json:"queues"`
		What   string    `json:"what"`
		Value  float64   `json:"value"`
		Unit   string    `json:"unit"`
	}{b.engine, unix.ByteSliceToString(kernel.Release[:]), b.rings, b.queues, what, float64(int(value*1000)) / 1000, unit})
	require.NoError(b.m.t, err)
	fmt.Printf("figure %s\n", line)
}

func (b bench) ring(name, iface string, queues int) string {
	return fmt.Sprintf("---\napiVersion: ringcap.io/v1alpha1\nkind: CaptureRing\nmetadata: {name: %s}\n"+
		"spec: {engine: %s, interfaces: [{name: %s}], queues: %d, slots: 64, snapLength: 256}\n", name, b.engine, iface, queues)
}

func (b bench) manifests() string {
	var text strings.Builder
	for i := range b.rings {
		text.WriteString(b.ring(fmt.Sprintf("ring%d", i), fmt.Sprintf("%c%d", 'a'+i%2, i/2), b.queues))
	}
	return text.String()
}

// rules are three rings with so many rules each.
func (b bench) rules(each int) string {
	var text strings.Builder
	for ring := range 3 {
		text.WriteString(strings.TrimSuffix(b.ring(fmt.Sprintf("ruled%d", ring), "mirror0", 1), "}\n"))
		text.WriteString(", filter: {rules: [")
		for i := range each {
			fmt.Fprintf(&text, "{action: Drop, match: {source: 10.9.%d.%d, protocol: TCP, destinationPort: \"%d\"}},\n", i/256, i%256, 1+i)
		}
		text.WriteString("]}}\n")
	}
	return text.String()
}

// ready: so many rings are there, each as it should be.
func (b bench) ready(s v1.NodeCaptureStatus, rings int) bool {
	if len(s.Rings) != rings || len(s.Clusters) != rings {
		return false
	}
	for i := range s.Rings {
		if !s.Rings[i].Ready || !s.Clusters[i].Ready {
			return false
		}
	}
	return true
}

// firstPacket is the time from when a ring on the busy interface is asked for until a consumer that waits for it has
// a packet.
func (b bench) firstPacket(name string) time.Duration {
	b.m.manifest(name+".yaml", b.ring(name, "mirror0", 1))
	started := time.Now()
	for time.Since(started) < time.Minute {
		consumer := exec.Command(filepath.Join(outDir, "rcount"), "-q", "-c", "1", name)
		consumer.Env = append(os.Environ(), "RINGCAP_RUN_DIR="+b.m.path("run"))
		if consumer.Run() == nil {
			return time.Since(started)
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.m.t.Fatalf("no packet from ring %s in a minute", name)
	return 0
}

// cpu is the time that the process has computed.
func (p *process) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	require.NoError(p.t, err)
	// After the name, which may have anything in it: fields 3 on; 14 and 15 are ticks of 10 ms in user and kernel mode.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(fields[14-3])
	require.NoError(p.t, err)
	kernel, err := strconv.Atoi(fields[15-3])
	require.NoError(p.t, err)
	return time.Duration(user+kernel) * 10 * time.Millisecond
}

// resident is the memory that the process takes, in MiB.
func (p *process) resident() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	require.NoError(p.t, err)
	for line := range strings.Lines(string(text)) {
		var kilobytes float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kilobytes); n == 1 {
			return kilobytes / 1024
		}
	}
	return 0
}
