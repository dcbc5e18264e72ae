// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/datapath"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const mirrorManifest = `
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: mirror}
spec: {interfaces: [{name: mirror0}]}
---
apiVersion: ringcap.io/v1alpha1
kind: Cluster
metadata: {name: ids}
spec: {rings: [mirror], queues: 2}
`

func ready(s v1.NodeCaptureStatus) bool {
	return len(s.Rings) == 1 && s.Rings[0].Ready && len(s.Clusters) == 1 && s.Clusters[0].Ready
}

// account checks the equations, and returns what was seen and delivered.
func account(t *testing.T, s v1.NodeCaptureStatus) (seen, delivered int64) {
	t.Helper()
	require.Len(t, s.Rings, 1)
	require.Len(t, s.Clusters, 1)
	ring, dropped := s.Rings[0], int64(0)
	for _, queue := range s.Clusters[0].Queues {
		delivered += queue.Delivered
		for _, d := range queue.Dropped {
			dropped += d.Packets
		}
	}
	assert.Equal(t, ring.Seen, ring.Filtered+ring.SampledOut+ring.Passed)
	assert.Equal(t, ring.Passed, delivered+dropped)
	return ring.Seen, delivered
}

// The agent is killed under traffic: capture goes on, the consumers lose nothing, and the next agent adopts it all.
func TestTheAgentIsKilledUnderTraffic(t *testing.T) {
	m := newMachine(t)
	m.manifest("mirror.yaml", mirrorManifest)
	agent := m.agent()
	m.eventually("ready", ready)
	consumers := []*process{m.consumer(0), m.consumer(1)}

	m.send(2000)
	require.NoError(t, agent.Process.Kill())
	_ = agent.wait()
	m.send(2000)
	agent = m.agent()
	m.eventually("ready again", ready)
	m.eventually("the consumers are back", func(s v1.NodeCaptureStatus) bool {
		return ready(s) && s.Clusters[0].Queues[0].Attached && s.Clusters[0].Queues[1].Attached
	})
	m.send(2000)
	s := m.eventually("all is seen", func(s v1.NodeCaptureStatus) bool { return ready(s) && s.Rings[0].Seen >= int64(m.sent) })

	var read int64
	for _, consumer := range consumers {
		consumer.interrupt(unix.SIGINT)
		read += consumer.counted()
	}
	seen, delivered := account(t, s)
	assert.EqualValues(t, m.sent, seen)
	assert.EqualValues(t, m.sent, delivered)
	assert.EqualValues(t, m.sent, read)

	up, promiscuous := m.flags("mirror0")
	assert.True(t, up)
	assert.True(t, promiscuous)
	agent.interrupt(unix.SIGTERM)
	assert.NoDirExists(t, m.pinDir())
	up, promiscuous = m.flags("mirror0")
	assert.False(t, up, "the interface was down before, and is again")
	assert.False(t, promiscuous)
}

// A consumer that opens a queue by hand starts with new packets, and reports how many a killed consumer left.
func TestTheNextConsumerBeginsWithNow(t *testing.T) {
	m := newMachine(t)
	m.manifest("mirror.yaml", strings.ReplaceAll(mirrorManifest, "queues: 2", "queues: 1"))
	agent := m.agent()
	m.eventually("ready", ready)
	hung := m.consumer(0)
	require.NoError(t, hung.Process.Signal(unix.SIGSTOP))
	m.send(500)
	m.eventually("all is seen", func(s v1.NodeCaptureStatus) bool { return ready(s) && s.Rings[0].Seen >= int64(m.sent) })
	hung.kill()
	m.eventually("the consumer is gone", func(s v1.NodeCaptureStatus) bool { return ready(s) && !clusterOf(s, "ids").Queues[0].Attached })

	next := m.consumer(0)
	m.send(100)
	m.eventually("all is read", func(s v1.NodeCaptureStatus) bool {
		return ready(s) && clusterOf(s, "ids").Queues[0].UnreadBytes == 0 && s.Rings[0].Seen >= int64(m.sent)
	})
	next.interrupt(unix.SIGINT)
	assert.EqualValues(t, 100, next.counted())
	assert.EqualValues(t, 500, next.number("skipped"))
	agent.interrupt(unix.SIGTERM)
}

// Objects that are refused have the reason in their status and do not affect the good ones. Corrected, they are served.
func TestBadManifestsAmongGoodOnes(t *testing.T) {
	m := newMachine(t)
	m.manifest("mirror.yaml", mirrorManifest)
	agent := m.agent()
	m.eventually("ready", ready)
	consumer := m.consumer(0)

	m.manifest("bad.yaml", `
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: bad-filter}
spec: {interfaces: [{name: mirror0}], filter: {bpf: "tcp port"}}
---
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: bad-interface}
spec: {interfaces: [{name: mirror7}], queues: 1}
---
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: bad-engine}
spec: {interfaces: [{name: mirror0}], engine: KernelModule}
---
apiVersion: ringcap.io/v1alpha1
kind: Cluster
metadata: {name: bad-rings}
spec: {rings: [nowhere], queues: 2}
---
apiVersion: ringcap.io/v1alpha1
kind: Cluster
metadata: {name: bad-memory}
spec: {rings: [mirror], queues: 2, memoryLimit: 1Mi}
---
apiVersion: ringcap.io/v1alpha1
kind: Cluster
metadata: {name: bad-queues}
spec: {rings: [mirror], queues: 100000}
---
apiVersion: ringcap.io/v1alpha1
kind: Cluster
metadata: {name: misspelt}
spec: {rings: [mirror], queue: 1}
`)
	s := m.eventually("the bad ones are there", func(s v1.NodeCaptureStatus) bool { return len(s.Rings) == 4 })
	reasons := map[string]string{}
	for _, ring := range s.Rings {
		reasons[ring.Name] = ring.Reason
	}
	for _, cluster := range s.Clusters {
		reasons[cluster.Name] = cluster.Reason
		if cluster.Name == "ids" {
			assert.True(t, cluster.Queues[0].Attached)
		}
	}
	assert.Equal(t, v1.ReasonRingNotAccepted, reasons["bad-interface"], "its own queues")
	delete(reasons, "bad-interface")
	want := map[string]string{
		"mirror": "", "ids": "", "bad-filter": v1.ReasonInvalidFilter, "bad-rings": v1.ReasonRingNotFound,
		"bad-memory": v1.ReasonMemoryLimitExceeded, "bad-queues": v1.ReasonUnsupported, "bad-engine": v1.ReasonEngineUnavailable,
	}
	if _, err := os.Stat("/sys/module/ringcap"); err == nil {
		want["bad-engine"] = ""
	}
	assert.Equal(t, want, reasons)
	assert.Contains(t, agent.output(), "syntax error")
	assert.Contains(t, agent.output(), `unknown field "spec.queue"`)

	m.send(500)
	require.NoError(t, os.Remove(m.path("manifests", "bad.yaml")))
	s = m.eventually("the bad ones are gone", func(s v1.NodeCaptureStatus) bool { return ready(s) && s.Rings[0].Seen >= int64(m.sent) })
	seen, _ := account(t, s)
	assert.EqualValues(t, m.sent, seen)
	consumer.interrupt(unix.SIGINT)
	agent.interrupt(unix.SIGTERM)
}

// A filter in a manifest is the kernel's: what it rejects is counted and not delivered.
func TestAFilterInAManifest(t *testing.T) {
	m := newMachine(t)
	m.manifest("mirror.yaml", `
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: mirror}
spec: {interfaces: [{name: mirror0}], filter: {bpf: "udp and src host 10.0.0.7"}}
---
apiVersion: ringcap.io/v1alpha1
kind: Cluster
metadata: {name: ids}
spec: {rings: [mirror], queues: 1}
`)
	agent := m.agent()
	m.eventually("ready", ready)
	consumer := m.consumer(0)
	m.send(640)
	s := m.eventually("all is seen", func(s v1.NodeCaptureStatus) bool { return s.Rings[0].Seen >= int64(m.sent) })
	_, delivered := account(t, s)
	assert.EqualValues(t, 10, delivered)
	assert.EqualValues(t, 630, s.Rings[0].Filtered)
	consumer.interrupt(unix.SIGINT)
	assert.EqualValues(t, 10, consumer.counted())
	agent.interrupt(unix.SIGTERM)
}

// The interface comes after the ring, goes, and comes again.
func TestTheInterfaceComesAndGoes(t *testing.T) {
	m := newMachine(t)
	m.manifest("mirror.yaml", mirrorManifest)
	rename := func(from, to string) {
		require.NoError(t, exec.Command("ip", "link", "set", from, "name", to).Run())
	}
	rename("mirror0", "other0")
	agent := m.agent()
	m.eventually("refused", func(s v1.NodeCaptureStatus) bool {
		return len(s.Rings) == 1 && s.Rings[0].Reason == v1.ReasonInterfaceNotFound
	})
	rename("other0", "mirror0")
	m.eventually("ready", ready)
	consumer := m.consumer(0)
	require.NoError(t, exec.Command("ip", "link", "del", "sender0").Run())
	s := m.eventually("refused again", func(s v1.NodeCaptureStatus) bool {
		return len(s.Rings) == 1 && s.Rings[0].Reason == v1.ReasonInterfaceNotFound
	})
	assert.Len(t, s.Clusters[0].Queues, 2, "the queues stay for their consumers")
	assert.True(t, s.Clusters[0].Queues[0].Attached)
	unix.Close(m.socket)
	m.cable()
	m.eventually("ready again", ready)
	m.send(640)
	s = m.eventually("all is seen", func(s v1.NodeCaptureStatus) bool { return s.Rings[0].Seen >= int64(m.sent) })
	assert.True(t, s.Clusters[0].Queues[0].Attached)
	consumer.interrupt(unix.SIGINT)
	assert.Equal(t, s.Clusters[0].Queues[0].Delivered, consumer.counted())
	agent.interrupt(unix.SIGTERM)
}

func TestKeepAndCleanup(t *testing.T) {
	m := newMachine(t)
	m.manifest("mirror.yaml", mirrorManifest)
	agent := m.agent("--keep")
	m.eventually("ready", ready)
	agent.interrupt(unix.SIGTERM)
	assert.DirExists(t, m.pinDir())

	assert.FileExists(t, m.path("run", acceptedName))
	require.NoError(t, os.Mkdir(m.path("plugin"), 0o750))
	for _, name := range []string{acceptedName, datapath.Aside(acceptedName)} {
		require.NoError(t, os.WriteFile(m.path("plugin", name), []byte("{}"), 0o600))
	}
	command := exec.Command("/proc/self/exe", "cleanup", "--run-dir", m.path("run"), "--bpffs", m.path("bpf"), "--plugin-dir", m.path("plugin"))
	command.Env = append(os.Environ(), asAgent+"=1")
	cleanup := m.start("cleanup", command)
	require.NoError(t, cleanup.wait(), cleanup.output())
	assert.NoDirExists(t, m.pinDir())
	assert.NoDirExists(t, m.path("run"))
	assert.NoDirExists(t, m.path("plugin"))
	up, promiscuous := m.flags("mirror0")
	assert.False(t, up)
	assert.False(t, promiscuous)
}

// rccheck, which `helm test` runs, finds the packets that it sends, and reports missing ones.
func TestCheck(t *testing.T) {
	const ring = "apiVersion: ringcap.io/v1alpha1\nkind: CaptureRing\nmetadata: {name: %s}\nspec: {interfaces: [{name: mirror0}], direction: Both, queues: 1, %s}\n"
	m := newMachine(t)
	device, err := netlink.LinkByName("mirror0")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetUp(device))
	address, err := netlink.ParseAddr("192.0.2.1/24")
	require.NoError(t, err)
	require.NoError(t, netlink.AddrAdd(device, address))
	require.NoError(t, netlink.NeighAdd(&netlink.Neigh{LinkIndex: device.Attrs().Index, IP: net.IPv4(192, 0, 2, 2),
		HardwareAddr: m.sender.Attrs().HardwareAddr, State: netlink.NUD_PERMANENT}))
	check := func(args ...string) (string, int) {
		command := exec.Command(filepath.Join(outDir, "rccheck"), args...)
		command.Env = append(os.Environ(), "RINGCAP_RUN_DIR="+m.path("run"))
		out, _ := command.CombinedOutput()
		return string(out), command.ProcessState.ExitCode()
	}
	m.manifest("check.yaml", fmt.Sprintf(ring, "check", "filter: {bpf: udp dst port 9}"))
	m.agent()
	m.eventually("ready", ready)
	out, status := check("check", "192.0.2.2")
	assert.Zero(t, status, out)
	assert.Contains(t, out, "1000 packets were sent and captured by EBPF in check@0, in order and unchanged; none was lost")

	out, status = check("-p", "10", "-t", "1", "check", "192.0.2.2")
	assert.Equal(t, 1, status)
	assert.Contains(t, out, "nothing that was sent to 192.0.2.2 in 1 s came to check@0 (EBPF): is what is sent from here on an interface of the ring")
	out, status = check("-t", "1", "nothing", "192.0.2.2")
	assert.Equal(t, 1, status, out)
	for _, args := range [][]string{{"check"}, {"-c", "0", "check", "192.0.2.2"}, {"-p", "70000", "check", "192.0.2.2"}, {"-x", "check", "192.0.2.2"}} {
		_, status = check(args...)
		assert.Equal(t, 2, status, args)
	}

	m.manifest("check.yaml", fmt.Sprintf(ring, "sampled", "sampling: {oneIn: 7}"))
	m.eventually("sampled", func(s v1.NodeCaptureStatus) bool { return ready(s) && s.Rings[0].Name == "sampled" })
	// What begins the check may be left out many times.
	out, status = check("-t", "20", "sampled", "192.0.2.2")
	assert.Equal(t, 1, status, out)
	assert.Regexp(t, "rccheck: after packet [0-9]+ came packet", out)
}
