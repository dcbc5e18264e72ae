// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

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

// Objects that cannot be had say why, and leave the good ones alone; put right, they come.
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

	command := exec.Command("/proc/self/exe", "cleanup", "--run-dir", m.path("run"), "--bpffs", m.path("bpf"))
	command.Env = append(os.Environ(), asAgent+"=1")
	cleanup := m.start("cleanup", command)
	require.NoError(t, cleanup.wait(), cleanup.output())
	assert.NoDirExists(t, m.pinDir())
	assert.NoDirExists(t, m.path("run"))
	up, promiscuous := m.flags("mirror0")
	assert.False(t, up)
	assert.False(t, promiscuous)
}
