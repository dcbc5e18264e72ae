// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const inlineManifest = `
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: ids}
spec:
  engine: KernelModule
  queues: 2
  inline: {pairs: [{interfaces: [mirror0, far0]}]}
`

/*
 *	sender0 ===== mirror0 -> ring "ids" -> far0 ===== far1
 */
func (m *machine) secondCable() {
	require.NoError(m.t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "far0"}, PeerName: "far1"}))
	for _, name := range []string{"mirror0", "far0", "far1"} {
		link, err := netlink.LinkByName(name)
		require.NoError(m.t, err)
		require.NoError(m.t, netlink.LinkSetUp(link))
	}
}

func (m *machine) arrivedAt(name string) int64 {
	link, err := netlink.LinkByName(name)
	require.NoError(m.t, err)
	return int64(link.Attrs().Statistics.RxPackets)
}

// The agent is killed while the kernel bridges a pair: each packet arrives, and the next agent reports all of them. When
// the ring is deleted under traffic, the interfaces are the stack's again.
func TestTheAgentIsKilledInLine(t *testing.T) {
	if _, err := os.Stat("/sys/module/ringcap"); err != nil {
		t.Skip("needs the kernel module: node-agent/tests/kills has it")
	}
	m := newMachine(t)
	m.secondCable()
	m.manifest("inline.yaml", inlineManifest)
	agent := m.agent()
	m.eventually("the ring is in line", ready)
	m.connected()
	before := m.arrivedAt("far1")
	stop := m.traffic()
	t.Cleanup(stop)
	for range 3 {
		require.NoError(t, agent.Process.Kill())
		_ = agent.wait()
		agent = m.agent()
		m.eventually("the next agent has it", ready)
	}
	stop()
	seen := m.eventually("all is seen", func(s v1.NodeCaptureStatus) bool { return ready(s) && s.Rings[0].Seen >= int64(m.sent) })
	assert.EqualValues(t, m.sent, m.arrivedAt("far1")-before)
	assert.EqualValues(t, m.sent, seen.Rings[0].Seen)
	assert.EqualValues(t, m.sent, seen.Rings[0].Passed)
	require.NotNil(t, seen.Rings[0].Inline)
	assert.Equal(t, []string{"mirror0-far0"}, seen.Rings[0].Inline.Pairs)
	var bypassed int64
	for _, queue := range seen.Clusters[0].Queues {
		require.NotNil(t, queue.Inline)
		assert.Equal(t, "unattended", queue.Inline.Event)
		assert.False(t, queue.Inline.Blocking)
		for _, count := range queue.Inline.Bypassed {
			assert.Equal(t, "unattended", count.Reason)
			bypassed += count.Packets
		}
	}
	assert.EqualValues(t, m.sent, bypassed)

	stop = m.traffic()
	t.Cleanup(stop)
	require.NoError(t, os.Remove(m.path("manifests", "inline.yaml")))
	m.eventually("the ring is gone", func(s v1.NodeCaptureStatus) bool { return len(s.Rings)+len(s.Clusters) == 0 })
	stop()
	last := m.arrivedAt("far1")
	m.send(20)
	assert.Equal(t, last, m.arrivedAt("far1"))
	_, promiscuous := m.flags("mirror0")
	assert.False(t, promiscuous)
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
	if netlink.LinkAdd(bridge) == nil { // where the kernel has bridges
		mirror, err := netlink.LinkByName("mirror0")
		require.NoError(t, err)
		assert.NoError(t, netlink.LinkSetMaster(mirror, bridge))
	}
}
